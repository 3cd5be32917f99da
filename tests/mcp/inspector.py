"""Runs the command line of the npm package @modelcontextprotocol/inspector: `inspector.py NODE INSPECTOR`."""

import json
import os
import subprocess
import sys


def inspect(key, *arguments, code=0):
    command = [*sys.argv[1:], "--cli", os.environ["URL"], "--transport", "http", "--stored-auth-only", "--format", "json"]
    command += ["--header", f"Authorization: Bearer {key}", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode == 0) == (code == 0), f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout) if code == 0 else done.stdout + done.stderr


def result(answer):
    return answer.get("result", answer)


writer, reader = os.environ["WRITER"], os.environ["READER"]
for era in (), ("--protocol-era", "modern"):
    tools = result(inspect(writer, "--method", "tools/list", "--strict", *era))["tools"]
    assert {"search", "create_article"} <= {tool["name"] for tool in tools}, tools
    tools = result(inspect(reader, "--method", "tools/list", *era))["tools"]
    assert "create_article" not in {tool["name"] for tool in tools}, tools
    pipeline = json.dumps({"pipeline": [{"$count": "n"}]})
    rows = result(inspect(reader, "--method", "tools/call", "--tool-name", "query", "--tool-args-json", pipeline, *era))
    assert rows["structuredContent"]["count"] == 1, rows
    assert result(inspect(reader, "--method", "prompts/list", *era))["prompts"]
    assert result(inspect(reader, "--method", "resources/list", *era))["resources"]
inspect("sk_" + "0" * 64, "--method", "tools/list", code=1)
