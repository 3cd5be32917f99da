"""Makes the disk of a server fail during appends and kills, and checks that no acknowledged event is lost.

`faults.c` is preloaded into the server. At this script's request, it makes writes, syncs and similar calls fail below
the store's folder: the disk is full, is temporarily read-only, or returns errors in the middle of an operation. Each
acknowledged event must exist exactly once after each start, at its position. A rejected event exists completely or not
at all. If a rejected event does not exist after a start, it must not exist later. When the disk works again, the server
must work again without a restart.
"""

import errno
import hashlib
import http.client
import json
import mmap
import pathlib
import random
import resource
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.request

from server import Failure, Server, check

WRITE, SYNC, TRUNCATE, RENAME, OPEN, SHORT, READ = 1, 2, 4, 8, 16, 32, 64
ALL = WRITE | SYNC | TRUNCATE | RENAME | OPEN
WRITERS = 4
STREAMS_PER_WRITER = 3
HEALS_WITHIN_S = 30
DETECTED_WITHIN_S = 30
BROKEN = (OSError, http.client.HTTPException, ValueError)

# The kinds of disk failure: the name, the failing operations, the errors, and the failing share in thousandths.
KINDS = [
    ("full", WRITE | SHORT, [errno.ENOSPC], [1000]),
    ("full for new files", WRITE | OPEN, [errno.ENOSPC], [1000]),
    ("read-only", ALL, [errno.EROFS], [1000]),
    ("failing", ALL | SHORT, [errno.EIO], [50, 200, 500]),
    ("failing to sync", SYNC, [errno.EIO], [200, 1000]),
    ("failing to sync and to truncate", SYNC | TRUNCATE, [errno.EIO], [500, 1000]),
    ("writing halves and failing to truncate", WRITE | SHORT | TRUNCATE, [errno.EIO, errno.ENOSPC], [300, 1000]),
    ("failing to rename and to open", RENAME | OPEN, [errno.EIO], [500, 1000]),
    ("failing to read", READ, [errno.EIO], [50, 300]),
]


class Disk:
    """The store's folder, and the failures below it."""

    LAYOUT = struct.Struct("=5I")

    def __init__(self, folder, seed):
        library, control = folder / "faults.so", folder / "faults"
        source = pathlib.Path(__file__).with_name("faults.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        control.write_bytes(self.LAYOUT.pack(0, 0, 0, 0, seed & 0xFFFFFFFF))
        with open(control, "r+b") as file:
            self.control = mmap.mmap(file.fileno(), self.LAYOUT.size)
        self.environment = {"LD_PRELOAD": str(library), "FOLDWORK_FAULTS_CONTROL": str(control),
                            "FOLDWORK_FAULTS_FOLDER": str(folder / "db")}

    def fail(self, operations, error, per_mille):
        struct.pack_into("=2I", self.control, 4, error, per_mille)
        struct.pack_into("=I", self.control, 0, operations)

    def work(self):
        struct.pack_into("=I", self.control, 0, 0)

    def failed(self):
        """Returns the number of calls that have failed so far."""
        return struct.unpack_from("=I", self.control, 12)[0]


def digest(payload):
    return hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).digest()


class Sent:
    """The sent events with their responses."""

    def __init__(self):
        self.lock = threading.Lock()
        self.payloads, self.answered, self.open, self.gone = {}, {}, set(), set()
        self.refusals = {}

    def append(self, client, stream, event_id, text):
        """Appends one event. Returns the status, or `None` if the connection broke."""
        payload = {"title": event_id, "text": text}
        event = {"event_id": event_id, "aggregate_type": "article", "event_type": "article.changed", "payload": payload}
        with self.lock:
            self.payloads[event_id] = digest(payload)
            self.open.add(event_id)
        status, answer = client.call("POST", f"/aggregates/{stream}/events", event)
        with self.lock:
            if status in (200, 201):
                self.answered[event_id] = (answer["aggregate_id"], answer["version"], answer["position"])
                self.open.discard(event_id)
            else:
                self.refusals[status] = self.refusals.get(status, 0) + 1
        return status

    def verify(self, client, started):
        """Reads the log and compares it with the responses. After a start, no client writes, so the whole log is read.
        Otherwise the log is read up to the last acknowledged event."""
        with self.lock:
            answered = dict(self.answered)
        end = max((position for _, _, position in answered.values()), default=0)
        found, versions, count = {}, {}, 0
        while started or count < end:
            page = client.read("GET", f"/events?limit=50&after={count}")["data"]
            if not page:
                break
            for event in page:
                count += 1
                check(event["position"] == count, f"position {event['position']} follows {count - 1}")
                stream = event["aggregate_id"]
                versions[stream] = versions.get(stream, 0) + 1
                check(event["version"] == versions[stream], f"{stream} continues with version {event['version']}")
                event_id = event["event_id"]
                check(event_id not in found, f"{event_id} exists twice")
                found[event_id] = (stream, event["version"], event["position"])
                if event_id in self.payloads:
                    check(digest(event["payload"]) == self.payloads[event_id], f"{event_id} is not what was sent")
        with self.lock:
            for event_id, place in answered.items():
                check(found.get(event_id) == place,
                      f"{event_id} was acknowledged at {place[2]}, and is at {found.get(event_id, 'no position')}")
            for event_id in self.gone:
                check(event_id not in found, f"{event_id} was rejected and missing after a start, but exists now")
            if started:
                self.gone |= {event_id for event_id in self.open if event_id not in found}
                self.open -= self.gone
        return count


class Writer(threading.Thread):
    """Appends events of all sizes to its own streams until it is stopped or the connection breaks."""

    def __init__(self, number, first, sent, server, seed, ended):
        super().__init__(daemon=True)
        self.number, self.count, self.sent, self.ended = number, first, sent, ended
        self.server, self.seed = server, seed
        self.failure = None

    def run(self):
        chance = random.Random(self.seed)
        client = self.server.client(timeout=60)
        try:
            while not self.ended.is_set():
                self.count += 1
                size = chance.choice([20, 200, 2_000, 2_000, 20_000, chance.choice([60_000] * 4 + [500_000])])
                stream = f"side-{self.number}-{self.count % STREAMS_PER_WRITER}"
                status = self.sent.append(client, stream, f"side-event-{self.number}-{self.count}", "x" * size)
                if status not in (200, 201):
                    self.ended.wait(0.02)
        except BROKEN:
            return


def ready(server):
    """Returns the status of `/readyz`, and the reason if the server is not ready."""
    try:
        with urllib.request.urlopen(f"http://{server.address}/readyz", timeout=30) as answer:
            return answer.status, None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read()).get("reason")


def until(limit_s, holds, message):
    limit = time.monotonic() + limit_s
    while not holds():
        check(time.monotonic() < limit, f"{message} after {limit_s} s")
        time.sleep(0.05)


class Rounds:
    def __init__(self, program, folder, key, seed, chance):
        self.chance, self.sent, self.next_number = chance, Sent(), 0
        self.disk = Disk(folder, seed)
        self.server = Server(program, folder, key)
        # Uses small memtables, so that flushes and compactions fail as well.
        self.server.environment.update(self.disk.environment, FOLDWORK_STORE__MEMTABLE="1 MiB")

    def start(self):
        self.disk.work()
        self.server.start()
        return self.server.client(timeout=120)

    def append_one(self, client):
        self.next_number += 1
        return self.sent.append(client, "alone", f"alone-{self.next_number}", "y" * 100)

    def heals(self):
        """Repairs the disk. The server must recover within `HEALS_WITHIN_S` seconds, without a restart."""
        self.disk.work()
        client = self.server.client(timeout=120)
        until(HEALS_WITHIN_S, lambda: self.append_one(client) in (200, 201), "no append succeeds")
        until(HEALS_WITHIN_S, lambda: ready(self.server) == (200, None), "/readyz is not 200")
        return client

    def play(self, number):
        ended, before = threading.Event(), self.disk.failed()
        writers = [Writer(writer, number * 1_000_000, self.sent, self.server, self.chance.random(), ended)
                   for writer in range(WRITERS)]
        for writer in writers:
            writer.start()
        faults = []
        phases = self.chance.randint(2, 4)
        in_fault = self.chance.random() < 0.5
        for phase in range(phases):
            time.sleep(self.chance.uniform(0, 0.5))
            name, operations, errors, rates = self.chance.choice(KINDS)
            rate = self.chance.choice(rates)
            self.disk.fail(operations, self.chance.choice(errors), rate)
            if rate == 1000 and operations & (WRITE | SYNC):
                until(DETECTED_WITHIN_S, lambda: ready(self.server) == (503, "store"), f"/readyz is not 503, disk {name},")
            time.sleep(self.chance.uniform(0.1, 1.5))
            faults.append(name)
            if phase == phases - 1 and in_fault:
                break
            client = self.heals()
            if phase == phases - 1:
                self.sent.verify(client, started=False)
        self.server.kill()
        ended.set()
        for writer in writers:
            writer.join()
        client = self.start()
        count = self.sent.verify(client, started=True)
        until(HEALS_WITHIN_S, lambda: ready(self.server) == (200, None), "/readyz is not 200")
        check(self.append_one(client) in (200, 201), "an append after the start is rejected")
        print(f"round {number}: disk {', '.join(faults)}; killed {'meanwhile' if in_fault else 'afterwards'}; "
              f"{self.disk.failed() - before} calls failed; {count} events, {len(self.sent.answered)} acknowledged, "
              f"{sum(self.sent.refusals.values())} rejected {self.sent.refusals}, {len(self.sent.gone)} gone: passed",
              flush=True)

    def limited(self, kill):
        """Limits the size of files and removes the limit again. The first limit is reached in the middle of a large
        record, the second limit in a small record."""
        client = self.start()
        sent = self.sent
        for size, room in ((500_000, 100_000), (2_000, 1_000)):
            for _ in range(3):
                check(self.append_one(client) == 201, "an append is rejected")
            self.limit_files(room)
            self.next_number += 1
            refused = f"limited-{self.next_number}"
            status = sent.append(client, "limited", refused, "z" * size)
            check(status == 503, f"the append over the limit gets {status}")
            self.limit_files(None)
            for number in range(10):
                status = sent.append(client, "limited", f"{refused}-after-{number}", "after")
                check(status == 201, f"an append after the removal of the limit gets {status}")
            if kill:
                self.server.kill()
            else:
                check(self.server.terminate() == 0, "the server does not stop cleanly")
            client = self.start()
            sent.verify(client, started=True)
            check(refused in sent.gone, f"{refused} was rejected but exists")
            status = sent.append(client, "limited", f"{refused}-last", "last")
            check(status == 201, f"an append to the stream gets {status}")
        print(f"a limit for files, {'killed' if kill else 'stopped'} afterwards: passed", flush=True)

    def limit_files(self, room):
        """Limits files to `room` bytes more than the current segment of the log, or removes the limit."""
        pid = self.server.process.pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        soft = hard
        if room is not None:
            segments = (self.server.folder / "db" / "wal").glob("*.wal")
            soft = max(segments).stat().st_size + room
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


def fail(program, folder, key, seed, rounds, chance):
    """Runs the rounds. Returns the numbers of passed and failed steps."""
    played = Rounds(program, folder, key, seed, chance)
    passed = failed = 0
    try:
        played.start()
        played.server.terminate()
        for kill in (True, False):
            played.limited(kill)
            passed += 1
            played.server.terminate()
        played.start()
        for number in range(1, rounds + 1):
            played.play(number)
            passed += 1
        check(played.server.terminate() == 0, "the server does not stop cleanly")
        played.sent.verify(played.start(), started=True)
        passed += 1
    except (Failure, *BROKEN, subprocess.TimeoutExpired) as failure:
        failed += 1
        print(f"FAILED: {failure}", flush=True)
    finally:
        played.server.kill()
    return passed, failed
