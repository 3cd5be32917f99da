"""Breaks the sockets of agents and kills their server while the agents get work, and checks that no work is lost.

Requests over HTTP create tasks and articles, each with an `Idempotency-Key`. The requests are retried until they get a
response. Meanwhile, sockets are broken at random without a close frame, and the server is killed with SIGKILL and
restarted. At the end, each agent must have received every acknowledged task. Events that an agent has acknowledged must
not be sent again, except for the last acknowledgements before a kill.
"""

import argparse
import asyncio
import base64
import collections
import hashlib
import hmac
import http.client
import json
import pathlib
import random
import secrets
import shutil
import sys
import tempfile
import time

# Prevents Python from writing bytecode into the repository.
sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "crash"))

import websockets
from server import Failure, Server, check

DISPATCHERS = 4
AGENTS = 3
LIMIT_S = 180
# Acknowledgements are written once a second. Events acknowledged this long before a kill are not sent again.
KEPT_AFTER_S = 10
BROKEN = (OSError, http.client.HTTPException, ValueError)
SECRET, ISSUER, AUDIENCE = "FOLDWORK_TEST_SECRET", "https://issuer.test", "foldwork"
CONFIGURATION = f"""[[auth.issuers]]
issuer = "{ISSUER}"
audience = "{AUDIENCE}"
hs256_secret_env = "{SECRET}"
algorithms = ["HS256"]
"""


class Agent:
    """Listens on its channel, reconnects whenever the socket ends, and acknowledges the events that it receives."""

    def __init__(self, world, agent_id):
        self.world, self.id, self.topic = world, agent_id, f"realtime:agent:{agent_id}"
        self.deliveries = collections.Counter()
        self.tasks_of = collections.defaultdict(set)
        self.socket, self.joined, self.connections = None, asyncio.Event(), 0
        self.replayed = self.highest = self.references = 0
        # The positions that the server has confirmed, with their times; the acknowledgements in progress; the position
        # that survived a kill; and the time of the kill.
        self.confirmed, self.under_way, self.floor, self.killed_at = [], {}, 0, None
        # The reference of the last join, and the first violation.
        self.join = self.wrong = None

    async def run(self):
        while self.wrong is None:
            try:
                await self.listen()
            except Failure as failure:
                self.wrong = str(failure)
            except (*BROKEN, websockets.WebSocketException, asyncio.TimeoutError):
                await asyncio.sleep(0.05)
            finally:
                self.joined.clear()
                self.socket = None

    async def listen(self):
        connection = await self.world.call("POST", "/agents/connect", {"agent_ids": [self.id]})
        url = f"{connection['url']}/websocket?apikey={connection['anon_key']}&vsn=2.0.0"
        # Connects without compression and proxies, like most agents with their own implementation of the protocol.
        async with websockets.connect(url, proxy=None, compression=None, ping_interval=None) as socket:
            self.socket, self.under_way = socket, {}
            self.forget_what_a_kill_took()
            forbidden, last = max([self.floor, *(position for _, position in self.confirmed[-1:])]), 0
            await self.send("phx_join", {"config": {"broadcast": {"ack": True, "self": False}, "private": True}})
            beats = asyncio.create_task(self.beat())
            try:
                async for frame in socket:
                    _, reference, topic, event, payload = json.loads(frame)
                    if event == "phx_reply" and topic == self.topic:
                        self.answered(reference, payload)
                    elif event == "broadcast":
                        last = await self.take(payload, forbidden, last)
                    else:
                        check(event == "phx_reply", f"the channel of {self.id} sends {event}: {payload}")
            finally:
                beats.cancel()

    async def beat(self):
        while True:
            await asyncio.sleep(20)
            await self.socket.send(json.dumps([None, "beat", "phoenix", "heartbeat", {}]))

    async def send(self, event, payload):
        self.references += 1
        self.join = str(self.references) if event == "phx_join" else self.join
        await self.socket.send(json.dumps([self.join, str(self.references), self.topic, event, payload]))

    async def acknowledge(self, position):
        # Records the position before sending, because the reply may arrive immediately.
        self.under_way[str(self.references + 1)] = position
        await self.send("broadcast", {"type": "broadcast", "event": "ack", "payload": {"position": position}})

    def answered(self, reference, reply):
        check(reply["status"] == "ok", f"{self.id} is rejected: {reply}")
        if reference == self.join:
            self.connections += 1
            self.joined.set()
        elif reference in self.under_way:
            position = max([self.under_way.pop(reference), *(position for _, position in self.confirmed[-1:])])
            self.confirmed.append((time.monotonic(), position))

    async def take(self, broadcast, forbidden, last):
        """Checks and records one event. Acknowledges the event now or together with a later event."""
        payload, position = broadcast["payload"], broadcast["payload"]["position"]
        check(position > last, f"{self.id} receives position {position} after {last}")
        check(position > forbidden,
              f"{self.id} receives position {position} again, although {forbidden} was acknowledged")
        task = payload["task"]
        check(broadcast["event"] == "task.created" and task["assignee_id"] == self.id, f"{self.id} receives {broadcast}")
        name = task["source"].get("aggregate_id") or task["title"]
        self.deliveries[name] += 1
        self.tasks_of[name].add(task["id"])
        self.replayed += broadcast.get("meta", {}).get("replayed") is True
        self.highest = max(self.highest, position)
        if self.world.chance.random() < 0.7:
            await self.acknowledge(position)
        return position

    def forget_what_a_kill_took(self):
        """Discards acknowledgements that the store may not have. At this point, all messages that were sent before the
        kill have been read."""
        if self.killed_at is not None:
            kept = [position for at, position in self.confirmed if at <= self.killed_at - KEPT_AFTER_S]
            self.floor, self.confirmed, self.killed_at = max([self.floor, *kept[-1:]]), [], None

    def cut(self):
        self.socket.transport.abort()


class World:
    """The server, the clients that create work, and the responses."""

    def __init__(self, server, chance):
        self.server, self.chance = server, chance
        self.agents, self.failed, self.progress = [], asyncio.Event(), asyncio.Condition()
        # The acknowledged work, and the agents that must receive it.
        self.answered = {}
        self.repeats = 0

    async def call(self, method, path, body=None, expected=(200, 201), key=None, bearer=None):
        client = self.server.client(timeout=60)
        if bearer:
            client.headers["Authorization"] = f"Bearer {bearer}"
        status, answer = await asyncio.to_thread(client.call, method, path, body, key)
        check(status in expected, f"{method} {path} answers {status}: {str(answer)[:300]}")
        return answer

    async def add_agent(self, traits, bearer=None):
        known = await self.call("POST", "/agents", {"name": f"agent {secrets.token_hex(4)}", "subscribed_traits": traits,
                                                    "capabilities": {}}, bearer=bearer)
        return known["id"]

    async def dispatch(self, number):
        """Creates a task or an article, and repeats the request until it gets a response."""
        key, agent = f"work-{number}", self.agents[number % AGENTS]
        by_trait = agent is self.agents[0]
        path, body = ("/articles", {"title": key}) if by_trait else \
            ("/mailbox", {"title": key, "assignee_type": "agent", "assignee_id": agent.id})
        while True:
            try:
                answer = await self.call("POST", path, body, key=key)
                break
            except BROKEN:
                self.repeats += 1
                await asyncio.sleep(0.05)
        async with self.progress:
            self.answered[answer["aggregate_id"] if by_trait else key] = agent
            self.progress.notify_all()

    async def dispatcher(self, numbers):
        for number in numbers:
            await self.dispatch(number)

    async def kill(self):
        moment = time.monotonic()
        await asyncio.to_thread(self.server.kill)
        for agent in self.agents:
            agent.killed_at = agent.killed_at or moment
        await asyncio.to_thread(self.server.start)

    async def cut(self):
        agent = self.chance.choice(self.agents)
        await agent.joined.wait()
        # Breaks the socket while the agent receives missed events, or later.
        await asyncio.sleep(self.chance.choice([0, 0, self.chance.uniform(0, 0.05)]))
        await agent.joined.wait()
        agent.cut()
        agent.joined.clear()

    async def make_trouble(self, dispatches, cuts, kills):
        """Breaks sockets and kills servers, each after a number of responses."""
        moments = [(self.chance.randrange(dispatches), self.cut) for _ in range(cuts)]
        moments += [(self.chance.randrange(dispatches), self.kill) for _ in range(kills)]
        for moment, trouble in sorted(moments, key=lambda both: both[0]):
            async with self.progress:
                await self.progress.wait_for(lambda moment=moment: len(self.answered) >= moment)
            await trouble()

    def check_agents(self):
        wrong = next((agent.wrong for agent in self.agents if agent.wrong), "an agent has ended")
        check(not self.failed.is_set(), wrong)

    async def unless_failed(self, work):
        """Waits until `work` finishes or an agent fails."""
        failed = asyncio.create_task(self.failed.wait())
        await asyncio.wait({work, failed}, return_when=asyncio.FIRST_COMPLETED)
        failed.cancel()
        if not work.done():
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        self.check_agents()
        await work

    async def until(self, what, holds):
        try:
            async with asyncio.timeout(LIMIT_S):
                while not holds():
                    self.check_agents()
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise Failure(f"{what}: not after {LIMIT_S} s") from None

    def missing(self):
        return [name for name, agent in self.answered.items() if not agent.deliveries[name]]


async def verify(world, dispatches):
    """Checks that every acknowledged task was delivered, and that every delivered event stays acknowledged."""
    try:
        await world.until("every agent has received its work", lambda: not world.missing())
    except Failure as failure:
        missing = world.missing()
        raise Failure(f"{failure}; {len(missing)} of {dispatches} are missing: {missing[:5]}") from None
    for agent in world.agents:
        await world.until("the agent has joined", agent.joined.is_set)
        expected = {name for name, whose in world.answered.items() if whose is agent}
        check(set(agent.deliveries) == expected, f"{agent.id} receives unacknowledged work: {set(agent.deliveries) - expected}")
        twice = [name for name, tasks in agent.tasks_of.items() if len(tasks) > 1]
        check(not twice, f"there are two tasks for {twice[:3]}")
        await agent.acknowledge(agent.highest)
        await world.until("an acknowledgement", lambda agent=agent: not agent.under_way)
        page = await world.call("GET", f"/agents/{agent.id}/events")
        check(page["data"] == [], f"{agent.id} has acknowledged everything but receives {len(page['data'])} events")
    tasks, cursor = 0, ""
    while cursor is not None:
        page = await world.call("GET", f"/mailbox?limit=200{cursor and '&cursor=' + cursor}")
        tasks, cursor = tasks + len(page["data"]), page["next_cursor"]
    check(tasks == dispatches, f"{dispatches} dispatches were made, but {tasks} tasks exist")


async def come_back_in_peace(world, dispatches):
    """Checks that agents that have acknowledged all events receive only new work when they reconnect."""
    before = [(agent, agent.connections, sum(agent.deliveries.values())) for agent in world.agents]
    for agent in world.agents:
        agent.cut()
        agent.joined.clear()
    for agent, connections, _ in before:
        await world.until("it comes back", lambda agent=agent, connections=connections: agent.connections > connections)
    for number in range(AGENTS):
        await world.dispatch(dispatches + number)
    await world.until("new work is delivered", lambda: not world.missing())
    for agent, _, delivered in before:
        check(sum(agent.deliveries.values()) == delivered + 1, f"{agent.id} receives acknowledged events again")


def token(secret, user):
    """Returns a token of another user, who has another workspace."""
    def encoded(part):
        return base64.urlsafe_b64encode(part).rstrip(b"=").decode()

    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": user, "exp": int(time.time()) + 3600, "email": f"{user}@example.com",
              "email_verified": True}
    signed = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{signed}.{encoded(hmac.digest(secret.encode(), signed.encode(), hashlib.sha256))}"


async def refuse_others(world, secret):
    """Checks that a client of one workspace cannot join the channels of agents in the other workspace."""
    ada = token(secret, "ada")
    theirs, ours = await world.add_agent([], ada), world.agents[0].id
    for mine, other, bearer in ((ours, theirs, world.server.key), (theirs, ours, ada)):
        await world.call("POST", "/agents/connect", {"agent_ids": [other]}, expected=(404,), bearer=bearer)
        connection = await world.call("POST", "/agents/connect", {"agent_ids": [mine]}, bearer=bearer)
        # Tests a credential for one agent, and a credential for the whole workspace.
        for shown in (connection["anon_key"], bearer):
            url = f"{connection['url']}/websocket?apikey={shown}&vsn=2.0.0"
            async with asyncio.timeout(LIMIT_S), websockets.connect(url, proxy=None) as socket:
                for agent in (other, mine):
                    await check_join(socket, agent, is_allowed=agent == mine)


async def check_join(socket, agent, is_allowed):
    await socket.send(json.dumps([agent, agent, f"realtime:agent:{agent}", "phx_join", {}]))
    reason = f"Unauthorized: You do not have permissions to read from this Channel topic: agent:{agent}"
    expected = {"status": "ok", "response": {"postgres_changes": []}} if is_allowed else \
        {"status": "error", "response": {"reason": reason}}
    async for frame in socket:
        _, reference, _, _, reply = json.loads(frame)
        if reference == agent:
            return check(reply == expected, f"a join gets {reply}, expected {expected}")
    raise Failure("a socket ends before the reply to its join")


async def play(server, secret, arguments, chance):
    world = World(server, chance)
    world.agents = [Agent(world, await world.add_agent(["content-bearing"] if number == 0 else []))
                    for number in range(AGENTS)]
    listening = [asyncio.create_task(agent.run()) for agent in world.agents]
    for task in listening:
        # Reports errors in this task, which would otherwise be lost.
        task.add_done_callback(lambda _: world.failed.set())
    began, dispatches = time.monotonic(), arguments.dispatches
    try:
        numbers = iter(range(dispatches))
        work = [world.dispatcher(numbers) for _ in range(DISPATCHERS)]
        await world.unless_failed(asyncio.gather(world.make_trouble(dispatches, arguments.cuts, arguments.kills), *work))
        await verify(world, dispatches)
        seconds = time.monotonic() - began
        counts = collections.Counter()
        for agent in world.agents:
            counts.update(agent.deliveries.values())
        connections = sum(agent.connections for agent in world.agents)
        await come_back_in_peace(world, dispatches)
        await refuse_others(world, secret)
    finally:
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
    print(f"{dispatches} dispatches in {seconds:.0f} s, {world.repeats} requests repeated, {arguments.cuts} sockets broken "
          f"and {arguments.kills} servers killed; {AGENTS} agents joined {connections} times and received everything, "
          f"{sum(agent.replayed for agent in world.agents)} times from the log. Deliveries: "
          f"{', '.join(f'{times} of {count}' for times, count in sorted(counts.items()))}", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("program", type=pathlib.Path, help="the server's program")
    arguments.add_argument("--dispatches", type=int, default=2000, help="the number of tasks and articles")
    arguments.add_argument("--cuts", type=int, default=100, help="the number of broken sockets")
    arguments.add_argument("--kills", type=int, default=10, help="the number of killed servers")
    arguments.add_argument("--seed", type=int, help="the seed of an earlier run, to choose the same moments")
    arguments = arguments.parse_args()
    seed = secrets.randbelow(1 << 32) if arguments.seed is None else arguments.seed
    folder, secret = pathlib.Path(tempfile.mkdtemp(prefix="foldwork-trouble-")), secrets.token_hex(32)
    print(f"seed {seed}, store in {folder}", flush=True)
    (folder / "config.toml").write_text(CONFIGURATION)
    server = Server(arguments.program.resolve(), folder, f"sk_{secrets.token_hex(32)}")
    server.environment[SECRET] = secret
    try:
        server.start()
        server.listen = server.address
        asyncio.run(play(server, secret, arguments, random.Random(seed)))
        check(server.terminate() == 0, "the server does not stop cleanly")
    except (Failure, TimeoutError, *BROKEN) as failure:
        print(f"FAILED: {failure or type(failure).__name__}")
        print((folder / "server.log").read_text(errors="replace")[-4_000:])
        return 1
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
