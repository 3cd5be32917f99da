"""Kills a server in the middle of leases, deferrals and approvals, and checks that tasks match the responses.

Threads create tasks, and act on their own tasks and on shared tasks. Each acknowledged change must exist exactly once
after each start, and the changes must keep their order. A request in progress must have taken effect completely or not
at all. The effects of approvals are counted in their articles. Leases and deferrals that end while no server runs are
handled by the next server.
"""

import collections
import datetime
import threading
import time

from actors import BOARDS, BROKEN, KEYED, LONGEST_S, Answer, Shared, Writer
from server import Failure, Server, check
from tasks import Fold, counts

WRITERS = 5
COMES_BACK_WITHIN_S = 60


class History:
    """The part of the log that was read: the events of each task, and the events that were appended to articles."""

    def __init__(self):
        self.position, self.tasks, self.boards, self.folds = 0, {}, {}, {}
        self.last = None

    def check_end(self, client):
        """Checks that the last event read before a kill still exists at its position."""
        if self.last:
            page = client.read("GET", f"/events?limit=1&after={self.position - 1}")
            check(page["data"] == [self.last], f"position {self.position} was read before, and is now {page['data']}")

    def read(self, client):
        """Reads the new events and returns their tasks."""
        touched = set()
        while True:
            page = client.read("GET", f"/events?limit=200&after={self.position}")
            for event in page["data"]:
                self.position, self.last = self.position + 1, event
                check(event["position"] == self.position, f"position {event['position']} follows {self.position - 1}")
                if event["aggregate_type"] == "task":
                    self.tasks.setdefault(event["aggregate_id"], []).append(event)
                    touched.add(event["aggregate_id"])
                elif event["event_type"] == "article.updated":
                    self.boards[self.position] = event
            if not page["data"]:
                break
        self.folds.update((task, Fold(self.tasks[task])) for task in touched)
        return touched


def now(later_s=0):
    """Returns the current time plus `later_s` seconds, in the server's format."""
    moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=later_s)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def wait_until(moment):
    while now() <= moment:
        time.sleep(0.02)


def key_of(done):
    """Returns the key under which the response to an event is stored. The key is the tag of the request, except for
    claims and releases, which have no tag."""
    return (done.verb, done.version) if done.agent is not None else done.tag


class Verifier:
    """Checks the tasks, the effects of approvals and the feeds of agents after a start."""

    def __init__(self, writers):
        self.writers, self.history = writers, History()
        self.agents = {writer.agent for writer in writers}
        self.doubts, self.happened, self.late = collections.Counter(), collections.Counter(), collections.Counter()

    def verify(self, server, stopped, started, launched):
        """Checks all tasks with new events. Returns the numbers of leases and deferrals that ended between `stopped`
        and `started`, while no server ran, and that the new server has handled."""
        client = server.client()
        for writer in self.writers:
            check(writer.refused is None, writer.refused)
        before = self.history.position
        touched = self.settle(client)
        for writer in self.writers:
            touched |= writer.acted
            writer.acted = set()
        lost = [task for task in touched if task not in self.history.folds]
        check(not lost, f"tasks are lost: {lost[:3]}")
        late = collections.Counter()
        for task in touched:
            fold = self.history.folds[task]
            self.verify_acts(fold)
            fold.compare(client.read("GET", f"/mailbox/{task}"))
            for done in fold.done:
                if done.event["position"] > before and done.verb in ("expire", "wake"):
                    self.verify_time(fold, done)
                    is_late = stopped <= self.ended(fold, done) < started
                    late[done.verb] += is_late
                    if done.verb == "expire":
                        self.verify_attempt(fold, done, is_late, stopped, started, launched)
        self.verify_nothing_lost(client)
        self.verify_effects(client)
        self.verify_feeds(client, before)
        for writer in self.writers:
            self.resolve(writer, client)
        self.late += late
        return late

    def settle(self, client):
        """Reads until every lease and deferral has ended, so that no task changes without a request any more."""
        until, touched = time.monotonic() + COMES_BACK_WITHIN_S, set()
        self.history.check_end(client)
        while True:
            touched |= self.history.read(client)
            open_ones = [fold.id for fold in self.history.folds.values() if fold.status in ("deferred", "in_progress")]
            if not open_ones:
                return touched
            check(time.monotonic() < until, f"{open_ones[:3]} do not come back within {COMES_BACK_WITHIN_S} s")
            time.sleep(0.05)

    def lease_end(self, task, claim, claimed_until):
        """Returns the end of a lease according to the last response. A heartbeat may have extended the lease."""
        return max([claimed_until, *(writer.leases.get((task, claim), "") for writer in self.writers)])

    def ended(self, fold, done):
        if done.verb == "wake":
            return done.tag
        return self.lease_end(fold.id, done.tag, fold.done[done.tag - 1].event["payload"]["lease_until"])

    def verify_time(self, fold, done):
        moment = self.ended(fold, done)
        check(done.event["occurred_at"] >= moment, f"{fold.id}: {done.verb} comes before {moment}")

    def verify_attempt(self, fold, done, is_late, stopped, started, launched):
        """Checks that a lease counts as an attempt unless it ended while no server ran."""
        if counts(done.event):
            # If a server was launched and killed in between, it may have run when the lease ended. A heartbeat without
            # a response may have extended the lease.
            extended = any(writer.doubtful and writer.doubtful.verb == "heartbeat" for writer in self.writers)
            check(launched or extended or not is_late, f"{fold.id}: the lease ended while no server ran, and counts as an attempt")
        else:
            handled = stopped <= done.event["occurred_at"] and self.ended(fold, done) < started
            check(handled, f"{fold.id}: the lease ended while a server ran, and does not count as an attempt")

    def verify_acts(self, fold):
        answers = {}
        for writer in self.writers:
            answers.update(writer.answers.get(fold.id, {}))
        seen = set()
        for done in fold.done:
            if done.verb in ("expire", "wake"):
                continue
            key = key_of(done)
            check(key not in seen, f"{fold.id}: {done.verb} {key} exists twice")
            seen.add(key)
            answer = answers.get(key)
            if answer is not None:
                self.verify_answer(fold, done, answer)
            else:
                doubtful = any(writer.is_doubtful(fold.id, done) for writer in self.writers)
                check(doubtful, f"{fold.id}: {done.verb} {key} in version {done.version} was never requested")
        lost = [key for key in answers if key not in seen]
        check(not lost, f"{fold.id}: acknowledged changes are lost: {lost[:3]}")

    def verify_answer(self, fold, done, answer):
        check(answer.verb == done.verb, f"{fold.id}: {answer.verb} {done.tag} became {done.verb}")
        if answer.version is None:
            # A message or an artifact has the id from the response.
            added = done.event["payload"].get(f"{done.verb}s", [])
            check(done.verb == "create" or answer.status == added[0]["id"], f"{fold.id}: {done.tag} has another id")
            return
        check(done.version == answer.version,
              f"{fold.id}: {done.verb} of version {done.version} has version {answer.version} in the response")
        check(done.status == answer.status,
              f"{fold.id} had the status {answer.status} in the response, and is {done.status} in that version")

    def verify_nothing_lost(self, client):
        listed, cursor = [], ""
        while cursor is not None:
            page = client.read("GET", f"/mailbox?limit=200{cursor and '&cursor=' + cursor}")
            listed += [(task["id"], task["status"], task["version"]) for task in page["data"]]
            cursor = page["next_cursor"]
        check(len(listed) == len(self.history.folds), f"{len(listed)} tasks are listed, {len(self.history.folds)} were made")
        for task, status, version in listed:
            fold = self.history.folds[task]
            check((status, version) == (fold.status, fold.version), f"{task} is listed as {status} in version {version}")

    def verify_effects(self, client):
        """Checks that each effect follows its approval in the log, and that there are no other effects."""
        expected = {}
        for fold in self.history.folds.values():
            for number, (position, artifact) in enumerate(fold.effects):
                effect = artifact["effect"]
                fields = (fold.subject, effect["event_type"], effect["payload"], fold.id, artifact["id"])
                expected[position + 1 + number] = fields
        found = {position: (event["aggregate_id"], event["event_type"], event["payload"], event["metadata"]["task_id"],
                            event["metadata"]["artifact_id"]) for position, event in self.history.boards.items()}
        differ = sorted(position for position in found.keys() | expected if found.get(position) != expected.get(position))
        check(not differ, f"{len(expected)} effects were approved, {len(found)} exist; at {differ[:3]} they differ")
        once = collections.Counter((task, artifact) for *_, task, artifact in found.values())
        check(all(count == 1 for count in once.values()), f"effects exist twice: {once.most_common(3)}")
        for number in range(BOARDS):
            board = f"board-{number}"
            effects = [effect for effect in found.values() if effect[0] == board]
            state = client.read("GET", f"/aggregates/{board}")
            version = state["_version"]
            check(version == 1 + len(effects), f"{board} is in version {version} after {len(effects)} effects")
            for name, value in (effects[-1][2] if effects else {}).items():
                check(state[name] == value, f"{board} has {name} {state[name]}, the last effect says {value}")

    def verify_feeds(self, client, after):
        """Checks that agents get the events that concern them, including returned tasks, and no event twice."""
        expected = collections.defaultdict(list)
        for fold in self.history.folds.values():
            positions = {done.event["event_id"]: done.event["position"] for done in fold.done}
            for name, event_id, agent in fold.notifications:
                if positions[event_id] > after:
                    expected[agent].append((positions[event_id], name, event_id))
        for agent in self.agents:
            listed, cursor = [], ""
            while cursor is not None:
                page = client.read("GET", f"/agents/{agent}/events?limit=200&after={after}{cursor and '&cursor=' + cursor}")
                listed += [(event["position"], event["event"], event["id"]) for event in page["data"]]
                cursor = page["next_cursor"]
            ordered = sorted(expected[agent])
            check(listed == ordered, f"{agent} gets {len(listed)} events, expected {len(ordered)}; the first difference: "
                                     f"{sorted(set(listed) ^ set(ordered))[:1]}")

    def resolve(self, writer, client):
        """Resolves a request in doubt, either by its event or by sending the request again."""
        act = writer.doubtful
        if act is None:
            return
        happened = [(task, done) for task, fold in self.history.folds.items() for done in fold.done
                    if writer.is_doubtful(task, done) and key_of(done) not in writer.answers.get(task, {})]
        check(len(happened) <= max(len(act.tasks), 1), f"{act} took effect {len(happened)} times")
        if act.verb not in KEYED:
            for task, done in happened:
                writer.answers[task][key_of(done)] = Answer(act.verb, done.version, done.status)
        self.doubts[act.verb] += 1
        self.happened[act.verb] += bool(happened)
        if act.verb in KEYED:
            # Repeats the request. Afterwards its result exists exactly once, whether it had taken effect before or not.
            writer.ask(client, act)
        writer.doubtful = None

    def verify_all(self, server):
        """Reads the whole log again and checks all tasks."""
        read, self.history = self.history.tasks, History()
        self.verify(server, "", now(), True)
        check(all(self.history.tasks[task][:len(events)] == events for task, events in read.items()),
              "events read after an earlier start have changed")


def plant(writer, client):
    """Creates a lease and a deferral that are to end while no server runs. Returns a time before which neither ends, and
    the time at which both have ended."""
    writer.ask(client, writer.create())
    writer.ask(client, writer.create())
    claimed, deferred = writer.own
    writer.own = []
    for verb in ("claim", "artifact", "complete"):
        writer.ask(client, writer.act(verb, [deferred]))
    earliest = now(later_s=LONGEST_S)
    writer.ask(client, writer.act("defer*", [deferred], seconds=LONGEST_S))
    writer.ask(client, writer.act("claim", [claimed], seconds=LONGEST_S))
    return earliest, now(later_s=LONGEST_S)


def play_round(number, server, writers, planter, verifier, chance, longest):
    ended, seconds = threading.Event(), chance.uniform(0.05, longest)
    threads = [threading.Thread(target=writer.run, args=(server.client(timeout=60), ended)) for writer in writers]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    client, earliest, stopped = server.client(timeout=60), "", now()
    # On a busy machine, the requests may take longer than the deferral.
    while earliest <= stopped:
        earliest, over = plant(planter, client)
        stopped = now()
    server.kill()
    ended.set()
    for thread in threads:
        thread.join()
    doubtful = collections.Counter(writer.doubtful.verb for writer in writers if writer.doubtful)
    wait_until(over)
    launched = chance.random() < 0.3
    if launched:
        # Kills a server while it handles passed deadlines. This must lose no data.
        server.launch()
        time.sleep(chance.uniform(0, 1.5))
        server.kill()
        server.process.stdout.close()
    started = now()
    server.start()
    late = verifier.verify(server, stopped, started, launched)
    check(late["expire"] and late["wake"],
          f"of the leases and deferrals that ended without a server, these came back: {dict(late)}")
    history = verifier.history
    print(f"round {number}: killed after {seconds:.2f} s with {dict(doubtful)} in progress; {late['expire']} leases and "
          f"{late['wake']} deferrals ended without a server; {len(history.folds)} tasks of "
          f"{sum(map(len, history.tasks.values()))} events, {len(history.boards)} effects: passed", flush=True)


def begin(server, chance):
    """Creates the articles, and returns the actors."""
    client = server.client()
    for number in range(BOARDS):
        status, answer = client.call("POST", f"/aggregates/board-{number}/events", {
            "aggregate_type": "article", "event_type": "article.created", "payload": {"title": f"Board {number}"}})
        check(status == 201, f"the article is rejected: {answer}")
    shared, writers = Shared(), []
    for number in range(WRITERS + 1):
        agent = {"name": f"agent {number}", "subscribed_traits": [], "capabilities": {}}
        status, answer = client.call("POST", "/agents", agent)
        check(status == 201, f"the agent is rejected: {answer}")
        writers.append(Writer(f"w{number}", answer["id"], shared, chance))
    return writers


def act_on_tasks(program, folder, key, rounds, chance, longest):
    """Returns the numbers of passed and failed rounds."""
    server = Server(program, folder, key)
    passed = failed = 0
    try:
        server.start()
        *writers, planter = begin(server, chance)
        verifier = Verifier([*writers, planter])
        for number in range(1, rounds + 1):
            play_round(number, server, writers, planter, verifier, chance, longest)
            passed += 1
        verifier.verify_all(server)
        acts = sum(len(acts) for writer in verifier.writers for acts in writer.answers.values())
        print(f"{acts} actions got responses and {sum(writer.refusals for writer in verifier.writers)} of them "
              f"errors; in doubt were "
              f"{dict(verifier.doubts)}, of which had happened {dict(verifier.happened)}; without a server ended "
              f"{verifier.late['expire']} leases and {verifier.late['wake']} deferrals; "
              f"{len(verifier.history.boards)} effects, each once: passed", flush=True)
        passed += 1
    except (Failure, *BROKEN) as failure:
        # The results of the failed round are unknown, and later rounds would repeat the failure.
        failed += 1
        print(f"round {passed + 1}: FAILED: {failure}", flush=True)
    finally:
        server.kill()
    return passed, failed
