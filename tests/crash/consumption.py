"""Kills the server while it processes events, and compares the result with an undisturbed run.

The same steps run on two stores. On one store the server is killed repeatedly, while it starts and while it works, and
every request without a response is sent again. At the end, and twice before the end, both stores must have equal facts,
edges, tasks, parked steps and events.
"""

import http.client
import json
import random
import threading
import time

from history import PLUGINS, TYPE, History, lines_of
from server import Failure, Server, check

SHIPPED = ["structured_data", "linker", "reading_stats", "trait_router"]
BROKEN = (OSError, http.client.HTTPException, ValueError)
SETTLED_WITHIN_S = 300
SHOWN = 12


class Store:
    """A store with its own server, and the number of completed steps."""

    def __init__(self, program, folder, key, steps):
        folder.mkdir()
        for name, files in PLUGINS.items():
            plugin = folder / "scripts" / name
            plugin.mkdir(parents=True)
            for file, text in files.items():
                (plugin / file).write_text(text)
        self.steps, self.next, self.defined = steps, 0, False
        self.snapshots = []
        self.server = Server(program, folder, key)
        self.server.environment.update(
            FOLDWORK_PLUGINS__FOLDER=str(folder / "scripts"),
            FOLDWORK_PLUGINS__ENABLED=",".join([*SHIPPED, *PLUGINS]),
            FOLDWORK_LOG__FILTER="error")

    def finished(self):
        return self.next == len(self.steps)

    def wants_peace(self):
        """Returns whether the next step needs a server that is not killed during the step, or no server."""
        return not self.finished() and (self.steps[self.next] == "compare" or self.restarts())

    def restarts(self):
        """Returns whether the next step happens while no server runs."""
        return not self.finished() and self.steps[self.next] in ("kill", "fix")

    def take_step_between(self):
        if self.steps[self.next] == "fix":
            # The plugin is fixed from the next start on.
            self.server.environment["FOLDWORK_PLUGINS__BREAKER__FIXED"] = "true"
        self.next += 1

    def take_step(self, client):
        if not self.defined:
            status, answer = client.call("POST", "/aggregates/define", TYPE)
            check(status in (200, 201), f"the type is rejected with {status}: {answer}")
            self.defined = True
        step = self.steps[self.next]
        if isinstance(step, list):
            status, answer = client.call("POST", "/events", {"events": step})
            check(status in (200, 201), f"events are rejected with {status}: {str(answer)[:500]}")
        elif step == "compare":
            self.snapshots.append(snapshot(client))
        else:
            catch_up(client)
            if step == "resume":
                client.read("POST", "/plugins/breaker/resume")
            elif step == "replay":
                check(not client.read("POST", "/parked/replay", {"plugin": "breaker"})["more"], "too much was parked")
        self.next += 1


def follower(client):
    """Returns the position of the graph's follower, and the number of events that it has not processed."""
    consumers = client.read("GET", "/system/consumers")["consumers"]
    return next((consumer["position"], consumer["lag"]) for consumer in consumers if consumer["name"] == "graph")


def catch_up(client):
    limit = time.monotonic() + SETTLED_WITHIN_S
    while follower(client)[1] > 0:
        check(time.monotonic() < limit, f"the follower is behind after {SETTLED_WITHIN_S} s")
        time.sleep(0.02)


def undisturbed(store):
    """Runs all steps with a server that is not killed. Returns the duration of a start in seconds."""
    started = store.server.start()
    client = store.server.client()
    while not store.finished():
        if store.steps[store.next] == "kill":
            store.next += 1
        elif store.restarts():
            store.server.terminate()
            store.take_step_between()
            store.server.start()
            client = store.server.client()
        else:
            store.take_step(client)
    store.server.terminate()
    return started


class Kills:
    """The rounds, each of which ends with SIGKILL, and statistics of the kills."""

    def __init__(self, store, rounds, chance, start_s, longest):
        self.store, self.rounds, self.chance = store, rounds, chance
        self.start_s, self.longest = start_s, longest
        self.in_start = self.behind = 0

    def run(self):
        for number in range(1, self.rounds + 1):
            self.play(number)
        self.finish()

    def goal(self, number):
        """Returns the number of steps that are complete after this round. The rounds have equal numbers of steps."""
        return -(-len(self.store.steps) * number // self.rounds)

    def play(self, number):
        """Runs a server that is killed while starting, soon afterwards, or while it processes the steps of the
        round."""
        store, server = self.store, self.store.server
        moment = self.chance.choices(["started", "listening", "caught up"], [3, 3, 4])[0]
        seconds = self.chance.uniform(0, self.start_s if moment == "started" else self.longest)
        first, behind = store.next, None
        killed = threading.Event()

        def kill():
            server.process.kill()
            killed.set()

        timer = threading.Timer(seconds, kill)
        server.launch()
        if moment == "started":
            timer.start()
        try:
            server.wait()
            if moment == "listening":
                timer.start()
            client = server.client(timeout=60)
            behind = self.note(client)
            if moment == "caught up":
                self.take_steps(client, self.goal(number - 1), killed)
                timer.start()
            self.take_steps(client, self.goal(number), killed)
        except Failure:
            if not killed.is_set():
                raise
        except BROKEN:
            if not killed.wait(timeout=60):
                raise
        timer.join()
        server.kill()
        server.process.stdout.close()
        self.in_start += moment == "started"
        found = "" if behind is None else f", {behind} events behind at first"
        print(f"round {number}: killed {seconds:.2f} s after it was {moment}{found}; "
              f"steps {first} to {store.next} of {len(store.steps)}", flush=True)
        if store.next < self.goal(number) and store.wants_peace():
            self.make_peace()

    def take_steps(self, client, until, killed):
        while not killed.is_set() and self.store.next < until and not self.store.wants_peace():
            self.store.take_step(client)

    def make_peace(self):
        """Runs the steps during which the server is not killed at a random moment."""
        store, server = self.store, self.store.server
        while store.wants_peace():
            if store.restarts():
                store.take_step_between()
                continue
            server.start()
            client = server.client()
            self.note(client)
            catch_up(client)
            store.take_step(client)
            server.kill()
            server.process.stdout.close()

    def finish(self):
        """Runs the remaining steps."""
        store, server = self.store, self.store.server
        server.start()
        client = server.client()
        self.note(client)
        while not store.finished():
            if store.restarts():
                server.kill()
                store.take_step_between()
                server.start()
                client = server.client()
            else:
                store.take_step(client)
        server.terminate()

    def note(self, client):
        """Returns the number of events that the follower still has to process after a start, and counts the start if
        there are any. The follower reports position 0 until it has read its checkpoint."""
        position, behind = follower(client)
        while position == 0 and behind > 0:
            time.sleep(0.001)
            position, behind = follower(client)
        self.behind += behind > 0
        return behind


def snapshot(client):
    """Returns all derived data by section and key. Names replace values that the server chooses."""
    events = pages(client, "/events?limit=200", lambda page: f"&after={page[-1]['position']}" if page else None)
    rows = client.read("POST", "/aggregates/query", {"pipeline": [{"$match": {}}, {"$fold": {"deleted": True}}]})
    rows = rows["results"]
    parked = pages(client, "/parked?limit=200", None)
    names = {event["event_id"]: f"{event['aggregate_id']}@{event['version']}" for event in events}
    owner = client.read("GET", "/workspace").get("owner_id")
    for row in rows:
        if row["aggregate_type"] == "task":
            source = row["source"]
            assignee = row["assignee_id"] if row["assignee_type"] == "agent" else "owner"
            name = f"task({names[source['event_id']]} for {assignee})"
            names[row["_id"]] = name
            if assignee == "owner":
                owner = row["assignee_id"]
    names.update({event["event_id"]: f"{names.get(event['aggregate_id'], event['aggregate_id'])}@{event['version']}"
                  for event in events})
    if owner:
        names[owner] = "owner"
    found = {"facts": {}, "tasks": {}, "edges": {}, "labels": {}, "parked": {}, "events": {}}
    for row in rows:
        stream = names.get(row["_id"], row["_id"])
        found["facts"][stream] = row.get("_facts")
        if row["aggregate_type"] == "task":
            found["tasks"][stream] = {name: value for name, value in row.items() if name not in ("_id", "_position")}
        graph = client.read("GET", f"/aggregates/{row['_id']}/graph?direction=out&closed=true")
        check(not graph["truncated"], f"the graph around {stream} is too large to compare")
        found["labels"][stream] = graph["nodes"][0]["labels"]
        edges = [edge for edge in graph["edges"] if edge["from"] == row["_id"]]
        check(edges == unique(edges), f"an edge from {stream} exists twice")
        for edge in edges:
            key = f"{stream} {edge['kind']} {edge['to']} from {edge['valid_from']}"
            # The positions on two servers differ, because plugins append events between the events of the steps.
            found["edges"].setdefault(key, []).append({name: value for name, value in edge.items() if name != "position"})
    for step in parked:
        key = f"{step['plugin']} {step['hook']} {names[step['event_id']]}"
        check(key not in found["parked"], f"{key} is parked twice")
        found["parked"][key] = {name: step[name] for name in ("kind", "message", "event_type", "version")}
    for event in events:
        kept = {name: event[name] for name in
                ("event_id", "version", "event_type", "payload", "metadata", "actor", "project_id", "occurred_at")}
        if event["aggregate_type"] == "agent":
            # Removes the time of the agent's event, because the agent is created at the first start.
            kept.pop("occurred_at")
        if event["actor"].startswith("key:"):
            kept["actor"] = "key"
        found["events"].setdefault(names.get(event["aggregate_id"], event["aggregate_id"]), []).append(kept)
    for edges in found["edges"].values():
        edges.sort(key=lambda edge: json.dumps(edge, sort_keys=True))
    return {section: {key: renamed(value, names) for key, value in keyed.items()} for section, keyed in found.items()}


def unique(edges):
    return list({json.dumps(edge, sort_keys=True): edge for edge in edges}.values())


def pages(client, path, following):
    """Returns all items of a list. Reads the next page by the cursor or by the last item of a page."""
    rows, more = [], ""
    while more is not None:
        page = client.read("GET", path + more)
        rows += page["data"]
        more = following(page["data"]) if following else page["next_cursor"] and f"&cursor={page['next_cursor']}"
    return rows


def renamed(value, names):
    if isinstance(value, dict):
        return {name: renamed(inner, names) for name, inner in value.items()}
    if isinstance(value, list):
        return [renamed(inner, names) for inner in value]
    return names.get(value, value) if isinstance(value, str) else value


def differences(expected, found):
    """Returns lines that describe the differences."""
    lines = []
    for section, expected_part in expected.items():
        have = found[section]
        other = [key for key in sorted(expected_part.keys() | have.keys()) if expected_part.get(key) != have.get(key)]
        if other:
            lines.append(f"{section}: {len(other)} of {len(expected_part)} differ")
        for key in other[:SHOWN]:
            lines.append(f"  {key}")
            lines += [f"    {line}" for line in differing(expected_part.get(key), have.get(key), "")][:SHOWN]
    return lines


def differing(expected, have, path):
    """Returns the places where two values differ."""
    if isinstance(expected, dict) and isinstance(have, dict):
        for name in [*expected, *(name for name in have if name not in expected)]:
            yield from differing(expected.get(name), have.get(name), f"{path}/{name}")
    elif isinstance(expected, list) and isinstance(have, list):
        for at in range(max(len(expected), len(have))):
            yield from differing(*(side[at] if at < len(side) else None for side in (expected, have)), f"{path}/{at}")
    elif expected != have:
        yield path or "it"
        yield f"  undisturbed: {shown(expected)}"
        yield f"  killed:      {shown(have)}"


def shown(value):
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 300 else text[:300] + " …"


def summary(snapshot):
    closed = sum(edge["valid_to"] is not None for edges in snapshot["edges"].values() for edge in edges)
    events = sum(len(stream) for stream in snapshot["events"].values())
    return (f"{events} events, facts of {sum(bool(facts) for facts in snapshot['facts'].values())} aggregates, "
            f"{sum(len(edges) for edges in snapshot['edges'].values())} edges ({closed} closed), "
            f"{len(snapshot['tasks'])} tasks, {len(snapshot['parked'])} parked steps")


def consume(program, folder, key, seed, rounds, longest, data, events):
    """Runs the steps on both stores and compares the results. Raises a failure if the results differ."""
    history = History(random.Random(seed), events, lines_of(data) if data else None)
    calm = Store(program, folder / "undisturbed", key, history.steps)
    killed = Store(program, folder / "killed", key, history.steps)
    try:
        began = time.monotonic()
        start_s = undisturbed(calm)
        print(f"undisturbed: {summary(calm.snapshots[-1])}, in {time.monotonic() - began:.0f} s", flush=True)
        kills = Kills(killed, rounds, random.Random(seed + 1), start_s, longest)
        kills.run()
    finally:
        calm.server.kill()
        killed.server.kill()
    print(f"{rounds} kills: {kills.in_start} while starting, {rounds - kills.in_start} later; "
          f"{kills.behind} starts found unprocessed events", flush=True)
    check(len(calm.snapshots) == len(killed.snapshots), "a comparison is missing")
    for number, (expected, found) in enumerate(zip(calm.snapshots, killed.snapshots), 1):
        lines = differences(expected, found)
        check(not lines, "\n".join([f"comparison {number} of {len(calm.snapshots)}", *lines]))
        print(f"comparison {number}: {summary(found)}: equal", flush=True)
