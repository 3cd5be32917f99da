"""Loses the machine of a server that archives, and checks that the installation is restored on another one.

Writers append events and store files, and some appends wait until they are archived. The server is killed at random
moments, sometimes in the middle of a write to the archive. At the end the data folder is gone. `foldwork restore` writes
a new one from the archive alone. Every event that was archived before its response must be there, and the states at the
restored position must equal those that the old server folds at this position. Then a byte of the archive changes, and
`foldwork backup verify` must name the segment.
"""

import base64
import hashlib
import http.client
import json
import os
import pathlib
import secrets
import subprocess
import threading
import time

from files import fetched, listed
from server import Failure, Server, check

WRITERS = 4
BROKEN = (OSError, http.client.HTTPException, ValueError)
STATES = [{"$match": {"aggregate_type": {"$in": ["article", "file"]}}}]


class Writer:
    """Appends events to its own streams and stores files, and records what was acknowledged, and when."""

    def __init__(self, number, chance):
        self.number, self.chance = number, chance
        self.count = 0
        self.archived, self.stored = {}, {}

    def run(self, server, ended):
        try:
            client = server.client(60)
            while not ended.is_set():
                self.count += 1
                if self.count % 25 == 0:
                    self.store_file(client)
                else:
                    self.append(client)
        except BROKEN:
            return

    def append(self, client):
        event_id = f"backup-{self.number}-{self.count}"
        event = {"event_id": event_id, "aggregate_type": "article", "event_type": "article.changed",
                 "payload": {"title": f"Event {self.count}", "n": self.count, "text": "x" * self.chance.randrange(200)}}
        waits = self.count % 10 == 0
        headers = {**client.headers, **({"Foldwork-Durability": "archived"} if waits else {})}
        path = f"/api/v1/aggregates/backup-{self.number}-{self.count % 7}/events"
        client.connection.request("POST", path, json.dumps(event), headers)
        response = client.connection.getresponse()
        answer = json.loads(response.read())
        check(response.status in (200, 201), f"{event_id} is rejected with {response.status}: {str(answer)[:200]}")
        (self.archived if waits else self.stored)[event_id] = (answer["position"], time.monotonic())

    def store_file(self, client):
        data = base64.b64encode(self.chance.randbytes(self.chance.choice([0, 10, 100_000]))).decode()
        body = {"filename": f"{self.number}-{self.count % 3}.bin", "data": data}
        status, answer = client.call("POST", "/files", body)
        check(status in (200, 201), f"a file is rejected with {status}: {str(answer)[:200]}")


def environment(server, folder, key):
    server.environment.update(
        FOLDWORK_BACKUP__URL=f"file://{folder / 'archive'}", FOLDWORK_BACKUP__FLUSH="200 ms", FOLDWORK_BACKUP_KEY=key)
    return server


def command(program, server, *arguments):
    """Runs a command on the server's store. Returns the exit code and the output."""
    settings = dict(server.environment, FOLDWORK_STORE__URL=server.database)
    settings.pop("FOLDWORK_BOOTSTRAP_KEY")
    ended = subprocess.run([program, *arguments], cwd=server.folder, env=settings, text=True, timeout=600,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return ended.returncode, ended.stdout


def load(server, writers, seconds):
    """Runs the writers for a time, and kills the server. Returns the time of the kill."""
    ended = threading.Event()
    threads = [threading.Thread(target=writer.run, args=(server, ended)) for writer in writers]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    killed_at = time.monotonic()
    server.kill()
    ended.set()
    for thread in threads:
        thread.join()
    return killed_at


def states(client, position):
    """Returns the states at a position by id, each as its version and its digest."""
    pipeline = [*STATES, {"$fold": {"position": position}}]
    rows = client.read("POST", "/aggregates/query", {"pipeline": pipeline})["results"]
    for row in rows:
        # Plugins derive facts from the whole log, not only up to a position.
        row.pop("_facts", None)
    return {row["_id"]: hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest() for row in rows}


def compare(program, old, new, writers, killed_at):
    """Restores the installation on a new machine, and compares it with the old one."""
    code, output = command(program, new, "restore")
    check(code == 0, f"restore ends with {code}: {output[-500:]}")
    new.start()
    client = new.client()
    head = client.read("GET", "/system/consumers")["head"]
    lost = [f"{event} at {position}" for writer in writers for event, (position, _) in writer.archived.items()
            if position > head]
    check(not lost, f"archived events are lost, the log ends at {head}: {lost[:5]}")
    late = [killed_at - at for writer in writers for position, at in writer.stored.values() if position > head]
    # The old machine answers again, to be asked what it knew. It archives nothing more.
    old.environment["FOLDWORK_BACKUP__URL"] = ""
    old.start()
    before, after = states(old.client(), head), states(client, head)
    check(before == after, f"the states at {head} differ: {set(before.items()) ^ set(after.items())}"[:500])
    known, restored = listed(old.client()), listed(client)
    for path, file in restored.items():
        if known.get(path, {}).get("sha256") == file["sha256"]:
            check(hashlib.sha256(fetched(client, path)).hexdigest() == file["sha256"], f"{path} has other bytes")
    old.kill()
    return head, len(after), len(restored), max(late, default=0.0), output.strip().splitlines()[-1]


def find_damage(program, server, chance):
    """Changes one byte of a segment, and checks that a proof names the segment."""
    code, output = command(program, server, "backup", "verify")
    check(code == 0, f"backup verify ends with {code}: {output[-500:]}")
    archive = pathlib.Path(server.environment["FOLDWORK_BACKUP__URL"].removeprefix("file://"))
    segment = chance.choice(sorted(archive.glob("*/*/log/*/*.ndjson.zst")))
    whole = segment.read_bytes()
    changed = bytearray(whole)
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    segment.write_bytes(changed)
    code, output = command(program, server, "backup", "verify")
    segment.write_bytes(whole)
    check(code == 1 and segment.name in output, f"{segment.name} was changed, and verify ends with {code}: {output[-500:]}")
    return segment.name


def machine(program, folder, key, backup_key, name):
    place = folder / name
    place.mkdir()
    server = environment(Server(program, place, key), folder, backup_key)
    return server


def lose_machines(program, folder, key, rounds, chance, longest):
    """Returns the numbers of passed and failed rounds. Each round uses the machine that the last one restored."""
    backup_key = base64.b64encode(secrets.token_bytes(32)).decode()
    (folder / "archive").mkdir()
    old = machine(program, folder, key, backup_key, "machine-0")
    passed = failed = 0
    writers = [Writer(number, chance) for number in range(WRITERS)]
    for number in range(1, rounds + 1):
        new = machine(program, folder, key, backup_key, f"machine-{number}")
        try:
            for _ in range(chance.randrange(1, 4)):
                old.start()
                killed_at = load(old, writers, chance.uniform(0.3, longest))
            head, count, files, late, line = compare(program, old, new, writers, killed_at)
            new.kill()
            segment = find_damage(program, new, chance)
            print(f"round {number}: the log ends at {head}, {count} states and {files} files are equal; the oldest event "
                  f"that is lost was acknowledged {late:.2f} s before the kill; {line}; {segment} was changed and named: "
                  "passed", flush=True)
            passed += 1
        except (Failure, *BROKEN, subprocess.TimeoutExpired) as failure:
            failed += 1
            print(f"round {number}: FAILED: {failure}", flush=True)
            return passed, failed
        finally:
            old.kill()
            new.kill()
        for writer in writers:
            # What the old machine had beyond the archive is gone, and the writers go on with the new machine.
            writer.stored.clear()
        old = new
    return passed, failed
