"""Runs the client of the PyPI package mcp."""

import asyncio
import json
import os

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

URL = os.environ["URL"]
WRITING = {"act_on_task", "append_event", "create_article", "publish_article", "upload_file_link"}
PIPELINE = [{"$match": {"aggregate_type": "article"}}, {"$fold": {}}, {"$match": {"title": "Rye"}}, {"$count": "n"}]


def client(key):
    return Client(streamable_http_client(URL, http_client=httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"})))


async def call(connected, tool, **arguments):
    result = await connected.call_tool(tool, arguments)
    assert not result.is_error, result
    return result.structured_content


async def write():
    async with client(os.environ["WRITER"]) as connected:
        assert connected.protocol_version >= "2026", connected.protocol_version
        assert "Foldwork" in connected.instructions
        tools = {tool.name: tool for tool in (await connected.list_tools()).tools}
        assert WRITING <= set(tools), tools
        assert tools["search"].annotations.read_only_hint
        made = await call(connected, "create_article", title="Rye", body="Dark.", idempotency_key="python")
        article_id = made["article"]["aggregate_id"]
        assert (await call(connected, "query", pipeline=PIPELINE))["rows"] == [{"n": 1}]
        assert (await call(connected, "search", query="rye"))["results"][0]["aggregate_id"] == article_id
        assert len((await call(connected, "list_events", aggregate_id=article_id))["events"]) == 1
        link = await call(connected, "upload_file_link", filename="rye.txt")
        async with httpx2.AsyncClient() as nobody:
            stored = await nobody.put(link["url"], content=b"Dark.")
        assert stored.status_code == 201 and stored.json()["path"] == link["path"], stored
        read = await connected.read_resource(f"aggregate://{article_id}")
        assert json.loads(read.contents[0].text)["state"]["title"] == "Rye"
        prompt = await connected.get_prompt("explain_pipeline", {"pipeline": json.dumps(PIPELINE)})
        assert "$count" in prompt.messages[0].content.text
        wrong = await connected.call_tool("get_aggregate", {"aggregate_id": "nothing"})
        assert wrong.is_error and json.loads(wrong.content[0].text)["code"] == "not_found", wrong


async def only_read():
    async with client(os.environ["READER"]) as connected:
        tools = {tool.name for tool in (await connected.list_tools()).tools}
        assert not WRITING & tools and "query" in tools, tools
        refused = await connected.call_tool("create_article", {"title": "No"})
        assert refused.is_error and json.loads(refused.content[0].text)["code"] == "insufficient_scope", refused


async def is_refused(key):
    try:
        async with client(key) as connected:
            await connected.list_tools()
    except Exception:
        return True
    return False


async def main():
    await write()
    await only_read()
    assert await is_refused("sk_" + "0" * 64)
    assert await is_refused(os.environ["STRANGER"])


asyncio.run(main())
