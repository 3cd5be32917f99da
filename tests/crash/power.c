/* Simulates a power loss: preloaded into the server, it records for a folder what the disk must hold, which is
   everything that was synced. The content of a file is copied aside when the file is synced, the names in a folder when
   the folder is synced. A file that loses its name is linked aside, so that its inode number is not used again. Built
   by power.py, which restores the folder. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FILES = 1 << 16 };

/* The offset from which on a file was written to since its last sync. */
static struct {
    ino_t number;
    off_t from;
} files[FILES];
static const off_t NOWHERE = INT64_MAX;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[2048], aside[2048];
static size_t folder_length;
static unsigned kept;

#define REAL(name) ((__typeof__(&name))real_##name)
#define FIND(name) real_##name = dlsym(RTLD_NEXT, #name)
static void *real_open, *real_open64, *real_openat, *real_openat64, *real_write, *real_writev, *real_pwrite,
    *real_pwrite64, *real_fsync, *real_fdatasync, *real_ftruncate, *real_ftruncate64, *real_rename, *real_unlink;

__attribute__((constructor)) static void begin(void) {
    FIND(open), FIND(open64), FIND(openat), FIND(openat64), FIND(write), FIND(writev), FIND(pwrite), FIND(pwrite64);
    FIND(fsync), FIND(fdatasync), FIND(ftruncate), FIND(ftruncate64), FIND(rename), FIND(unlink);
    const char *below = getenv("FOLDWORK_POWER_FOLDER"), *beside = getenv("FOLDWORK_POWER_ASIDE");
    if (!below || !beside) return;
    snprintf(aside, sizeof aside, "%s", beside);
    folder_length = (size_t)snprintf(folder, sizeof folder, "%s", below);
}

static int below(const char *path) {
    return folder_length > 0 && strncmp(path, folder, folder_length) == 0 &&
           (path[folder_length] == 0 || path[folder_length] == '/');
}

/* Finds the path of an open file below the folder. */
static int find(int fd, char *path, size_t room) {
    char link[64];
    if (folder_length == 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, room - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

static off_t *written_from(ino_t number) {
    size_t place = (size_t)number % FILES;
    for (size_t tries = 0; tries < FILES; tries++, place = (place + 1) % FILES) {
        if (files[place].number == 0) {
            files[place].number = number;
            files[place].from = NOWHERE;
        }
        if (files[place].number == number) return &files[place].from;
    }
    abort();
}

static void changes(ino_t number, off_t from) {
    pthread_mutex_lock(&lock);
    off_t *known = written_from(number);
    if (from < *known) *known = from;
    pthread_mutex_unlock(&lock);
}

/* Called before a write at this offset, or at the current position if the offset is negative. */
static void writes(int fd, off_t offset) {
    char path[4096];
    struct stat about;
    if (!find(fd, path, sizeof path) || fstat(fd, &about) != 0) return;
    if (offset < 0) offset = fcntl(fd, F_GETFL) & O_APPEND ? about.st_size : lseek(fd, 0, SEEK_CUR);
    changes(about.st_ino, offset < 0 ? 0 : offset);
}

static void copy(int fd, const struct stat *about) {
    char name[4096], path[4096], bytes[1 << 16];
    snprintf(name, sizeof name, "%s/%llu", aside, (unsigned long long)about->st_ino);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int from = REAL(open)(path, O_RDONLY | O_CLOEXEC, 0);
    int to = REAL(open)(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (from < 0 || to < 0) abort();
    off_t *known = written_from(about->st_ino), at = *known;
    struct stat copied;
    if (fstat(to, &copied) != 0) abort();
    if (copied.st_size < at) at = copied.st_size;
    *known = NOWHERE;
    if (REAL(ftruncate)(to, about->st_size) != 0) abort();
    while (at < about->st_size) {
        off_t left = about->st_size - at;
        ssize_t got = pread(from, bytes, left < (off_t)sizeof bytes ? (size_t)left : sizeof bytes, at);
        if (got <= 0) break;
        if (REAL(pwrite)(to, bytes, (size_t)got, at) != got) abort();
        at += got;
    }
    close(from);
    close(to);
}

/* Written under another name first, so that a kill leaves the names of one sync. */
static void list(const char *path, ino_t number) {
    char name[4096], unfinished[4200];
    snprintf(name, sizeof name, "%s/names-%llu", aside, (unsigned long long)number);
    snprintf(unfinished, sizeof unfinished, "%s.unfinished", name);
    DIR *entries = opendir(path);
    FILE *names = fopen(unfinished, "w");
    if (!entries || !names) abort();
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        fprintf(names, "%llu %s\n", (unsigned long long)entry->d_ino, entry->d_name);
    }
    closedir(entries);
    if (fclose(names) != 0 || REAL(rename)(unfinished, name) != 0) abort();
}

static void syncs(int fd) {
    char path[4096];
    struct stat about;
    if (!find(fd, path, sizeof path) || fstat(fd, &about) != 0) return;
    pthread_mutex_lock(&lock);
    if (S_ISDIR(about.st_mode)) list(path, about.st_ino);
    if (S_ISREG(about.st_mode)) copy(fd, &about);
    pthread_mutex_unlock(&lock);
}

static void loses_name(const char *path) {
    char link_name[4096];
    if (!below(path)) return;
    pthread_mutex_lock(&lock);
    snprintf(link_name, sizeof link_name, "%s/kept-%d-%u", aside, getpid(), kept++);
    int error = errno;
    if (link(path, link_name) != 0) errno = error;
    pthread_mutex_unlock(&lock);
}

/* Called when a file is opened and truncated. */
static void empties(int at, const char *path, int flags) {
    struct stat about;
    if ((flags & O_TRUNC) && (at == AT_FDCWD || path[0] == '/') && below(path) && stat(path, &about) == 0)
        changes(about.st_ino, 0);
}

#define MODE()                                                                                                         \
    mode_t mode = 0;                                                                                                   \
    if (flags & (O_CREAT | __O_TMPFILE)) {                                                                             \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode = va_arg(rest, mode_t);                                                                                   \
        va_end(rest);                                                                                                  \
    }

int open(const char *path, int flags, ...) {
    MODE()
    empties(AT_FDCWD, path, flags);
    return REAL(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    MODE()
    empties(AT_FDCWD, path, flags);
    return REAL(open64)(path, flags, mode);
}
int openat(int at, const char *path, int flags, ...) {
    MODE()
    empties(at, path, flags);
    return REAL(openat)(at, path, flags, mode);
}
int openat64(int at, const char *path, int flags, ...) {
    MODE()
    empties(at, path, flags);
    return REAL(openat64)(at, path, flags, mode);
}
ssize_t write(int fd, const void *bytes, size_t length) {
    writes(fd, -1);
    return REAL(write)(fd, bytes, length);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    writes(fd, -1);
    return REAL(writev)(fd, parts, count);
}
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    writes(fd, offset);
    return REAL(pwrite)(fd, bytes, length, offset);
}
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    writes(fd, offset);
    return REAL(pwrite64)(fd, bytes, length, offset);
}
int ftruncate(int fd, off_t length) {
    writes(fd, length);
    return REAL(ftruncate)(fd, length);
}
int ftruncate64(int fd, off64_t length) {
    writes(fd, length);
    return REAL(ftruncate64)(fd, length);
}
int fsync(int fd) {
    syncs(fd);
    return REAL(fsync)(fd);
}
int fdatasync(int fd) {
    syncs(fd);
    return REAL(fdatasync)(fd);
}
int rename(const char *from, const char *to) {
    loses_name(to);
    return REAL(rename)(from, to);
}
int unlink(const char *path) {
    loses_name(path);
    return REAL(unlink)(path);
}
