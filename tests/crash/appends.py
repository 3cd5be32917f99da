"""Kills a server during appends and an import, and checks after each start that the log and the states are complete.

`foldwork import` fills the log, and a few writers append single events to the log. Each event that was acknowledged
before a kill must exist exactly once after the kill, at its position.
"""

import hashlib
import itertools
import http.client
import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import threading
import time

from server import Server, check, play

WRITERS = 3
STREAMS_PER_WRITER = 5
SAMPLE = 40
STATES = [{"$match": {"aggregate_type": "article"}}, {"$fold": {}}]
# A condition on single events forces the states to be folded from the log.
STATES_FROM_LOG = [{"$match": {"aggregate_type": "article", "position": {"$gte": 1}}}, {"$fold": {}}]


class Writer:
    """Appends single events with known ids to its own streams, and records the acknowledged events."""

    def __init__(self, number):
        self.number = number
        self.count = 0
        self.in_doubt = None
        self.answered = {}
        self.refused = None

    def next_event(self):
        self.count += 1
        stream = f"side-{self.number}-{self.count % STREAMS_PER_WRITER}"
        verb = "created" if self.count <= STREAMS_PER_WRITER else "updated"
        payload = {"title": f"Event {self.count}", "n": self.count, f"field_{self.count % 7}": "x" * (self.count % 50)}
        if self.count % 11 == 0:
            payload["$unset"] = [f"field_{self.count // 11 % 7}"]
        event = {"event_id": f"side-event-{self.number}-{self.count}", "aggregate_type": "article",
                 "event_type": f"article.{verb}", "payload": payload}
        return stream, event

    def run(self, client, ended):
        """Appends until the connection breaks. The next run sends the last event of this run again first."""
        try:
            while not ended.is_set():
                self.in_doubt = self.in_doubt or self.next_event()
                stream, event = self.in_doubt
                status, answer = client.call("POST", f"/aggregates/{stream}/events", event)
                if status not in (200, 201):
                    self.refused = f"{event['event_id']} is rejected with {status}: {str(answer)[:200]}"
                    return
                self.answered[event["event_id"]] = (answer["aggregate_id"], answer["version"], answer["position"])
                self.in_doubt = None
        except (OSError, http.client.HTTPException, ValueError):
            return


class Import:
    """Runs `foldwork import` in its own terminal. The progress bar shows the number of acknowledged events."""

    def __init__(self, program, server, source):
        self.shown = ""
        terminal, far_end = pty.openpty()
        environment = dict(os.environ, FOLDWORK_SERVER=f"http://{server.address}", FOLDWORK_TOKEN=server.key,
                           TERM="xterm", COLUMNS="120")
        self.process = subprocess.Popen([program, "import", str(source)], env=environment, cwd=server.folder,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=far_end, text=True)
        os.close(far_end)
        self.reader = threading.Thread(target=self.read, args=(terminal,), daemon=True)
        self.reader.start()

    def read(self, terminal):
        with os.fdopen(terminal, "rb", buffering=0) as terminal:
            while True:
                select.select([terminal], [], [])
                try:
                    text = terminal.read(4096)
                except OSError:
                    return
                if not text:
                    return
                self.shown += text.decode(errors="replace")

    def end(self):
        """Ends the client after its server died. Returns the number of events in the client's progress bar."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.reader.join(timeout=5)
        counts = [int(count.replace(",", "")) for count in re.findall(r"([\d,]*\d) events", self.shown)]
        return max(counts, default=0)

    def finish(self):
        """Waits until the import ends, and returns its output."""
        output, _ = self.process.communicate(timeout=3600)
        self.reader.join(timeout=5)
        check(self.process.returncode == 0, f"import ends with {self.process.returncode}: {self.shown[-500:]}")
        return output.strip()


def digest(payload):
    return hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).digest()


def shared_lines():
    """Returns the lines of the shared data, or the reason why there are none."""
    folder = os.environ.get("FOLDWORK_SHARED")
    if not folder:
        return None, "FOLDWORK_SHARED is not set"
    file = pathlib.Path(folder) / "data" / "rfcs.ndjson.zst"
    if not file.exists():
        return None, f"{file} is not there"
    if not shutil.which("zstd"):
        return None, "zstd is not installed, so the data cannot be unpacked"
    unpacked = subprocess.run(["zstd", "-dcq", "--long=27", file], check=True, stdout=subprocess.PIPE).stdout
    return file, unpacked.splitlines()


def synthetic_lines(chance):
    """Returns a few thousand events over a few hundred streams."""
    versions, deleted = {}, set()
    for number in range(4000):
        stream = f"made-{chance.randrange(300)}"
        if stream in deleted:
            continue
        verb = "updated" if stream in versions else "created"
        if verb == "updated" and chance.random() < 0.01:
            verb = "deleted"
            deleted.add(stream)
        versions[stream] = versions.get(stream, 0) + 1
        payload = {"title": f"{stream} at {versions[stream]}", "number": number, "ratio": chance.random(),
                   "body": chance.choice(["wide ", "deep ", "näive "]) * chance.randrange(1, 400),
                   "tags": chance.sample(["a", "b", "c", "d"], 2), "maybe": chance.choice([None, True, 1.5])}
        if chance.random() < 0.1:
            payload["$unset"] = ["maybe"]
            del payload["maybe"]
        yield json.dumps({"aggregate_id": stream, "aggregate_type": "article", "event_type": f"article.{verb}",
                          "project_id": "synthetic", "payload": {} if verb == "deleted" else payload,
                          "metadata": {"line": number}, "occurred_at": "2024-01-02T03:04:05Z"},
                         ensure_ascii=False).encode()


def with_free_slug(event, slugs):
    """Replaces the slug of an event if another article has this slug, in the same way as the import. `slugs` contains
    the slug of each article."""
    stream, slug = event["aggregate_id"], event["payload"].get("slug")
    if event["event_type"] == "article.deleted":
        slugs.pop(stream, None)
    elif slug is not None and slugs.get(stream) != slug:
        taken = {slugs[other] for other in slugs if other != stream}
        numbered = (f"{slug}-{number}" for number in itertools.count(2))
        event["payload"]["slug"] = next(free for free in itertools.chain([slug], numbered) if free not in taken)
        slugs[stream] = event["payload"]["slug"]


class Source:
    """The imported events, in the order of their lines."""

    def __init__(self, folder, chance):
        self.file, lines = shared_lines()
        if self.file is None:
            print(f"shared data skipped ({lines}): a synthetic stream is imported instead")
            lines = list(synthetic_lines(chance))
            self.file = folder / "synthetic.ndjson"
            self.file.write_bytes(b"\n".join(lines) + b"\n")
        self.events, slugs = [], {}
        for line in lines:
            event = json.loads(line)
            with_free_slug(event, slugs)
            self.events.append((event["aggregate_id"], event["event_type"], digest(event["payload"])))
        self.streams = sorted({stream for stream, _, _ in self.events})


class Log:
    """The log, read once over HTTP."""

    def __init__(self, client, kept_streams):
        self.events, self.positions, self.versions, self.kept = [], {}, {}, {stream: [] for stream in kept_streams}
        while True:
            page = client.read("GET", f"/events?limit=200&after={len(self.events)}")
            for event in page["data"]:
                self.take(event, kept_streams)
            if not page["data"]:
                check(page["next_cursor"] is None, "an empty page has a cursor")
                return

    def take(self, event, kept_streams):
        position, stream, event_id = event["position"], event["aggregate_id"], event["event_id"]
        check(position == len(self.events) + 1, f"position {position} follows {len(self.events)}")
        version = self.versions.get(stream, 0) + 1
        check(event["version"] == version, f"{stream} continues with version {event['version']}, expected {version}")
        self.versions[stream] = version
        check(event_id not in self.positions, f"event {event_id} exists twice")
        self.positions[event_id] = position
        self.events.append((event_id, stream, version, event["event_type"], digest(event["payload"])))
        if stream in kept_streams:
            self.kept[stream].append(event)

    def imported(self):
        """Returns the imported events in order."""
        return [(stream, event_type, payload) for _, stream, _, event_type, payload in self.events
                if event_type.startswith("article.") and not stream.startswith("side-")]


class Verifier:
    """Checks the log and the states after a start."""

    def __init__(self, server, source, writers, chance):
        self.server, self.source, self.writers, self.chance = server, source, writers, chance
        self.before = []

    def verify(self, shown):
        client = self.server.client()
        side = {f"side-{writer}-{stream}" for writer in range(WRITERS) for stream in range(STREAMS_PER_WRITER)}
        sample = side | set(self.chance.sample(self.source.streams, min(SAMPLE, len(self.source.streams))))
        log = Log(client, sample)
        check(log.events[:len(self.before)] == self.before, "events read after an earlier start have changed")
        self.before = log.events
        imported = log.imported()
        check(imported == self.source.events[:len(imported)], "the imported events are not the first lines of the file")
        check(len(imported) >= shown, f"import showed {shown} acknowledged events, but the log has {len(imported)}")
        self.verify_answered(client, log)
        self.verify_states(client, log, sample)
        return log

    def verify_answered(self, client, log):
        answered = {}
        for writer in self.writers:
            check(writer.refused is None, writer.refused)
            answered.update(writer.answered)
        for event_id, (stream, version, position) in answered.items():
            check(log.positions.get(event_id) == position,
                  f"{event_id} was acknowledged at position {position} but is missing")
            check(log.events[position - 1][1:3] == (stream, version), f"{event_id} is not at its acknowledged place")
        doubtful = {writer.in_doubt[1]["event_id"] for writer in self.writers if writer.in_doubt}
        unknown = [event_id for event_id, stream, *_ in log.events
                   if stream.startswith("side-") and event_id not in answered and event_id not in doubtful]
        check(not unknown, f"unknown events in the log: {unknown[:3]}")
        repeat = self.chance.sample(sorted(answered), min(5, len(answered)))
        for event_id in repeat:
            number, count = (int(part) for part in event_id.rsplit("-", 2)[1:])
            again = Writer(number)
            again.count = count - 1
            stream, event = again.next_event()
            status, answer = client.call("POST", f"/aggregates/{stream}/events", event)
            check(status == 200 and answer["position"] == answered[event_id][2],
                  f"{event_id} sent again gets {status}: {str(answer)[:200]}")

    def rows(self, client, pipeline, source):
        answer = client.read("POST", "/aggregates/query", {"pipeline": pipeline, "explain": True})
        read = answer["explain"]["stages"][0]["source"]
        check(read == source, f"the states are read from {read}, expected {source}")
        return answer["results"]

    def verify_states(self, client, log, sample):
        rows, from_log = self.rows(client, STATES, "resident"), self.rows(client, STATES_FROM_LOG, "log")
        check(len(rows) == len(from_log), f"{len(rows)} states, {len(from_log)} folded from the log")
        for row, again in zip(rows, from_log):
            # Plugins may change facts between the two queries.
            del row["_facts"], again["_facts"]
            check(row == again, f"{row['_id']} differs from its fold from the log")
        by_id = {row["_id"]: row for row in rows}
        check(len(by_id) == len(rows), "a state exists twice")
        for stream in sample:
            expected = fold(log.kept[stream])
            row = by_id.get(stream)
            if expected is None:
                check(row is None, f"{stream} has a state and no events, or is deleted")
                continue
            check(row is not None, f"{stream} has events and no state")
            state = {name: value for name, value in row.items()
                     if not name.startswith("_") and name not in ("aggregate_type", "project_id")}
            check(state == expected, f"{stream} is not what its events fold to")
            last = log.kept[stream][-1]
            check((row["_version"], row["_position"]) == (last["version"], last["position"]),
                  f"{stream} is at another position")


def fold(events):
    """Returns the state of a stream as the documentation defines it: a shallow merge in order, `$unset`, `deleted`."""
    if not events or events[-1]["event_type"].endswith(".deleted"):
        return None
    state = {}
    for event in events:
        for name, value in event["payload"].items():
            if name == "$unset":
                for removed in value:
                    state.pop(removed, None)
            else:
                state[name] = value
    return state


def under_load(server, source, writers, seconds):
    """Imports and appends for some time, kills the server, and returns the number of imported events that were
    acknowledged."""
    ended = threading.Event()
    threads = [threading.Thread(target=writer.run, args=(server.client(timeout=60), ended)) for writer in writers]
    for thread in threads:
        thread.start()
    running = Import(server.program, server, source.file)
    time.sleep(seconds)
    server.kill()
    ended.set()
    for thread in threads:
        thread.join()
    return running.end()


def play_round(number, server, source, writers, verifier, chance, longest):
    seconds = chance.uniform(0.05, longest)
    shown = under_load(server, source, writers, seconds)
    again = ""
    if chance.random() < 0.3:
        # Kills a server while it starts. This must lose no data.
        server.launch()
        time.sleep(chance.uniform(0, 0.5))
        server.kill()
        server.process.stdout.close()
        again = " and while starting"
    started = server.start()
    log = verifier.verify(shown)
    alone = sum(len(writer.answered) for writer in writers)
    print(f"round {number}: killed after {seconds:.2f} s{again}; {len(log.events)} events in {len(log.versions)} streams, "
          f"{len(log.imported())} imported ({shown} shown), {alone} written alone; started in {started:.2f} s: passed",
          flush=True)


def finish_import(server, source, verifier):
    total = len(source.events)
    first = Import(server.program, server, source.file).finish()
    second = Import(server.program, server, source.file).finish()
    check(second.startswith(f"imported 0 events ({total} more already in the log)"), f"the second import prints: {second}")
    log = verifier.verify(total)
    check(log.imported() == source.events, "the log does not hold the file's events in their order")
    print(f"import to its end: {first}; again: {second}; exactly {total} events in the file's order: passed", flush=True)


def stop_orderly(server, source, verifier):
    code = server.terminate()
    check(code == 0, f"the server exits with {code} after SIGTERM")
    started = server.start()
    verifier.verify(len(source.events))
    print(f"stop with SIGTERM: exit code 0; started in {started:.2f} s: passed", flush=True)


def append(program, folder, key, rounds, chance, longest):
    """Runs the rounds, then completes the import and stops the server cleanly. Returns the numbers of passed and failed
    steps."""
    source = Source(folder, chance)
    server = Server(program, folder, key)
    writers = [Writer(number) for number in range(WRITERS)]
    verifier = Verifier(server, source, writers, chance)
    steps = [(f"round {number}", lambda number=number: play_round(
        number, server, source, writers, verifier, chance, longest))
        for number in range(1, rounds + 1)]
    steps.append(("import to its end", lambda: finish_import(server, source, verifier)))
    steps.append(("stop with SIGTERM", lambda: stop_orderly(server, source, verifier)))
    return play(server, steps)
