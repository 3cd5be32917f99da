"""An agent for Foldwork that proposes tags for articles. Copy it and replace `propose` with your own work.

    pip install -r requirements.txt
    FOLDWORK_SERVER=http://127.0.0.1:8080 FOLDWORK_AGENT=... FOLDWORK_TOKEN=sk_... python agent.py

The token is a key that is bound to the agent, so it decides nothing. The agent listens on its channel. It claims each task that it gets, delivers a proposal with an
effect, and leaves the review to people. The server sends unacknowledged events again, also after a lost connection, and
every action of the agent is safe to repeat.
"""

import asyncio
import collections
import json
import os
import re
import signal
import urllib.error
import urllib.request

from realtime import AsyncRealtimeClient

SERVER = os.environ.get("FOLDWORK_SERVER", "http://127.0.0.1:8080")
TOKEN = os.environ["FOLDWORK_TOKEN"]
AGENT = os.environ["FOLDWORK_AGENT"]
# A credential is valid for an hour and is renewed before that.
CONNECTION_S = 50 * 60


class Refused(Exception):
    """An error response of the server."""

    def __init__(self, status, body):
        super().__init__(f"{status}: {body.get('error')}")
        self.status = status


def call_now(method, path, body=None):
    request = urllib.request.Request(f"{SERVER}/api/v1{path}", method=method)
    request.add_header("Authorization", f"Bearer {TOKEN}")
    data = None
    if body is not None:
        request.add_header("Content-Type", "application/json")
        data = json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, data, timeout=30) as response:
            return json.loads(response.read() or "null")
    except urllib.error.HTTPError as error:
        raise Refused(error.code, json.loads(error.read())) from None


async def call(method, path, body=None):
    return await asyncio.to_thread(call_now, method, path, body)


def propose(article):
    """Does the actual work: returns the three most frequent words of at least five letters in the article."""
    words = re.findall(r"[^\W\d_]{5,}", f"{article.get('title') or ''} {article.get('body') or ''}".lower())
    return [word for word, _ in collections.Counter(words).most_common(3)]


async def work(agent, task):
    """Claims a task and delivers a proposal. Returns early if the task is done or belongs to another agent."""
    try:
        await call("POST", f"/mailbox/{task['id']}/claim", {"agent_id": agent, "lease_seconds": 60})
    except Refused as refused:
        if refused.status in (404, 409):
            # The task was completed, claimed or canceled meanwhile.
            return
        raise
    article = await call("GET", f"/aggregates/{task['source']['aggregate_id']}")
    tags = propose(article)
    await call("POST", f"/mailbox/{task['id']}/complete", {
        "agent_id": agent,
        "artifact": {
            "name": "tags",
            "data": {"tags": tags},
            # Approval appends this event to the article.
            "effect": {
                "event_type": "article.updated",
                "payload": {"tags": tags},
                # A person who changed the article in the meantime is not overwritten: the approval is then stale.
                "expected_version": article["_version"],
            },
        },
        "message": f"These words are used most: {', '.join(tags)}.",
    })
    print(f"delivered {task['title']!r}", flush=True)


async def answer(agent, task):
    """Answers a question. A real agent would read it first."""
    try:
        text = "I count the words of five letters or more."
        await call("POST", f"/mailbox/{task['id']}/messages", {"agent_id": agent, "text": text})
    except Refused as refused:
        if refused.status not in (404, 409):
            raise


async def heartbeats(agent, interval_ms):
    """Sends heartbeats, which also keep the leases of claimed tasks."""
    while True:
        await asyncio.sleep(interval_ms / 1000)
        try:
            await call("POST", "/agents/heartbeat", {"agent_ids": [agent]})
        except (Refused, OSError) as error:
            print(f"heartbeat: {error}", flush=True)


async def listen(agent):
    """Processes the agent's events in order until the connection ends."""
    connection = await call("POST", "/agents/connect", {"agent_ids": [agent]})
    client = AsyncRealtimeClient(connection["url"], token=connection["anon_key"])
    await client.connect()
    channel = client.channel(connection["channels"][0]["channel"], {
        "config": {"broadcast": {"ack": True, "self": False}, "presence": {"key": "", "enabled": False}, "private": True},
    })
    told, joined = asyncio.Queue(), asyncio.get_running_loop().create_future()

    def on_state(state, error):
        if state.value == "SUBSCRIBED":
            if not joined.done():
                joined.set_result(None)
        else:
            told.put_nowait(None)
            if not joined.done():
                joined.set_exception(ConnectionError(f"{state.value}: {error}"))

    channel.on_broadcast("*", told.put_nowait)
    await channel.subscribe(on_state)
    await joined
    print("listening", flush=True)
    beats = asyncio.create_task(heartbeats(agent, connection["heartbeat_interval"]))
    try:
        async with asyncio.timeout(CONNECTION_S):
            while (message := await told.get()) is not None:
                task = message["payload"]["task"]
                if message["event"] in ("task.created", "task.assigned", "task.resumed"):
                    await work(agent, task)
                elif message["event"] in ("task.asked", "task.changes_requested", "task.answered"):
                    await answer(agent, task)
                await channel.send_broadcast("ack", {"position": message["payload"]["position"]})
    except TimeoutError:
        pass
    finally:
        beats.cancel()
        await client.close()


async def main():
    stopped = asyncio.current_task().cancel
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stopped)
    agent, wait = AGENT, 1
    while True:
        try:
            await listen(agent)
            wait = 1
        except (Refused, OSError, ConnectionError) as error:
            print(f"the connection ended: {error}", flush=True)
            await asyncio.sleep(wait)
            wait = min(wait * 2, 30)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except asyncio.CancelledError:
        pass
