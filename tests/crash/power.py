"""Simulates a power loss during appends, and checks that no acknowledged event is lost.

`power.c` is preloaded into the server. It records the data that is certainly on the disk: the content of synced files,
and the names in synced folders. After a SIGKILL, the store is set back to this state. A disk may have more data than
this. In some rounds, the store therefore also has all or some of the other names, or some pages that were not synced,
with holes between the pages. The server must open the store with every acknowledged event exactly once, at its
position.

At the end, a segment of the log is removed, and bytes are changed in the log and in tables. The server must reject
every request to which it cannot respond correctly. If the server does not start, its message must name the file.
"""

import http.client
import os
import pathlib
import shutil
import subprocess
import threading
import time

from faults import BROKEN, Sent, Writer, digest
from server import Failure, Server, check

WRITERS = 4
# Each round reads the whole log of a store, so a store has few rounds.
ROUNDS_OF_A_STORE = 10
PAGE = 4096
KINDS = ["nothing that was not synced", "all names", "some names", "some pages", "some names and pages"]
# The number of bytes that are changed in each kind of file, one after the other.
CHANGED_BYTES = 3


class Disk:
    """The store's folder, and the part of its content that is certainly on the disk."""

    def __init__(self, folder, chance):
        self.store, self.aside, self.chance = folder / "db", folder / "aside", chance
        library, source = folder / "power.so", pathlib.Path(__file__).with_name("power.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": str(library), "FOLDWORK_POWER_FOLDER": str(self.store),
                            "FOLDWORK_POWER_ASIDE": str(self.aside)}

    def settle(self):
        """Declares that the current content of the store is on the disk."""
        shutil.rmtree(self.aside, ignore_errors=True)
        self.aside.mkdir()
        self.store.mkdir(exist_ok=True)
        for folder, _, _ in os.walk(self.store):
            with os.scandir(folder) as scanned:
                entries = list(scanned)
            names = "".join(f"{entry.inode()} {entry.name}\n" for entry in entries)
            (self.aside / f"names-{os.stat(folder).st_ino}").write_text(names)
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    shutil.copyfile(entry.path, self.aside / str(entry.inode()))

    def lose_power(self, kind):
        """Sets the store back to the content of the disk."""
        self.some_names = {"all names": 1.0}.get(kind, 0.5 if "names" in kind else 0.0)
        self.some_pages = "pages" in kind
        self.found = {}
        for folder, _, files in os.walk(self.store):
            for path in [folder, *(os.path.join(folder, file) for file in files)]:
                self.found[os.lstat(path).st_ino] = path
        for kept in self.aside.glob("kept-*"):
            self.found.setdefault(kept.stat().st_ino, str(kept))
        back = self.store.with_name("db.back")
        self.set_back(str(self.store), back)
        shutil.rmtree(self.store)
        back.rename(self.store)
        self.settle()

    def set_back(self, folder, to):
        to.mkdir()
        synced = {}
        listed = self.aside / f"names-{os.stat(folder).st_ino}"
        if listed.exists():
            for line in listed.read_text().splitlines():
                number, name = line.split(" ", 1)
                synced[name] = int(number)
        with os.scandir(folder) as scanned:
            current = {entry.name: entry.inode() for entry in scanned}
        for name in sorted(synced.keys() | current.keys()):
            number = (current if self.chance.random() < self.some_names else synced).get(name)
            path = self.found.get(number)
            if path is None:
                continue
            if os.path.isdir(path):
                self.set_back(path, to / name)
            else:
                (to / name).write_bytes(self.content(number, pathlib.Path(path)))

    def content(self, number, path):
        copied = self.aside / str(number)
        synced = copied.read_bytes() if copied.exists() else b""
        current = path.read_bytes()
        if not self.some_pages or current == synced:
            return synced
        if len(current) < len(synced):
            return self.chance.choice([current, synced])
        end = self.chance.randint(len(synced), len(current))
        content = bytearray(synced.ljust(end, b"\0"))
        for start in range(0, end, PAGE):
            if self.chance.random() < 0.5:
                content[start:start + PAGE] = current[start:min(start + PAGE, end)]
        return bytes(content)


class Store:
    """One store over several rounds."""

    def __init__(self, program, folder, key, chance):
        self.chance, self.sent = chance, Sent()
        self.disk = Disk(folder, chance)
        self.server = Server(program, folder, key)
        # Uses small memtables, which values of 20 kB fill quickly.
        self.server.environment.update(self.disk.environment, FOLDWORK_STORE__MEMTABLE="1 MiB")

    def start(self):
        self.server.start()
        return self.server.client(timeout=120)

    def play(self, number, longest):
        kind = self.chance.choice(KINDS)
        self.disk.settle()
        client = self.start()
        check(self.sent.append(client, "alone", f"alone-{number}", "y" * 100) == 201, "an append is rejected")
        ended = threading.Event()
        writers = [Writer(writer, number * 1_000_000, self.sent, self.server, self.chance.random(), ended)
                   for writer in range(WRITERS)]
        for writer in writers:
            writer.start()
        time.sleep(self.chance.uniform(0.1, longest))
        self.server.kill()
        ended.set()
        for writer in writers:
            writer.join()
        self.disk.lose_power(kind)
        client = self.start()
        count = self.sent.verify(client, started=True)
        self.server.kill()
        self.disk.lose_power(kind)
        segments = len(list((self.disk.store / "wal").glob("*.wal")))
        tables = len(list((self.disk.store / "sstables").glob("*.sst")))
        print(f"round {number}: the disk holds {kind}; {count} events, {len(self.sent.answered)} acknowledged, "
              f"{segments} segments, {tables} tables: passed", flush=True)

    def damages(self):
        """Yields each damage to test, with its name and the damaged file."""
        segments = sorted((self.disk.store / "wal").glob("*.wal"))
        last = segments[-1]
        # Creates a gap in the log: the manifest or the previous segment expects a segment with the missing number.
        yield "a missing segment", last, lambda: last.rename(last.with_name(f"{int(last.stem) + 1:020}.wal"))
        for name, files in [("log", segments), ("tables", sorted((self.disk.store / "sstables").glob("*.sst")))]:
            for _ in range(CHANGED_BYTES):
                file = self.chance.choice([file for file in files if file.stat().st_size])
                yield f"a changed byte in the {name}", file, lambda file=file: self.change(file)

    def change(self, file):
        content = bytearray(file.read_bytes())
        content[self.chance.randrange(len(content))] ^= 1 << self.chance.randrange(8)
        file.write_bytes(content)

    def damage(self):
        """Tries each damage on a copy of the store. Returns the number of damages."""
        good = self.disk.store.with_name("db.good")
        client = self.start()
        for number in range(20):
            check(self.sent.append(client, "last", f"last-{number}", "z" * 2_000) == 201, "an append is rejected")
        self.server.kill()
        self.disk.store.rename(good)
        shutil.copytree(good, self.disk.store)
        played = list(self.damages())
        for name, file, damage in played:
            shutil.rmtree(self.disk.store)
            shutil.copytree(good, self.disk.store)
            damage()
            print(f"{name}, {file.name}: {self.answer(file)}", flush=True)
        return len(played)

    def answer(self, file):
        """Returns how the server handles a damaged file."""
        log = self.server.folder / "server.log"
        log_bytes = log.stat().st_size
        try:
            client = self.start()
        except Failure:
            check(file.stem in log.read_bytes()[log_bytes:].decode(),
                  f"the server does not start and does not name {file.name}")
            return "rejected by name, passed"
        try:
            return self.reads(client)
        finally:
            self.server.kill()

    def reads(self, client):
        count = 0
        while True:
            status, page = client.call("GET", f"/events?limit=50&after={count}")
            if status != 200:
                check(status >= 500, f"reading the log gets {status}")
                return f"reading is rejected with {status}, passed"
            for event in page["data"]:
                count += 1
                sent = self.sent.payloads.get(event["event_id"])
                check(event["position"] == count, f"position {event['position']} follows {count - 1}")
                check(sent is None or digest(event["payload"]) == sent, f"{event['event_id']} is not what was sent")
            if not page["data"]:
                end = max(position for _, _, position in self.sent.answered.values())
                check(count >= end, f"{end} events were acknowledged, but {count} exist")
                return "nothing is lost, passed"


def lose_power(program, folder, key, seed, rounds, chance, longest):
    """Runs the rounds. Returns the numbers of passed and failed rounds."""
    passed = failed = 0
    store = None
    for number in range(1, rounds + 1):
        try:
            if store is None:
                below = folder / f"store-{number}"
                below.mkdir()
                store = Store(program, below, key, chance)
            store.play(number, longest)
            passed += 1
            if number == rounds or number % ROUNDS_OF_A_STORE == 0:
                passed += store.damage()
                shutil.rmtree(store.server.folder)
                store = None
        except (Failure, *BROKEN, http.client.HTTPException, subprocess.TimeoutExpired) as failure:
            failed += 1
            print(f"round {number}: FAILED: {failure}", flush=True)
            if store is not None:
                store.server.kill()
            store = None
    return passed, failed
