"""Imports git repositories twice into a server, compares the articles with the tree of HEAD, and prints a table.

The duration of the first import is compared with `git log -p` over the same history, and the memory of the importing
process with the size of the repository's packs, because libgit2 maps the packs. The edges are those of the plugin
`linker`, and the broken links are its facts.
"""

import argparse
import os
import pathlib
import re
import secrets
import statistics
import subprocess
import sys
import tempfile
import time

# Prevents Python from writing bytecode into the repository.
sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))

from server import Server

MOST_TIMES_LOG = 10
MOST_MEMORY_MB = 200
# The suffixes of the files that become articles.
MARKDOWN = (".md", ".markdown", ".mdx", ".mkd", ".mkdn", ".mdown", ".mkdown")
BROKEN = [{"$match": {"aggregate_type": "article"}}, {"$fold": {}}, {"$unwind": "$_facts.linker.broken"}, {"$count": "n"}]
LEFT_OUT = re.compile(r"warning: (.*?)(?: at commit [0-9a-f]+)? is left out: ")
LOOK_S = 0.05
missed = 0


def git(repository, *command):
    return subprocess.run(["git", "-C", repository, *command], check=True, capture_output=True).stdout


def seconds_of(command):
    """Returns the exit code of a command without its output, and its duration in seconds."""
    began = time.monotonic()
    code = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    return code, time.monotonic() - began


def log_seconds(repository, rounds):
    """Returns the median duration of `git log -p` in seconds. In a clone that lacks some large files, the log ends at the
    first of them, and a log of the Markdown files covers the whole history. The longer one of both is then returned, which
    is less than the duration in a complete clone."""
    command = ["git", "-C", repository, "log", "-p"]
    code, seconds = seconds_of(command)
    if not code:
        return statistics.median([seconds, *(seconds_of(command)[1] for _ in range(rounds - 1))])
    command += ["--", *(f":(icase)*{ending}" for ending in MARKDOWN)]
    return max(seconds, statistics.median(seconds_of(command)[1] for _ in range(rounds)))


def packs_mb(repository):
    folder = pathlib.Path(os.fsdecode(git(repository, "rev-parse", "--absolute-git-dir")).strip())
    return sum(file.stat().st_size for file in folder.glob("objects/pack/*")) / 1e6


def markdown_files(repository):
    """Returns the ids of the blobs of the Markdown files at HEAD, by path. Symbolic links and submodules are left out."""
    files = {}
    for line in git(repository, "ls-tree", "-r", "-z", "HEAD").decode("utf-8", "surrogateescape").split("\0"):
        mode, _, rest = line.partition(" ")
        if mode.startswith("100"):
            _, _, rest = rest.partition(" ")
            blob, _, path = rest.partition("\t")
            if path.lower().endswith(MARKDOWN):
                files[path] = blob
    return files


def import_into(server, repository):
    """Imports the repository. Returns the duration in seconds, the peak of the memory in MB, the number of imported
    events, and the warnings."""
    command = [server.program, "import", "git", repository, "--server", f"http://{server.address}"]
    environment = dict(server.environment, FOLDWORK_TOKEN=server.key)
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        for file in (output, errors):
            file.seek(0)
        output, errors = output.read(), errors.read()
    if status:
        sys.exit(f"the import of {repository} ended with status {status}: {errors[-2000:]}")
    events = int(re.search(r"imported ([\d,]+) events?", output).group(1).replace(",", ""))
    warnings = [line for line in errors.splitlines() if line.startswith("warning:")]
    return seconds, usage.ru_maxrss * 1024 / 1e6, events, warnings


def processed(client):
    """Waits until the plugins have processed all events. Returns the number of parked steps."""
    while True:
        consumers = client.read("GET", "/system/consumers")["consumers"]
        if all(consumer["lag"] == 0 for consumer in consumers):
            return sum(consumer["parked"] for consumer in consumers)
        time.sleep(LOOK_S)


def articles(client):
    """Yields all articles."""
    cursor = ""
    while cursor is not None:
        page = client.read("GET", f"/aggregates?type=article&limit=200{cursor and '&cursor=' + cursor}")
        yield from page["data"]
        cursor = page.get("next_cursor")


def differences(client, repository, files, left_out):
    """Returns the ids of the articles, and the paths at which articles and files differ. `left_out` are the paths of the
    files that the import named as left out."""
    ids, differing, found = [], [], set()
    for article in articles(client):
        ids.append(article["_id"])
        path = article.get("path")
        text = git(repository, "cat-file", "blob", files[path]).decode(errors="replace") if path in files else None
        if text is None or path in found or not text.replace("\r\n", "\n").endswith(article["body"].replace("\r\n", "\n")):
            differing.append(path)
        found.add(path)
    return ids, differing + sorted(files.keys() - found - left_out)


def count_edges(client, ids):
    edges = 0
    for number in ids:
        found = client.read("GET", f"/aggregates/{number}/graph?depth=1&direction=out")["edges"]
        edges += sum(edge["from"] == number for edge in found)
    return edges


def measure(repository):
    global missed
    files = markdown_files(repository)
    with tempfile.TemporaryDirectory(prefix="foldwork-bench-") as folder:
        server = Server(arguments.program, pathlib.Path(folder), f"sk_{secrets.token_hex(32)}")
        server.start()
        try:
            client = server.client()
            log = log_seconds(repository, arguments.rounds)
            seconds, memory, events, warnings = import_into(server, repository)
            parked = processed(client)
            again = import_into(server, repository)[2]
            left_out = {found.group(1) for line in warnings if (found := LEFT_OUT.match(line))}
            ids, differing = differences(client, repository, files, left_out)
            edges = count_edges(client, ids)
            broken = sum(row["n"] for row in client.read("POST", "/aggregates/query", {"pipeline": BROKEN})["results"])
        finally:
            server.terminate()
    beside = memory - packs_mb(repository)
    holds = not differing and not again and not parked and seconds <= MOST_TIMES_LOG * log and beside <= MOST_MEMORY_MB
    missed += not holds
    name = pathlib.Path(repository).resolve()
    name = name.parent.name if name.name in ("repo", ".git") else name.name
    print(f"| {name} | {len(files):,} | {len(ids):,} | {events:,} | {again} | {len(differing)} | {edges:,} | {broken:,} | "
          f"{len(warnings)} | {seconds:.1f} | {log:.1f} | {seconds / log:.1f} | {beside:.0f} | "
          f"{'holds' if holds else 'missed'} |", flush=True)
    for path in differing[:20]:
        print(f"differs: {path}", file=sys.stderr)
    if arguments.warnings:
        print("\n".join(warnings), file=sys.stderr)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--program", required=True)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--strict", action="store_true")
parser.add_argument("--warnings", action="store_true", help="also prints the warnings of each import")
parser.add_argument("repositories", nargs="+", metavar="REPOSITORY")
arguments = parser.parse_args()
print("| repository | files | articles | events | imported again | differences | edges | broken links | warnings | s "
      f"| s of `git log -p` | ratio, at most {MOST_TIMES_LOG} | MB beside the packs, at most {MOST_MEMORY_MB} | |")
print("| --- |" + " --- |" * 13)
for each in arguments.repositories:
    measure(each)
print(f"{missed} of {len(arguments.repositories)} repositories missed a threshold")
sys.exit(1 if arguments.strict and missed else 0)
