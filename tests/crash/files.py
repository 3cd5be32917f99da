"""Kills a server in the middle of uploads, and checks after each start that files, their bytes and the quota agree.

Threads store, replace and delete their own files, as raw bodies of known and unknown length and as JSON. Acknowledged
changes must exist after a kill. A change in progress must exist completely or not at all. Every listed file must have
its bytes, all stored bytes must belong to a file, and the number of counted bytes must equal the size of the listed
files.
"""

import base64
import hashlib
import http.client
import json
import threading
import time
import urllib.parse

from server import Server, check, play

WRITERS = 6
FILES_PER_WRITER = 4
LARGEST = 6 << 20
BLOCK = 64 << 10
CLEARS_WITHIN_S = 60
BROKEN = (OSError, http.client.HTTPException, ValueError)


class Writer:
    """Changes its own files, and records responses and the request in progress."""

    def __init__(self, number, workspace, chance):
        self.chance = chance
        self.paths = [f"{workspace}/_/_/_/{number}-{file}.bin" for file in range(FILES_PER_WRITER)]
        self.known = dict.fromkeys(self.paths)
        self.doubtful = None
        self.refused = None
        self.answered = 0

    def run(self, server, ended):
        try:
            while not ended.is_set():
                self.change(http.client.HTTPConnection(server.address, timeout=60), server.key)
        except BROKEN:
            return

    def change(self, connection, key):
        path = self.chance.choice(self.paths)
        headers = {"Authorization": f"Bearer {key}"}
        if self.known[path] and self.chance.random() < 0.2:
            self.doubtful = (path, None)
            self.ask(connection, "POST", "/files/delete", json.dumps({"path": path}),
                     {**headers, "Content-Type": "application/json"}, (204,))
        else:
            data = self.chance.randbytes(self.chance.choice([0, 1, 1000, self.chance.randrange(LARGEST)]))
            self.doubtful = (path, hashlib.sha256(data).hexdigest())
            self.store(connection, path, data, headers)
        connection.close()
        self.known.update([self.doubtful])
        self.doubtful = None
        self.answered += 1

    def store(self, connection, path, data, headers):
        kind = self.chance.random()
        if kind < 0.3:
            body = {"filename": path.rsplit("/", 1)[1], "data": base64.b64encode(data).decode()}
            self.ask(connection, "POST", "/files", json.dumps(body),
                     {**headers, "Content-Type": "application/json"}, (200, 201))
            return
        blocks = [data[begin:begin + BLOCK] for begin in range(0, len(data), BLOCK)]
        if kind < 0.7:
            headers["Content-Length"] = str(len(data))
        self.ask(connection, "PUT", f"/files/{path}", iter(blocks), headers, (200, 201),
                 encode_chunked="Content-Length" not in headers)

    def ask(self, connection, method, path, body, headers, expected, encode_chunked=False):
        if encode_chunked:
            headers["Transfer-Encoding"] = "chunked"
        connection.request(method, f"/api/v1{path}", body, headers, encode_chunked=encode_chunked)
        response = connection.getresponse()
        answer = response.read()
        if response.status not in expected:
            self.refused = f"{method} {path} is rejected with {response.status}: {answer[:200]}"
            raise ValueError(self.refused)


def listed(client):
    """Returns all files by their paths."""
    files, cursor = {}, ""
    while cursor is not None:
        page = client.read("GET", f"/files?limit=200{cursor and '&cursor=' + cursor}")
        for file in page["data"]:
            check(file["path"] not in files, f"{file['path']} is listed twice")
            files[file["path"]] = file
        cursor = page["next_cursor"]
    return files


def fetched(client, path):
    """Returns the bytes of a file, fetched through its link without a token."""
    url = urllib.parse.urlsplit(client.read("GET", f"/files/{path}")["url"])
    connection = http.client.HTTPConnection(url.netloc, timeout=60)
    connection.request("GET", f"{url.path}?{url.query}")
    response = connection.getresponse()
    data = response.read()
    check(response.status == 200, f"{path} is listed, and its link answers {response.status}: {data[:200]}")
    connection.close()
    return data


def verify(server, folder, writers):
    """Returns the number of files and their total bytes."""
    client = server.client()
    files = listed(client)
    for path, file in files.items():
        data = fetched(client, path)
        check(len(data) == file["size"], f"{path} has {len(data)} bytes, listed are {file['size']}")
        check(hashlib.sha256(data).hexdigest() == file["sha256"], f"{path} has other bytes than are listed")
    total = sum(file["size"] for file in files.values())
    agree(client, folder, len(files), total)
    for writer in writers:
        check(writer.refused is None, writer.refused)
        for path in writer.paths:
            found = files[path]["sha256"] if path in files else None
            allowed = [writer.known[path]] + [sha for doubtful, sha in [writer.doubtful or (None, None)] if doubtful == path]
            check(found in allowed, f"{path} is {found}, the acknowledged state was {allowed[0]}")
            writer.known[path] = found
        writer.doubtful = None
    check(set(files) <= {path for writer in writers for path in writer.paths}, "there are files that were never stored")
    return len(files), total


def agree(client, folder, count, total):
    """Checks that incomplete uploads of the killed server are removed soon after the start, and that all remaining
    bytes belong to files."""
    until = time.monotonic() + CLEARS_WITHIN_S
    while True:
        sizes = [file.stat().st_size for file in (folder / "data" / "files").glob("*/*")]
        used = client.read("GET", "/system/storage")["used_bytes"]
        if (len(sizes), sum(sizes), used) == (count, total, total):
            return
        check(time.monotonic() < until, f"{count} files of {total} bytes are listed, {len(sizes)} of {sum(sizes)} "
                                        f"are on the disk, and {used} bytes are counted")
        time.sleep(0.05)


def play_round(number, server, folder, writers, chance, longest):
    ended = threading.Event()
    threads = [threading.Thread(target=writer.run, args=(server, ended)) for writer in writers]
    for thread in threads:
        thread.start()
    seconds = chance.uniform(0.05, longest)
    time.sleep(seconds)
    server.kill()
    ended.set()
    for thread in threads:
        thread.join()
    under_way = sum(writer.doubtful is not None for writer in writers)
    left = len(list((folder / "data" / "files").glob("*/*")))
    if chance.random() < 0.3:
        # Kills a server while it removes incomplete uploads. This must lose no data.
        server.launch()
        time.sleep(chance.uniform(0, 0.5))
        server.kill()
        server.process.stdout.close()
    server.start()
    count, total = verify(server, folder, writers)
    answered = sum(writer.answered for writer in writers)
    print(f"round {number}: killed after {seconds:.2f} s with {under_way} changes in progress and {left} files "
          "on the disk; "
          f"{answered} changes acknowledged so far; {count} files of {total} bytes are listed, kept "
          "and counted: passed", flush=True)


def store_files(program, folder, key, rounds, chance, longest):
    """Returns the numbers of passed and failed rounds."""
    server = Server(program, folder, key)
    return play(server, steps(server, folder, rounds, chance, longest))


def steps(server, folder, rounds, chance, longest):
    workspace = server.client().read("GET", "/workspace")["id"]
    writers = [Writer(number, workspace, chance) for number in range(WRITERS)]
    for number in range(1, rounds + 1):
        yield f"round {number}", lambda number=number: play_round(number, server, folder, writers, chance, longest)
