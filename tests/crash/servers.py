"""Three servers on one SurrealDB, any of which is killed, stopped for longer than its lease, or loses the store.

Meanwhile, writers append events, claim tasks and define types, each request at another server, and read what they wrote at
a third one. Every answered write must exist exactly once, at its position, and the log must have no gap. A request may
only be answered with success, 409 or 503. A read after an answered write must show the write, or fail with 503.
"""

import collections
import http.client
import itertools
import os
import pathlib
import random
import signal
import socket
import subprocess
import threading
import time

from server import Client, Failure, Server, check

SERVERS = 3
WRITERS = 4
STREAMS = 6
# The time without a report after which the servers count a server as dead, and the longest time until another one leads.
LEASE_S = 10
TAKEOVER_LIMIT_S = 15
# The time limit of a query, and of a request of these tests.
STORE_TIMEOUT_MS = 3000
REQUEST_TIMEOUT_S = 20
READY_LIMIT_S = 60
PAGE = 200
PASSWORD = "secret"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Store:
    """A SurrealDB in a process of its own, which syncs every commit."""

    def __init__(self, program, folder):
        self.program, self.folder, self.port = program, folder, free_port()
        self.process = None

    def start(self):
        environment = dict(os.environ, SURREAL_SYNC_DATA="every", SURREAL_LOG="warn")
        with open(self.folder / "store.log", "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "start", "--no-banner", "--bind", f"127.0.0.1:{self.port}", "--user", "root",
                 "--pass", PASSWORD, f"surrealkv://{self.folder}/store"],
                cwd=self.folder, env=environment, stdout=log, stderr=log)
        ends = time.monotonic() + READY_LIMIT_S
        while status_of(f"127.0.0.1:{self.port}", "/health") != 200:
            check(self.process.poll() is None, f"the store ended in its start, see {self.folder}/store.log")
            check(time.monotonic() < ends, "the store does not respond after its start")
            time.sleep(0.05)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()


class Member(Server):
    """One of several servers on a store."""

    def __init__(self, program, folder, key, store, number):
        folder.mkdir()
        super().__init__(program, folder, key)
        self.number = number
        self.database = f"ws://127.0.0.1:{store.port}"
        self.listen = f"127.0.0.1:{free_port()}"
        self.address = self.listen
        self.environment |= {
            "FOLDWORK_STORE_USER": "root",
            "FOLDWORK_STORE_PASSWORD": PASSWORD,
            "FOLDWORK_STORE__TIMEOUT": f"{STORE_TIMEOUT_MS} ms",
            "FOLDWORK_FILES__URL": f"file://{folder.parent}/files",
        }

    def consumers(self):
        """Returns the response of `GET /system/consumers`, or `None` if there is none at the moment."""
        try:
            status, answer = Client(self.address, self.key, 5).call("GET", "/system/consumers")
            return answer if status == 200 else None
        except (OSError, http.client.HTTPException, ValueError):
            return None


def status_of(address, path):
    """Returns the status of a response, or `None` without a response."""
    connection = http.client.HTTPConnection(address, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


class Load:
    """Writers that know what they were answered."""

    def __init__(self, members, key, seed):
        self.members, self.key, self.seed = members, key, seed
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self.answered, self.claims, self.types = {}, {}, set()
        self.statuses = collections.Counter()
        self.failures = []
        self.threads = [threading.Thread(target=self.run, args=(number,), daemon=True) for number in range(WRITERS)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()
        check(not self.failures, "; ".join(self.failures[:5]))

    def run(self, number):
        chance = random.Random(f"{self.seed}/{number}")
        try:
            for count in itertools.count(1):
                if self.ended.is_set():
                    return
                self.write(chance, number, count)
        except Failure as failure:
            self.failures.append(str(failure))

    def call(self, chance, method, path, body=None, key=None):
        """Sends a request to any server. Returns `None` if its outcome is not known."""
        member = chance.choice(self.members)
        try:
            status, answer = Client(member.address, self.key, REQUEST_TIMEOUT_S).call(method, path, body, key)
        except TimeoutError:
            # A stopped server answers nothing, and neither does one that waits for a stopped server's transaction.
            return None
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.05)
            return None
        with self.lock:
            self.statuses[status] += 1
        check(status < 500 or status == 503, f"{method} {path} on server {member.number}: {status} {answer}")
        if status == 503:
            time.sleep(0.05)
            return None
        return status, answer

    def until_answered(self, *request, **options):
        while not self.ended.is_set():
            answered = self.call(*request, **options)
            if answered is not None:
                return answered
        return None

    def write(self, chance, number, count):
        match chance.randrange(12):
            case 0:
                self.race(chance, number, count)
            case 1:
                self.define(chance, number, count)
            case 2:
                self.work(chance, number, count)
            case _:
                self.append(chance, number, count)

    def append(self, chance, number, count):
        stream = f"s-{number}-{chance.randrange(STREAMS)}" if chance.random() < 0.7 else f"shared-{chance.randrange(3)}"
        event = {"event_id": f"e-{number}-{count}", "aggregate_type": "article", "event_type": "article.changed",
                 "payload": {"title": f"Event {number} {count}", "n": count}}
        answered = self.until_answered(chance, "POST", f"/aggregates/{stream}/events", event)
        if answered is None:
            return
        status, answer = answered
        check(status in (200, 201), f"an event is rejected with {status}: {answer}")
        place = (answer["aggregate_id"], answer["version"], answer["position"])
        with self.lock:
            self.answered[event["event_id"]] = place
        found = self.call(chance, "GET", f"/aggregates/{stream}")
        check(found is None or (found[0] == 200 and found[1]["_version"] >= answer["version"]),
              f"{stream} is read as {found} after version {answer['version']} was answered")

    def race(self, chance, number, count):
        """Appends with an expected version, which other writers may have passed."""
        stream = f"shared-{chance.randrange(3)}"
        found = self.call(chance, "GET", f"/aggregates/{stream}")
        version = found[1]["_version"] if found and found[0] == 200 else 0
        event = {"event_id": f"r-{number}-{count}", "aggregate_type": "article", "event_type": "article.changed",
                 "payload": {"n": count}, "expected_version": version}
        answered = self.until_answered(chance, "POST", f"/aggregates/{stream}/events", event)
        if answered is None or answered[0] == 409:
            return
        status, answer = answered
        check(status in (200, 201), f"an event with an expected version is rejected with {status}: {answer}")
        check(answer["version"] == version + 1, f"expected version {version} was answered with {answer['version']}")
        with self.lock:
            self.answered[event["event_id"]] = (answer["aggregate_id"], answer["version"], answer["position"])

    def define(self, chance, number, count):
        """Defines a type on one server, and uses it on another one at once."""
        name = f"kind_{number}_{count}"
        body = {"type_name": name, "display_name": name, "fields": [{"name": "n", "type": "number"}]}
        answered = self.until_answered(chance, "POST", "/aggregates/define", body)
        if answered is None:
            return
        check(answered[0] in (200, 201), f"a type is rejected with {answered}")
        with self.lock:
            self.types.add(name)
        event = {"event_id": f"k-{number}-{count}", "aggregate_type": name, "event_type": f"{name}.created",
                 "payload": {"n": count}}
        answered = self.until_answered(chance, "POST", f"/aggregates/{name}/events", event)
        if answered is None:
            return
        check(answered[0] in (200, 201), f"an event of a defined type is rejected with {answered}")
        with self.lock:
            answer = answered[1]
            self.answered[event["event_id"]] = (answer["aggregate_id"], answer["version"], answer["position"])

    def work(self, chance, number, count):
        """Creates a task for an agent. Several writers then claim it, and one may win."""
        body = {"title": f"Task {number} {count}", "assignee_type": "agent", "assignee_id": self.agent}
        answered = self.until_answered(chance, "POST", "/mailbox", body, key=f"t-{number}-{count}")
        if answered is None:
            return
        check(answered[0] in (200, 201), f"a task is rejected with {answered}")
        task = answered[1]["id"]
        claim = {"agent_id": self.agent, "lease_seconds": 90, "instance": f"i-{number}-{count}"}
        answered = self.call(chance, "POST", f"/mailbox/{task}/claim", claim)
        with self.lock:
            self.claims[task] = answered


class Trouble:
    """What happens to the servers and the store, round by round."""

    def __init__(self, store, members, chance):
        self.store, self.members, self.chance = store, members, chance
        self.takeovers = []

    def kinds(self):
        return [self.kill_leader, self.sleep_leader, self.restart_store, self.stop_store, self.kill_any]

    def leader(self):
        for member in self.members:
            answer = member.consumers()
            if answer and answer["leader"] and answer["leader"]["is_here"]:
                return member
        return None

    def wait_for_leader(self, other_than, began):
        while True:
            for member in self.members:
                if member is other_than:
                    continue
                answer = member.consumers()
                if answer and answer["leader"] and answer["leader"]["is_here"]:
                    took = time.monotonic() - began
                    self.takeovers.append(took)
                    return f"server {member.number} leads after {took:.1f} s"
            check(time.monotonic() < began + TAKEOVER_LIMIT_S, f"no server leads after {TAKEOVER_LIMIT_S} s")
            time.sleep(0.05)

    def kill_leader(self):
        member = self.leader() or self.chance.choice(self.members)
        began = time.monotonic()
        member.kill()
        told = self.wait_for_leader(member, began)
        member.start()
        return f"killed server {member.number}, which led: {told}"

    def kill_any(self):
        member = self.chance.choice(self.members)
        member.kill()
        time.sleep(self.chance.random())
        member.start()
        return f"killed server {member.number}"

    def sleep_leader(self):
        member = self.leader() or self.chance.choice(self.members)
        began = time.monotonic()
        member.process.send_signal(signal.SIGSTOP)
        try:
            told = self.wait_for_leader(member, began)
            time.sleep(max(0, began + LEASE_S + 2 - time.monotonic()))
        finally:
            member.process.send_signal(signal.SIGCONT)
        return f"stopped server {member.number} for {time.monotonic() - began:.1f} s: {told}"

    def restart_store(self):
        self.store.kill()
        self.expect_unready()
        self.store.start()
        return f"restarted the store: {self.ready_again()}"

    def stop_store(self):
        member = self.chance.choice(self.members)
        # While the store is gone, a server accepts only the keys that it has accepted since its start.
        self.wait_for_read(member)
        self.store.process.send_signal(signal.SIGSTOP)
        try:
            self.expect_unready()
            began = time.monotonic()
            status, _ = Client(member.address, member.key, REQUEST_TIMEOUT_S).call("GET", "/aggregates/shared-0")
            took = time.monotonic() - began
            check(status == 503 and took < STORE_TIMEOUT_MS / 1000 + 2,
                  f"a read without the store is answered with {status} after {took:.1f} s")
            status = self.status_of_read(member)
            check(status in (200, 404), f"an eventual read without the store is answered with {status}")
        finally:
            self.store.process.send_signal(signal.SIGCONT)
        return f"stopped the store: {self.ready_again()}"

    def wait_for_read(self, member):
        ends = time.monotonic() + READY_LIMIT_S
        while self.status_of_read(member) not in (200, 404):
            check(time.monotonic() < ends, f"server {member.number} answers no read")
            time.sleep(0.05)

    def status_of_read(self, member):
        try:
            return member.client(REQUEST_TIMEOUT_S).call("GET", "/aggregates/shared-0?consistency=eventual")[0]
        except (OSError, http.client.HTTPException, ValueError):
            return None

    def expect_unready(self):
        ends = time.monotonic() + STORE_TIMEOUT_MS / 1000 + 7
        for member in self.members:
            while status_of(member.address, "/readyz") != 503:
                check(time.monotonic() < ends, f"server {member.number} is ready without the store")
                time.sleep(0.05)

    def ready_again(self):
        began = time.monotonic()
        for member in self.members:
            while status_of(member.address, "/readyz") != 200:
                check(time.monotonic() < began + READY_LIMIT_S, f"server {member.number} is not ready again")
                time.sleep(0.05)
        return f"all are ready {time.monotonic() - began:.1f} s after it is back"


def read_log(client):
    events, after = [], 0
    while True:
        page = client.read("GET", f"/events?after={after}&limit={PAGE}")
        events.extend(page["data"])
        if not page["data"]:
            return events
        after = page["data"][-1]["position"]


def compare(members, load):
    """Compares the log with what the writers were answered, and the servers with each other."""
    clients = [member.client() for member in members]
    events = read_log(clients[0])
    positions = [event["position"] for event in events]
    check(positions == list(range(1, len(events) + 1)), "the log has a gap or a position twice")
    versions, ids = collections.Counter(), collections.Counter()
    places = {}
    for event in events:
        versions[event["aggregate_id"]] += 1
        ids[event["event_id"]] += 1
        check(event["version"] == versions[event["aggregate_id"]], f"{event['aggregate_id']} has a gap")
        places[event["event_id"]] = (event["aggregate_id"], event["version"], event["position"])
    check(max(ids.values(), default=1) == 1, "an event is in the log twice")
    for event_id, place in load.answered.items():
        check(places.get(event_id) == place, f"{event_id} was answered with {place}, and is at {places.get(event_id)}")
    claims = collections.Counter(event["aggregate_id"] for event in events if event["event_type"] == "task.claimed")
    check(max(claims.values(), default=1) == 1, "a task is claimed twice")
    others = [read_log(client) for client in clients[1:]]
    # Leases of tasks expire while the logs are read, so a log that is read later may be longer.
    check(all(other[:len(events)] == events for other in others), "the servers show different logs")
    pipeline = [{"$match": {"position": {"$lte": len(events)}}}, {"$fold": {}}, {"$sort": {"_id": 1}}]
    states = [client.read("POST", "/aggregates/query", {"pipeline": pipeline})["results"] for client in clients]
    check(all(state == states[0] for state in states), "the servers show different states")
    known = {kind["type_name"] for kind in clients[-1].read("GET", "/aggregate-types")["data"]}
    check(load.types <= known, "a defined type is missing")
    ends = time.monotonic() + READY_LIMIT_S
    while any(consumer["name"] == "graph" and consumer["lag"] for consumer in clients[0].read(
            "GET", "/system/consumers")["consumers"]):
        check(time.monotonic() < ends, "the plugins do not reach the end of the log")
        time.sleep(0.1)
    return len(events)


def share(program, store_program, folder, key, seed, seconds):
    """Runs three servers on one store for some time. Returns the numbers of passed and failed rounds."""
    chance = random.Random(seed)
    store = Store(store_program, folder)
    members = [Member(program, folder / f"server-{number}", key, store, number) for number in range(SERVERS)]
    passed = failed = 0
    try:
        store.start()
        for member in members:
            member.start()
        load = Load(members, key, seed)
        load.agent = members[0].client().call("POST", "/agents", {"name": "Worker"})[1]["id"]
        load.start()
        trouble = Trouble(store, members, chance)
        ends = time.monotonic() + seconds
        for kind in itertools.chain(trouble.kinds(), iter(lambda: chance.choice(trouble.kinds()), None)):
            if time.monotonic() >= ends:
                break
            time.sleep(chance.random())
            before = len(load.answered)
            print(f"{kind()}; {len(load.answered) - before} appends were answered meanwhile", flush=True)
            check(not load.failures, "; ".join(load.failures[:3]))
            passed += 1
        trouble.ready_again()
        load.end()
        count = compare(members, load)
        statuses = ", ".join(f"{status}: {number}" for status, number in sorted(load.statuses.items()))
        print(f"{count} events in the log, {len(load.answered)} of them answered; responses {statuses}")
        if trouble.takeovers:
            print(f"takeovers took at most {max(trouble.takeovers):.1f} s")
        # 404 is the answer for a stream that does not exist yet.
        check(set(load.statuses) <= {200, 201, 404, 409, 503}, f"other responses: {statuses}")
        passed += 1
    except (Failure, OSError, http.client.HTTPException, ValueError, KeyError) as failure:
        failed += 1
        print(f"FAILED: {type(failure).__name__}: {failure}", flush=True)
    finally:
        for member in members:
            member.kill()
        store.kill()
    return passed, failed


def build_store(release=False):
    """Builds the store, and returns its program."""
    repository = pathlib.Path(__file__).resolve().parents[2]
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or repository / "target")
    chosen = os.environ.get("FOLDWORK_TEST_STORE")
    if chosen:
        return chosen
    profile = ["--release"] if release else []
    subprocess.run(["cargo", "build", "--locked", "--target-dir", str(target), *profile],
                   cwd=repository / "tests" / "store", check=True)
    return str(target / ("release" if release else "debug") / "foldwork-test-store")


__all__ = ["Member", "Store", "build_store", "share"]
