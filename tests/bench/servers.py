"""Measures what several servers on one SurrealDB cost, as ratios in one run.

* appends through one server, compared with a server that has its store in a folder
* appends through two servers, to a workspace of each and to the same workspace, compared with one server
* the time that a read needs more than on a server that has its store in a folder
* the time from an append on one server to the event on a stream of another one
* the processor time of a server on which 1,000 workspaces are open and idle
"""

import argparse
import base64
import hashlib
import hmac
import http.client
import itertools
import json
import os
import pathlib
import queue
import re
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

# Prevents Python from writing bytecode into the repository.
sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "crash"))

from server import Client, Server
from servers import Member, Store, build_store

CONNECTIONS = 32
READS = 1_000
WAKE_UPS = 300
WORKSPACES = 1_000
IDLE_S = 30
ISSUER = "https://bench.example.com"
SECRET = secrets.token_hex(32)
SETTINGS = f"""
[plugins]
enabled = []

[[auth.issuers]]
issuer = "{ISSUER}"
audience = "bench"
algorithms = ["HS256"]
hs256_secret_env = "BENCH_SECRET"
"""
STREAM_NAMES = (f"run-{number}" for number in itertools.count(1))
missed = 0


def part(value):
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def token_of(user):
    """Returns the token of a user, whose workspace is created at the first request."""
    claims = {"iss": ISSUER, "aud": "bench", "sub": user, "exp": int(time.time()) + 86_400, "iat": int(time.time()),
              "email": f"{user}@example.com"}
    text = ".".join(part(json.dumps(value).encode()) for value in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{text}.{part(hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).digest())}"


def configured(server):
    (server.folder / "config.toml").write_text(SETTINGS, encoding="utf-8")
    server.environment |= {"BENCH_SECRET": SECRET}
    return server


def appends(targets, seconds):
    """Appends through all targets at the same time, each a server's address and a token. Returns the rate of all."""
    runs = []
    for address, token in targets:
        environment = dict(os.environ, FOLDWORK_TOKEN=token, FOLDWORK_STREAMS=next(STREAM_NAMES))
        command = ["wrk", "-t1", "--timeout", "60s", f"-c{CONNECTIONS // len(targets)}", f"-d{seconds}s", "-s", str(HERE / "http.lua"),
                   f"http://{address}"]
        runs.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    rate = 0
    for run in runs:
        output = run.communicate()[0]
        if "Non-2xx" in output or "Socket errors" in output or run.returncode:
            sys.exit(output)
        rate += float(re.search(r"Requests/sec:\s*([\d.]+)", output).group(1))
    return rate


def read_ms(client, path):
    """Returns the median time of a read in milliseconds."""
    times = []
    for _ in range(READS):
        began = time.perf_counter()
        client.read("GET", path)
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def follow(address, key, found):
    """Puts the time at which each event of a stream arrives into a queue, by the event's id."""
    connection = http.client.HTTPConnection(address)
    headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
    head = Client(address, key, 60).read("GET", "/events?direction=desc&limit=1")["data"]
    after = head[0]["position"] if head else 0
    connection.request("GET", f"/api/v1/events?after={after}", headers=headers)
    response = connection.getresponse()
    for line in response:
        if line.startswith(b"data:") and b"event_id" in line:
            found.put((json.loads(line[5:])["event_id"], time.perf_counter()))


def wake_ups(writer, reader, key):
    """Returns the sorted times in milliseconds from an append on one server to its event on a stream of another one."""
    found = queue.Queue()
    threading.Thread(target=follow, args=(reader, key, found), daemon=True).start()
    time.sleep(1)
    client, times = Client(writer, key, 60), []
    for number in range(WAKE_UPS):
        event = {"event_id": secrets.token_hex(16), "aggregate_type": "article", "event_type": "article.changed",
                 "payload": {"n": number}}
        began = time.perf_counter()
        status, answer = client.call("POST", "/aggregates/woken/events", event)
        if status not in (200, 201):
            sys.exit(f"an append is answered with {status}: {answer}")
        event_id, arrived = found.get(timeout=60)
        if event_id != event["event_id"]:
            sys.exit(f"{event_id} arrives instead of {event['event_id']}")
        times.append((arrived - began) * 1000)
        # The beats of the pulse are not in step with the appends.
        time.sleep(secrets.randbelow(60) / 1000)
    return sorted(times)


def processor_s(server):
    """Returns the processor time in seconds that a server has used."""
    with open(f"/proc/{server.process.pid}/stat", encoding="ascii") as stat:
        user, system = stat.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def idle_share(server):
    """Opens workspaces on a server. Returns the share of one processor that the server uses afterwards without requests,
    in percent."""
    for number in range(WORKSPACES):
        client = Client(server.address, token_of(f"user-{number}"), 60)
        client.read("GET", "/workspace")
        client.read("GET", "/events?limit=1")
        client.connection.close()
    time.sleep(5)
    began, used = time.monotonic(), processor_s(server)
    time.sleep(IDLE_S)
    return (processor_s(server) - used) / (time.monotonic() - began) * 100


def row(what, measured, beside, figure, bound, threshold):
    global missed
    holds = threshold is None or (figure >= threshold if bound == "least" else figure <= threshold)
    missed += not holds
    limit = "" if threshold is None else f"at {bound} {threshold}"
    print(f"| {what:<58} | {measured:>10} | {beside:>10} | {figure:>7.2f} | {limit:<13} | {'holds' if holds else 'missed':<6} |")


def measure(arguments, folder, key):
    (folder / "embedded").mkdir()
    embedded = configured(Server(arguments.program, folder / "embedded", key))
    store = Store(arguments.store or build_store(release=not arguments.debug), folder)
    members = [configured(Member(arguments.program, folder / f"server-{number}", key, store, number)) for number in (1, 2)]
    first, second = members
    try:
        store.start()
        for server in (embedded, first, second):
            server.start()
        # Creates the second workspace, through which the two servers do not meet.
        other = token_of("other")
        Client(second.address, other, 60).read("GET", "/workspace")
        rates = {"embedded": [], "one": [], "apart": [], "together": []}
        for number in range(arguments.rounds):
            rates["embedded"].append(appends([(embedded.address, key)], arguments.seconds))
            rates["one"].append(appends([(first.address, key)], arguments.seconds))
            rates["apart"].append(appends([(first.address, key), (second.address, other)], arguments.seconds))
            rates["together"].append(appends([(first.address, key), (second.address, key)], arguments.seconds))
            print(f"round {number + 1}: " + ", ".join(f"{name} {taken[-1]:.0f}/s" for name, taken in rates.items()), flush=True)
        rates = {name: statistics.median(taken) for name, taken in rates.items()}
        for server in (embedded, first):
            server.client().call("POST", "/aggregates/read/events", {
                "aggregate_type": "article", "event_type": "article.created", "payload": {"title": "Read"}})
        reads = {"embedded": [], "remote": [], "eventual": []}
        for _ in range(arguments.rounds):
            reads["embedded"].append(read_ms(embedded.client(), "/aggregates/read"))
            reads["remote"].append(read_ms(first.client(), "/aggregates/read"))
            reads["eventual"].append(read_ms(first.client(), "/aggregates/read?consistency=eventual"))
        reads = {name: statistics.median(taken) for name, taken in reads.items()}
        here, elsewhere = wake_ups(first.address, first.address, key), wake_ups(first.address, second.address, key)
        share = idle_share(second)
    finally:
        for server in (embedded, first, second):
            server.kill()
        store.kill()

    def p99(times):
        return times[int(len(times) * 0.99)]

    print(f"\n{os.cpu_count()} processors, {arguments.seconds} s each, median of {arguments.rounds}")
    print(f"| {'what':<58} | {'measured':>10} | {'beside':>10} | {'figure':>7} | {'threshold':<13} | {'':<6} |")
    print(f"|{'-' * 60}|{'-' * 12}|{'-' * 12}|{'-' * 9}|{'-' * 15}|{'-' * 8}|")
    row("appends, one server on SurrealDB / a store in a folder", f"{rates['one']:.0f}/s", f"{rates['embedded']:.0f}/s",
        rates["one"] / rates["embedded"], "least", None)
    row("appends, two servers, a workspace each / one server", f"{rates['apart']:.0f}/s", f"{rates['one']:.0f}/s",
        rates["apart"] / rates["one"], "least", None)
    row("appends, two servers, the same workspace / one server", f"{rates['together']:.0f}/s", f"{rates['one']:.0f}/s",
        rates["together"] / rates["one"], "least", None)
    row("a read on SurrealDB minus one on a folder, ms", f"{reads['remote']:.2f} ms", f"{reads['embedded']:.2f} ms",
        reads["remote"] - reads["embedded"], "most", None)
    row("an eventual read minus one on a folder, ms", f"{reads['eventual']:.2f} ms", f"{reads['embedded']:.2f} ms",
        reads["eventual"] - reads["embedded"], "most", None)
    row("append to its event on another server, 99 of 100, ms", f"{p99(elsewhere):.0f} ms", f"{p99(here):.0f} ms",
        p99(elsewhere), "most", 250)
    row(f"{WORKSPACES} open workspaces without requests, % of a processor", f"{share:.2f} %", "", share, "most", 2)
    print(f"half of the events arrive on another server after {statistics.median(elsewhere):.0f} ms, and on the same server "
          f"after {statistics.median(here):.0f} ms")
    print(f"{missed} thresholds missed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--store", help="the program of SurrealDB; the default is built")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--debug", action="store_true", help="build the store without optimization")
    parser.add_argument("--strict", action="store_true", help="fail if a threshold is missed")
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="foldwork-bench-"))
    try:
        measure(arguments, folder, "sk_" + secrets.token_hex(32))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if arguments.strict and missed else 0)


if __name__ == "__main__":
    main()
