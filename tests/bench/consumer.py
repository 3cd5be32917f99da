"""Measures the follower that calls plugins: after an import, around a node of the graph, and after small events."""

import argparse
import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

CALLS = 50
# The article with the most events, and the article with the most edges.
NODES = ["rfc-0591", "rfc-0185"]
ARTICLES = 2_000
EVENTS = 60_000
BATCH = 500
# The time limit for the follower to catch up, in seconds.
TIMEOUT = 600
SETTINGS = """
[plugins.linker]
patterns = [
    { regex = "rust-lang/rfcs#([0-9]+)", field = "number" },
    { regex = "rfcs/pull/([0-9]+)", field = "number" },
]
"""
missed = 0


class Server:
    """A server with the default plugins and its own store."""

    def __init__(self, name):
        folder = os.path.join(arguments.folder, name)
        os.mkdir(folder)
        with open(os.path.join(folder, "config.toml"), "w", encoding="utf-8") as config:
            config.write(SETTINGS)
        log = os.path.join(arguments.folder, "server.log")
        command = [sys.executable, arguments.first_answer, arguments.program, f"surrealkv://{folder}/store", log]
        started = subprocess.run(command, text=True, capture_output=True, check=True, cwd=folder)
        _, self.address, pid = started.stdout.split()
        self.pid = int(pid)
        self.connection = http.client.HTTPConnection(self.address, timeout=600)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGTERM)
        while os.path.exists(f"/proc/{self.pid}"):
            time.sleep(0.05)

    def call(self, method, path, body=None):
        headers = {"Authorization": f"Bearer {os.environ['FOLDWORK_BOOTSTRAP_KEY']}", "Prefer": "return=minimal"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        answer = response.read()
        if response.status not in (200, 201):
            sys.exit(f"{path}: {response.status} {answer[:300]}")
        return answer

    def cpu(self):
        """Returns the processor time in seconds that the server has used."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as stat:
            user, system = stat.read().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def append(self, bodies):
        for body in bodies:
            self.call("POST", "/api/v1/events", body)

    def caught_up(self):
        """Waits until the follower has processed every event. Returns the number of parked steps."""
        end = time.perf_counter() + TIMEOUT
        while time.perf_counter() < end:
            consumers = json.loads(self.call("GET", "/api/v1/system/consumers"))["consumers"]
            graph = next(consumer for consumer in consumers if consumer["name"] == "graph")
            if graph["lag"] == 0:
                return graph["parked"]
            time.sleep(0.02)
        sys.exit(f"the follower is {graph['lag']} events behind after {TIMEOUT} s")


def article(number, version):
    """Returns the fields of a small article whose body has two links. One link changes in every tenth version."""
    changing = (number * 7 + version // 10) % ARTICLES
    body = f"# Title {number}\n\nVersion {version} reads on in [the next](text/slug-{(number + 1) % ARTICLES}.md) and in " \
           f"`text/slug-{changing}.md`.\n\n## Reasons\n\nBecause *this* is what small bodies look like."
    return {"title": f"Title {number}", "slug": f"slug-{number}", "number": number, "body": body}


def batches(verb, events):
    events = [{"aggregate_id": f"a-{number}", "aggregate_type": "article", "event_type": f"article.{verb}",
               "payload": payload} for number, payload in events]
    return [json.dumps({"events": events[start:start + BATCH]}) for start in range(0, len(events), BATCH)]


def row(what, measured, kind, wanted):
    global missed
    holds = measured >= wanted if kind == "least" else measured <= wanted
    missed += not holds
    print(f"| {what:<55} | {measured:>9,.1f} | at {kind:<5} {wanted:>5} | {'holds' if holds else 'missed':<6} |", flush=True)


def measure_import():
    with Server("imported") as server:
        began, cpu = time.perf_counter(), server.cpu()
        done = subprocess.run([arguments.program, "import", "--server", f"http://{server.address}", arguments.data],
                              text=True, capture_output=True, check=True).stdout
        imported = time.perf_counter()
        parked = server.caught_up()
        end = time.perf_counter()
        events = int(re.match(r"imported (\d+) events", done).group(1))
        print(f"import of {events} events: {imported - began:.1f} s, with all plugins called {end - began:.1f} s, "
              f"{events / (end - began):,.0f} events/s, {server.cpu() - cpu:.1f} s of the processors")
        row("the follower after the end of the import, s", end - imported, "most", 5)
        row("steps parked in the import", parked, "most", 0)
        for node in NODES:
            measure_graph(server, node)


def measure_graph(server, node):
    times = []
    for _ in range(CALLS):
        began = time.perf_counter()
        answer = server.call("GET", f"/api/v1/aggregates/{node}/graph?depth=2")
        times.append((time.perf_counter() - began) * 1e3)
    graph = json.loads(answer)
    print(f"the graph around {node} to a depth of 2: {len(graph['nodes'])} nodes, {len(graph['edges'])} edges")
    row("its time, p50, ms", statistics.median(times), "most", 50)
    row("its time, p99, ms", statistics.quantiles(times, n=100, method="inclusive")[98], "most", 50)


def measure_small():
    created = batches("created", [(number, article(number, 0)) for number in range(ARTICLES)])
    changed = [(number, article(number, version)) for version in range(1, EVENTS // ARTICLES + 1)
               for number in range(ARTICLES)]
    changed = batches("updated", changed)
    with Server("small") as server:
        server.append(created)
        server.caught_up()
        began, cpu = time.perf_counter(), server.cpu()
        server.append(changed)
        appended = time.perf_counter()
        parked = server.caught_up()
        end = time.perf_counter()
        print(f"{EVENTS} small events over {ARTICLES} articles: appended in {appended - began:.1f} s, "
              f"with all plugins called {end - began:.1f} s, {server.cpu() - cpu:.1f} s of the processors")
        row("small events with all plugins called, events/s", EVENTS / (end - began), "least", 3000)
        row("steps parked by them", parked, "most", 0)


parser = argparse.ArgumentParser(description=__doc__)
for name in ["program", "first-answer", "folder"]:
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--data")
parser.add_argument("--strict", action="store_true")
arguments = parser.parse_args()
print(f"{os.cpu_count()} processors")
if arguments.data:
    measure_import()
else:
    print("import skipped: FOLDWORK_SHARED names no folder with data/rfcs.ndjson.zst")
measure_small()
print(f"{missed} thresholds missed")
sys.exit(1 if arguments.strict and missed else 0)
