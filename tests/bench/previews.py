"""Measures requests of other keys while eight readers repeat an expensive request of one key, and prints a table.

The expensive requests are the preview of an approval of 500 effects, of 100 effects on an aggregate with 9,990 later
events, a page of tasks with large rows, a page of large articles, and the heartbeat of 1,000 agents beside 40,000 tasks.
A second key meanwhile reads the list of agents and appends an event. The server has its default limits.
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import secrets
import statistics
import sys
import tempfile
import threading
import time

# Prevents Python from writing bytecode into the repository.
sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "crash"), str(TESTS / "cost")]

import content
from server import Server

READERS = 8
# The maximum time of a response to the second key, in ms.
MOST_OTHER_MS = 250
STALE_EVENTS = 9_990
# The numbers of agents and tasks for the heartbeat, and of requests in one batch.
AGENTS = 1_000
TASKS = 40_000
# The pause between two requests of the second key, in seconds.
LOOK_S = 0.02
APPEND = {"aggregate_type": "note", "event_type": "note.seen", "payload": {}}
missed = 0


class Caller:
    """A connection with a key that measures its requests."""

    def __init__(self, server, key):
        self.connection = http.client.HTTPConnection(server.address, timeout=120)
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self.times_ms, self.statuses = [], {}

    def call(self, method, path, body=None):
        began = time.monotonic()
        self.connection.request(method, f"/api/v1{path}", None if body is None else json.dumps(body), self.headers)
        response = self.connection.getresponse()
        answer = response.read()
        self.times_ms.append((time.monotonic() - began) * 1e3)
        self.statuses[response.status] = self.statuses.get(response.status, 0) + 1
        return response.status, answer

    def repeat(self, until, request, pause_s=0.0):
        while not until.wait(pause_s) if pause_s else not until.is_set():
            self.call(*request)

    def p99(self):
        return statistics.quantiles(self.times_ms, n=100, method="inclusive")[98] if len(self.times_ms) > 1 else self.times_ms[0]


class Prepared:
    """The ids of the tasks that were created, by their names."""

    def __init__(self, server):
        self.client, self.ids = server.client(), {}

    def named(self, text):
        return re.sub(r"@(\w+)@", lambda found: self.ids.get(found.group(1), found.group(0)), text)

    def send(self, requests):
        for name, method, path, body in requests:
            status, answer = self.client.call(method, self.named(path), json.loads(self.named(json.dumps(body))))
            if status >= 300:
                sys.exit(f"{method} {path} answers {status}: {str(answer)[:400]}")
            if name:
                self.ids[name] = answer.get("id") or answer["aggregate_id"]


def stale():
    """Prepares a task whose 100 effects concern an aggregate with many later events."""
    event = {"aggregate_id": "busy", "aggregate_type": "note", "event_type": "note.counted", "payload": {"n": 1}}
    effect = {"aggregate_id": "busy", "event_type": "note.counted", "payload": {"n": 2}, "expected_version": 1}
    yield None, "POST", "/events", {"events": [event]}
    drafts = [{"name": f"stale {number}", "text": "x", "effect": effect} for number in range(100)]
    yield "stale", "POST", "/mailbox", {"title": "stale", "source": {"aggregate_id": "busy"}, "artifacts": drafts}
    for first in range(0, STALE_EVENTS, 500):
        yield None, "POST", "/events", {"events": [event] * min(500, STALE_EVENTS - first)}


def crowd():
    """Prepares the agents and tasks of the heartbeat. `content` has prepared the first agents."""
    for number in range(content.AGENTS, AGENTS):
        yield f"agent{number}", "POST", "/agents", {"name": f"agent {number}"}
    for number in range(TASKS):
        yield None, "POST", "/mailbox", {"title": f"task {number}", "assignee_type": "agent",
                                         "assignee_id": f"@agent{number % AGENTS}@"}


def measure(server, keys, what, request):
    """Repeats a request by all readers, and prints a row with its times and those of the second key."""
    global missed
    readers = [Caller(server, keys[0]) for _ in range(READERS)]
    list_agents, append = (Caller(server, keys[1]) for _ in range(2))
    until = threading.Event()
    threads = [threading.Thread(target=reader.repeat, args=(until, request)) for reader in readers]
    threads += [threading.Thread(target=list_agents.repeat, args=(until, ("GET", "/agents"), LOOK_S)),
                threading.Thread(target=append.repeat, args=(until, ("POST", "/aggregates/seen/events", APPEND), LOOK_S))]
    for thread in threads:
        thread.start()
    time.sleep(arguments.seconds)
    until.set()
    for thread in threads:
        thread.join()
    statuses = {}
    for reader in readers:
        for status, number in reader.statuses.items():
            statuses[status] = statuses.get(status, 0) + number
    refused = [status for other in (list_agents, append) for status in other.statuses if status >= 300]
    holds = max(list_agents.p99(), append.p99()) <= MOST_OTHER_MS and not refused
    missed += not holds
    times = [each for reader in readers for each in reader.times_ms]
    print(f"| {what} | {', '.join(f'{number} × {status}' for status, number in sorted(statuses.items()))} | "
          f"{statistics.median(times):.0f} | {list_agents.p99():.0f}, {max(list_agents.times_ms):.0f} | "
          f"{append.p99():.0f}, {max(append.times_ms):.0f} | {'holds' if holds else 'missed'} |", flush=True)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--program", required=True)
parser.add_argument("--seconds", type=float, default=10)
parser.add_argument("--strict", action="store_true")
arguments = parser.parse_args()
with tempfile.TemporaryDirectory(prefix="foldwork-bench-") as folder:
    server = Server(arguments.program, pathlib.Path(folder), f"sk_{secrets.token_hex(32)}")
    server.environment = {name: value for name, value in server.environment.items() if "PIPELINE__" not in name}
    server.start()
    try:
        prepared = Prepared(server)
        second = prepared.client.call("POST", "/keys", {"name": "second", "scopes": ["api:read", "api:write"]})[1]["key"]
        prepared.send([(None, "POST", "/aggregates/define", {"type_name": "note"}), *content.preparation()])
        prepared.send(stale())
        print(f"{os.cpu_count()} processors, {READERS} readers, {arguments.seconds:g} s each\n")
        print("| repeated | responses | ms, median | `GET /agents` of another key, ms, p99 and most | an append of "
              f"another key, at most {MOST_OTHER_MS} at p99 | |")
        print("| --- | --- | --- | --- | --- | --- |")
        keys = (server.key, second)
        tasks = {name: f"/mailbox/{prepared.ids[name]}" for name in ("wide", "stale")}
        measure(server, keys, "nothing", ("GET", "/profile"))
        measure(server, keys, "preview of 500 effects", ("GET", tasks["wide"]))
        measure(server, keys, f"preview of 100 effects behind {STALE_EVENTS:,} events", ("GET", tasks["stale"]))
        measure(server, keys, "page of tasks of 60 kB", ("GET", "/mailbox?limit=200"))
        measure(server, keys, "page of articles of 800 kB", ("GET", "/articles?limit=200"))
        prepared.send(crowd())
        beat = {"agent_ids": [prepared.ids[f"agent{number}"] for number in range(AGENTS)]}
        measure(server, keys, f"heartbeat of {AGENTS:,} agents beside {TASKS:,} tasks", ("POST", "/agents/heartbeat", beat))
    finally:
        server.terminate()
print(f"{missed} rows missed the threshold")
sys.exit(1 if arguments.strict and missed else 0)
