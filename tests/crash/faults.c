/* Makes a disk fail on demand: preloaded into the server, it lets calls on files below a folder fail as a control file
   requests, which the test maps into memory too. Built by faults.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, TRUNCATE = 4, RENAME = 8, OPEN = 16, SHORT = 32, READ = 64 };

/* faults.py uses the same layout. */
struct control {
    _Atomic uint32_t operations, error, per_mille, failed, random;
};

static struct control *control;
static char folder[4096];
static size_t folder_length;

#define REAL(name) ((__typeof__(&name))real_##name)
#define FIND(name) real_##name = dlsym(RTLD_NEXT, #name)
static void *real_open, *real_open64, *real_openat, *real_openat64, *real_write, *real_writev, *real_pwrite,
    *real_pwrite64, *real_read, *real_pread, *real_pread64, *real_fsync, *real_fdatasync, *real_ftruncate,
    *real_ftruncate64, *real_rename;

__attribute__((constructor)) static void begin(void) {
    FIND(open), FIND(open64), FIND(openat), FIND(openat64), FIND(write), FIND(writev), FIND(pwrite), FIND(pwrite64);
    FIND(read), FIND(pread), FIND(pread64), FIND(fsync), FIND(fdatasync), FIND(ftruncate), FIND(ftruncate64);
    FIND(rename);
    const char *file = getenv("FOLDWORK_FAULTS_CONTROL"), *below = getenv("FOLDWORK_FAULTS_FOLDER");
    if (!file || !below) return;
    folder_length = (size_t)snprintf(folder, sizeof folder, "%s/", below);
    int fd = REAL(open)(file, O_RDWR);
    if (fd < 0) abort();
    void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) abort();
    close(fd);
    control = mapped;
}

/* Returns whether one of these operations fails now. */
static int wanted(uint32_t operations) {
    if (!control || !(control->operations & operations)) return 0;
    uint32_t x = atomic_fetch_add(&control->random, 0x9e3779b9u);
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return (x ^ (x >> 16)) % 1000 < control->per_mille;
}

static int below(const char *path) {
    return folder_length > 0 && folder_length < sizeof folder && strncmp(path, folder, folder_length) == 0;
}

static int fails(uint32_t operation) {
    if (!wanted(operation)) return 0;
    atomic_fetch_add(&control->failed, 1);
    errno = (int)control->error;
    return 1;
}

static int file_below(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

static int file_fails(int fd, uint32_t operation) {
    return control && (control->operations & operation) && file_below(fd) && fails(operation);
}

/* Returns how much of a write succeeds: all, half, or nothing with an error. */
static ssize_t allowed(int fd, size_t length) {
    if (!control || !(control->operations & (WRITE | SHORT)) || !file_below(fd)) return (ssize_t)length;
    if (length > 1 && wanted(SHORT)) return (ssize_t)(length / 2);
    return fails(WRITE | SHORT) ? -1 : (ssize_t)length;
}

static int open_fails(int at, const char *path, int flags) {
    if (!control || !(control->operations & OPEN) || !(flags & (O_CREAT | O_WRONLY | O_RDWR))) return 0;
    return (at == AT_FDCWD || path[0] == '/') && below(path) && fails(OPEN);
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
    return open_fails(AT_FDCWD, path, flags) ? -1 : REAL(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    MODE()
    return open_fails(AT_FDCWD, path, flags) ? -1 : REAL(open64)(path, flags, mode);
}
int openat(int at, const char *path, int flags, ...) {
    MODE()
    return open_fails(at, path, flags) ? -1 : REAL(openat)(at, path, flags, mode);
}
int openat64(int at, const char *path, int flags, ...) {
    MODE()
    return open_fails(at, path, flags) ? -1 : REAL(openat64)(at, path, flags, mode);
}
ssize_t write(int fd, const void *bytes, size_t length) {
    ssize_t part = allowed(fd, length);
    return part < 0 ? -1 : REAL(write)(fd, bytes, (size_t)part);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    return file_fails(fd, WRITE) ? -1 : REAL(writev)(fd, parts, count);
}
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    ssize_t part = allowed(fd, length);
    return part < 0 ? -1 : REAL(pwrite)(fd, bytes, (size_t)part, offset);
}
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    ssize_t part = allowed(fd, length);
    return part < 0 ? -1 : REAL(pwrite64)(fd, bytes, (size_t)part, offset);
}
ssize_t read(int fd, void *bytes, size_t length) {
    return file_fails(fd, READ) ? -1 : REAL(read)(fd, bytes, length);
}
ssize_t pread(int fd, void *bytes, size_t length, off_t offset) {
    return file_fails(fd, READ) ? -1 : REAL(pread)(fd, bytes, length, offset);
}
ssize_t pread64(int fd, void *bytes, size_t length, off64_t offset) {
    return file_fails(fd, READ) ? -1 : REAL(pread64)(fd, bytes, length, offset);
}
int fsync(int fd) { return file_fails(fd, SYNC) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return file_fails(fd, SYNC) ? -1 : REAL(fdatasync)(fd); }
int ftruncate(int fd, off_t length) { return file_fails(fd, TRUNCATE) ? -1 : REAL(ftruncate)(fd, length); }
int ftruncate64(int fd, off64_t length) { return file_fails(fd, TRUNCATE) ? -1 : REAL(ftruncate64)(fd, length); }
int rename(const char *from, const char *to) {
    return below(to) && fails(RENAME) ? -1 : REAL(rename)(from, to);
}
