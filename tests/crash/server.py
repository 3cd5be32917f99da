"""Starts and kills the server for these tests, with a client."""

import http.client
import json
import os
import queue
import re
import signal
import subprocess
import threading
import time

START_LIMIT_S = 120


class Failure(Exception):
    """A check that failed."""


def check(holds, message):
    if not holds:
        raise Failure(message)


class Server:
    """Runs `foldwork serve` on one store, and starts and kills it repeatedly."""

    def __init__(self, program, folder, key):
        self.program, self.folder, self.key = program, folder, key
        self.process = self.address = None
        self.listen = "127.0.0.1:0"
        self.database = f"surrealkv://{self.folder}/db"
        self.environment = dict(
            os.environ,
            FOLDWORK_BOOTSTRAP_KEY=key,
            FOLDWORK_LOG__FILTER="warn",
            # All requests of a test come from one address, and many present keys that are not valid.
            FOLDWORK_HTTP__WRONG_TOKEN_LIMIT_PER_MINUTE="0",
            # Raises the limits of pipelines, because a debug build needs more time.
            FOLDWORK_PIPELINE__TIMEOUT="10 min",
            FOLDWORK_PIPELINE__MEMORY="1 GiB",
            # Allows decisions on own output, because one key acts as agents and as people.
            FOLDWORK_MAILBOX__OWN_DELIVERIES="true",
            # Disables the limit on concurrent queries of a workspace and its keys, because all queries use one key.
            FOLDWORK_PIPELINE__WORKSPACE_QUERIES="0",
        )

    def launch(self):
        """Starts the process without waiting for it."""
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "serve", "--listen", self.listen, "--database", self.database],
                cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True)

    def start(self):
        """Starts the process and waits until it listens. Returns the duration in seconds."""
        began = time.monotonic()
        self.launch()
        self.wait()
        return time.monotonic() - began

    def wait(self):
        """Waits until the process listens."""
        began = time.monotonic()
        lines = queue.Queue()
        output = self.process.stdout

        def read():
            for line in output:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        while True:
            try:
                line = lines.get(timeout=max(0.1, began + START_LIMIT_S - time.monotonic()))
            except queue.Empty:
                raise Failure(f"the server does not listen after {START_LIMIT_S} s") from None
            check(line is not None, f"the server ended in its start, see {self.folder}/server.log")
            found = re.match(r"listening on http://(\S+)", line)
            if found:
                self.address = found.group(1)
                return

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        if self.process:
            self.process.wait()

    def terminate(self):
        """Stops the process and returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure("the server does not end within 15 s of SIGTERM") from None

    def client(self, timeout=600):
        return Client(self.address, self.key, timeout)


class Client:
    """A connection that sends the key."""

    def __init__(self, address, key, timeout):
        self.connection = http.client.HTTPConnection(address, timeout=timeout)
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def call(self, method, path, body=None, key=None):
        """Sends a request, with an `Idempotency-Key` if one is given."""
        text = None if body is None else json.dumps(body)
        headers = self.headers if key is None else {**self.headers, "Idempotency-Key": key}
        self.connection.request(method, f"/api/v1{path}", text, headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def read(self, method, path, body=None):
        status, answer = self.call(method, path, body)
        check(status == 200, f"{method} {path} answers {status}: {str(answer)[:300]}")
        return answer


def play(server, steps):
    """Starts a server and runs named steps. Restarts the server after a failed step. Returns the numbers of passed and
    failed steps. Steps that are generated lazily may use the server."""
    passed = failed = 0
    try:
        server.start()
        for name, step in steps:
            try:
                step()
                passed += 1
            except (Failure, OSError, http.client.HTTPException, ValueError, subprocess.TimeoutExpired) as failure:
                failed += 1
                print(f"{name}: FAILED: {failure}", flush=True)
                server.kill()
                server.start()
    except Failure as failure:
        failed += 1
        print(f"FAILED: {failure}", flush=True)
    finally:
        server.kill()
    return passed, failed
