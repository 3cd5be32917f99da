"""Runs the stock client in Python against a running server, with the same operations as `stock.mjs` in JavaScript.

Requires FOLDWORK_SERVER and FOLDWORK_TOKEN. Prints `restart` when the server may be restarted, and continues after
reading a line.
"""

import asyncio
import json
import os
import sys
import urllib.request

from realtime import AsyncRealtimeClient

SERVER, TOKEN = os.environ["FOLDWORK_SERVER"], os.environ["FOLDWORK_TOKEN"]
LIMIT_S = 60


def call(method, path, body):
    request = urllib.request.Request(f"{SERVER}/api/v1{path}", json.dumps(body).encode(), method=method, headers={
        "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=LIMIT_S) as response:
        return json.loads(response.read())


class Inbox:
    """The received messages. Callers can wait for a message."""

    def __init__(self):
        self.seen, self.came = [], asyncio.Event()

    def push(self, item):
        self.seen.append(item)
        self.came.set()

    async def wait(self, what, predicate):
        try:
            async with asyncio.timeout(LIMIT_S):
                while not any(predicate(item) for item in self.seen):
                    self.came.clear()
                    await self.came.wait()
        except TimeoutError:
            raise AssertionError(f"{what}: nothing after {LIMIT_S} s, but {self.seen}") from None
        return next(item for item in self.seen if predicate(item))


async def joined(url, credential, name):
    client = AsyncRealtimeClient(url, token=credential)
    await client.connect()
    channel = client.channel(name, {"config": {
        "broadcast": {"ack": True, "self": True}, "presence": {"key": "", "enabled": False}, "private": True}})
    inbox, states = Inbox(), Inbox()
    channel.on_broadcast("*", inbox.push)
    await channel.subscribe(lambda state, error: states.push(state.value))
    return client, channel, inbox, states


async def main():
    agent = call("POST", "/agents", {
        "name": f"python {os.getpid()}", "description": "A stock client.", "subscribed_traits": [], "capabilities": {}})
    connection = call("POST", "/agents/connect", {"agent_ids": [agent["id"]]})
    url, credential = connection["url"], connection["anon_key"]
    name = connection["channels"][0]["channel"]

    def task(title):
        return call("POST", "/mailbox", {"title": title, "assignee_type": "agent", "assignee_id": agent["id"]})

    def is_of(known):
        return lambda message: message["event"] == "task.created" and message["payload"]["task"]["id"] == known["id"]

    # The client joins, broadcasts, and receives its own message.
    client, channel, inbox, states = await joined(url, credential, name)
    await states.wait("joining", lambda state: state == "SUBSCRIBED")
    await channel.send_broadcast("note", {"n": 1})
    message = await inbox.wait("its own message", lambda message: message["event"] == "note")
    assert message["payload"] == {"n": 1}, message

    # The client receives a task and acknowledges it.
    first = task("first")
    message = await inbox.wait("a task", is_of(first))
    await channel.send_broadcast("ack", {"position": message["payload"]["position"]})

    # The client broadcasts on a channel over HTTP.
    await channel.http_send("shout", {"n": 2})
    message = await inbox.wait("what HTTP said", lambda message: message["event"] == "shout")
    assert message["payload"] == {"n": 2}, message

    # The server rejects the client on the channel of another agent.
    other = await joined(url, credential, "agent:00000000-0000-7000-8000-000000000000")
    await other[3].wait("a refusal", lambda state: state != "SUBSCRIBED")
    await other[0].close()

    # The client reconnects automatically after a restart, and receives the events that it has not acknowledged.
    second = task("second")
    await inbox.wait("a second task", is_of(second))
    inbox.seen.clear()
    print("restart", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await inbox.wait("the second task again", is_of(second))
    third = task("third")
    await inbox.wait("a third task", is_of(third))
    assert not any(is_of(first)(message) for message in inbox.seen), "acknowledged events are not sent again"

    # The client leaves the channel.
    await channel.unsubscribe()
    await client.close()
    print("passed", flush=True)


asyncio.run(main())
