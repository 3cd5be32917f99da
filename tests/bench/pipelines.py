"""Loads the states that benches/pipelines.rs measures into PostgreSQL, DuckDB and the server, and prints one table."""

import argparse
import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

RUNS = 9
# The memory of a query in PostgreSQL. With the default of 4 MB, a window over 7 days reads its rows from a file again
# for each row, and does not end within minutes.
WORK_MEM = "256MB"
# Each query: its name in benches/pipelines.rs, the pipeline after $fold, and the SQL for PostgreSQL and DuckDB.
QUERIES = [
    ("group with sum",
     [{"$group": {"_id": "$topic", "n": {"$sum": "$n"}}}],
     "SELECT body->>'topic', sum((body->>'n')::bigint) FROM state WHERE type = 'article' GROUP BY 1",
     "SELECT topic, sum(n) FROM state WHERE type = 'article' GROUP BY 1"),
    ("top 20 by a field",
     [{"$sort": {"n": -1}}, {"$limit": 20}],
     "SELECT * FROM state WHERE type = 'article' ORDER BY (body->>'n')::bigint DESC LIMIT 20",
     "SELECT * FROM state WHERE type = 'article' ORDER BY n DESC LIMIT 20"),
    ("filter without hit",
     [{"$match": {"n": -1}}],
     "SELECT * FROM state WHERE type = 'article' AND (body->>'n')::bigint = -1",
     "SELECT * FROM state WHERE type = 'article' AND n = -1"),
    ("range with projection",
     [{"$match": {"n": {"$gte": 1000, "$lt": 1100}}}, {"$project": {"title": 1, "n": 1}}],
     "SELECT id, body->>'title', body->>'n' FROM state WHERE type = 'article' AND (body->>'n')::bigint >= 1000 "
     "AND (body->>'n')::bigint < 1100",
     "SELECT id, title, n FROM state WHERE type = 'article' AND n >= 1000 AND n < 1100"),
    ("lookup of 20 rows",
     [{"$limit": 20},
      {"$lookup": {"from": "article", "localField": "slug", "foreignField": "slug", "as": "same"}},
      {"$project": {"slug": 1, "count": {"$size": "$same"}}}],
     "SELECT a.body->>'slug', count(*) FROM (SELECT body FROM state WHERE type = 'article' LIMIT 20) a "
     "LEFT JOIN state b ON b.type = 'article' AND b.body->>'slug' = a.body->>'slug' GROUP BY 1",
     "SELECT a.slug, count(*) FROM (SELECT slug FROM state WHERE type = 'article' LIMIT 20) a "
     "LEFT JOIN state b ON b.type = 'article' AND b.slug = a.slug GROUP BY 1"),
    ("count by tag",
     [{"$unwind": "$tags"}, {"$group": {"_id": "$tags", "n": {"$sum": 1}}}],
     "SELECT tag, count(*) FROM state, jsonb_array_elements_text(body->'tags') tag WHERE type = 'article' GROUP BY 1",
     "SELECT unnest(tags) AS tag, count(*) FROM state WHERE type = 'article' GROUP BY 1"),
]
# Windows over all states: the name in benches/pipelines.rs, and the SQL for PostgreSQL, which has no moving median, and
# for DuckDB.
WINDOWS = [
    ("running sum by topic",
     "SELECT sum(x) FROM (SELECT sum((body->>'n')::bigint) OVER (PARTITION BY body->>'topic' ORDER BY "
     "(body->>'n')::bigint ROWS UNBOUNDED PRECEDING) x FROM state) s",
     "SELECT sum(x) FROM (SELECT sum(n) OVER (PARTITION BY topic ORDER BY n ROWS UNBOUNDED PRECEDING) x FROM state) s"),
    ("moving average of 100 rows",
     "SELECT sum(x) FROM (SELECT avg((body->>'n')::bigint) OVER (ORDER BY (body->>'n')::bigint ROWS 99 PRECEDING) x "
     "FROM state) s",
     "SELECT sum(x) FROM (SELECT avg(n) OVER (ORDER BY n ROWS 99 PRECEDING) x FROM state) s"),
    ("rank in each topic",
     "SELECT sum(x) FROM (SELECT rank() OVER (PARTITION BY body->>'topic' ORDER BY (body->>'n')::bigint DESC) x "
     "FROM state) s",
     "SELECT sum(x) FROM (SELECT rank() OVER (PARTITION BY topic ORDER BY n DESC) x FROM state) s"),
    ("median of 1,000 rows",
     None,
     "SELECT sum(x) FROM (SELECT median(n) OVER (ORDER BY slug ROWS 999 PRECEDING) x FROM state) s"),
    ("sum over 7 days",
     "SELECT sum(x) FROM (SELECT sum((body->>'n')::bigint) OVER (ORDER BY timestamptz '2026-01-01' + "
     "(body->>'n')::bigint * interval '1 minute' RANGE interval '7 days' PRECEDING) x FROM state) s",
     "SELECT sum(x) FROM (SELECT sum(n) OVER (ORDER BY timestamp '2026-01-01' + n * interval 1 minute "
     "RANGE BETWEEN interval 7 days PRECEDING AND CURRENT ROW) x FROM state) s"),
]
missed = 0


def tag(number, place):
    return f"tag-{(number * 7 + place * 13) % 40}"


def payload(number):
    return {"topic": f"topic-{number % 20}", "title": f"Title {number}", "body": "x" * 216, "slug": f"slug-{number}",
            "n": number * 7919 % 200003, "tags": [tag(number, place) for place in range(3)]}


def psql(script):
    command = ["runuser", "-u", "postgres", "--", arguments.psql, "-h", arguments.socket, "-qAtX", "postgres"]
    done = subprocess.run(command, input=script, text=True, capture_output=True, cwd="/", check=True)
    return done.stdout + done.stderr


def measure_postgres():
    psql(f"""CREATE TABLE state (id text PRIMARY KEY, type text NOT NULL, body jsonb NOT NULL);
        INSERT INTO state SELECT 'a-' || i, 'article', jsonb_build_object('topic', 'topic-' || i % 20,
            'title', 'Title ' || i, 'body', repeat('x', 216), 'slug', 'slug-' || i, 'n', i::bigint * 7919 % 200003,
            'tags', jsonb_build_array('tag-' || (i * 7) % 40, 'tag-' || (i * 7 + 13) % 40, 'tag-' || (i * 7 + 26) % 40))
            FROM generate_series(0, {arguments.states} - 1) i;
        VACUUM ANALYZE state;""")
    figures = []
    for name, query in [(name, query) for name, _, query, _ in QUERIES] + [(name, query) for name, query, _ in WINDOWS]:
        if query is None:
            figures.append(None)
            continue
        output = psql(f"SET work_mem = '{WORK_MEM}';\n" + "\\timing on\n\\o /dev/null\n" + f"{query};\n" * RUNS)
        times = [float(ms) for ms in re.findall(r"Time: ([0-9.]+) ms", output)]
        if len(times) != RUNS:
            sys.exit(f"PostgreSQL on '{name}': {output}")
        figures.append(statistics.median(times))
    return figures


def measure_duckdb():
    import duckdb

    database = duckdb.connect()
    database.execute(f"""CREATE TABLE state AS SELECT 'a-' || i AS id, 'article' AS type, 'topic-' || i % 20 AS topic,
        'Title ' || i AS title, repeat('x', 216) AS body, 'slug-' || i AS slug, i * 7919 % 200003 AS n,
        ['tag-' || (i * 7) % 40, 'tag-' || (i * 7 + 13) % 40, 'tag-' || (i * 7 + 26) % 40] AS tags
        FROM range({arguments.states}) AS numbers(i)""")
    queries = [query for _, _, _, query in QUERIES] + [query for _, _, query in WINDOWS]
    return [median(lambda query=query: database.execute(query).fetchall()) for query in queries]


def median(work, runs=RUNS):
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)


class Server:
    def __init__(self):
        log = os.path.join(arguments.folder, "server.log")
        command = [sys.executable, arguments.first_answer, arguments.program, f"surrealkv://{arguments.folder}/store", log]
        first, address, pid = subprocess.run(command, text=True, capture_output=True, check=True).stdout.split()
        self.first_answer, self.pid = float(first), int(pid)
        self.connection = http.client.HTTPConnection(address, timeout=600)

    def send(self, path, body):
        headers = {"Authorization": f"Bearer {os.environ['FOLDWORK_BOOTSTRAP_KEY']}", "Content-Type": "application/json",
                   "Prefer": "return=minimal"}
        self.connection.request("POST", path, json.dumps(body), headers)
        response = self.connection.getresponse()
        answer = response.read()
        if response.status not in (200, 201):
            sys.exit(f"{path}: {response.status} {answer[:300]}")
        return answer

    def query(self, pipeline):
        before = [{"$match": {"aggregate_type": "article"}}, {"$fold": {}}]
        return self.send("/api/v1/aggregates/query", {"pipeline": before + pipeline})

    def catch_up(self):
        """Waits until the followers of the log have reached its end."""
        headers = {"Authorization": f"Bearer {os.environ['FOLDWORK_BOOTSTRAP_KEY']}"}
        while True:
            self.connection.request("GET", "/api/v1/system/consumers", headers=headers)
            consumers = json.loads(self.connection.getresponse().read())["consumers"]
            if all(consumer["lag"] == 0 for consumer in consumers):
                return
            time.sleep(0.2)

    def memory(self):
        """Returns the resident bytes of the process, and those that are not pages of its program's file."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            text = status.read()
        return [int(re.search(rf"{name}:\s+(\d+)", text).group(1)) * 1024 for name in ["VmRSS", "RssAnon"]]

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        while os.path.exists(f"/proc/{self.pid}"):
            try:
                os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                pass
            time.sleep(0.05)


def measure_server():
    server = Server()
    empty, _ = server.memory()
    for start in range(0, arguments.states, 1000):
        events = [{"aggregate_id": f"a-{number}", "aggregate_type": "article", "event_type": "article.created",
                   "payload": payload(number)} for number in range(start, min(start + 1000, arguments.states))]
        server.send("/api/v1/events", {"events": events})
    server.catch_up()
    server.stop()
    server = Server()
    began = time.perf_counter()
    for _, pipeline, _, _ in QUERIES:
        server.query(pipeline)
    loaded = server.first_answer + time.perf_counter() - began
    times = [median(lambda pipeline=pipeline: server.query(pipeline)) for _, pipeline, _, _ in QUERIES]
    # The allocator returns freed memory to the system within ten seconds.
    time.sleep(12)
    server.query(QUERIES[0][1])
    memory, anonymous = server.memory()
    server.stop()
    text = sum(len(json.dumps(payload(number), separators=(",", ":"))) for number in range(0, arguments.states, 97))
    text = text / len(range(0, arguments.states, 97))
    return times, loaded, memory, anonymous, (memory - empty) / arguments.states - text


def verdict(holds):
    global missed
    missed += not holds
    return "holds" if holds else "missed"


def print_windows(measured, postgres, duckdb):
    print(f"\n| {'window':26} |" + "".join(f" {head:>11} |" for head in
                                             ["columns", "PostgreSQL", "DuckDB", "PG / ours", "ours / Duck", ""]))
    print(f"|{'-' * 28}|" + f"{'-' * 13}|" * 6)
    for (name, *_), pg, duck in zip(WINDOWS, postgres, duckdb):
        columns = float(measured[name].split("\t")[0])
        holds = (pg is None or pg / columns > 1) and columns / duck <= 3
        beside = f" {'none':>11} |" if pg is None else f" {pg:11.3f} |"
        ratio = f" {'':>11} |" if pg is None else f" {pg / columns:11.1f} |"
        print(f"| {name:26} | {columns:11.3f} |{beside} {duck:11.3f} |{ratio} {columns / duck:11.2f} | "
              f"{verdict(holds):>11} |")
    print()


def main():
    with open(arguments.ours, encoding="utf-8") as lines:
        measured = dict(line.rstrip("\n").split("\t", 1) for line in lines if "\t" in line)
    ours = [[float(figure) for figure in measured[name].split("\t")] for name, *_ in QUERIES]
    postgres, duckdb = measure_postgres(), measure_duckdb()
    over_http, loaded, memory, anonymous, overhead = measure_server()
    print(f"\n{os.cpu_count()} processors, {arguments.states} states, medians of {RUNS}, in ms")
    heads = ["columns", "rows", "appending", "over HTTP", "PostgreSQL", "DuckDB", "PG / ours", "ours / Duck", ""]
    print(f"| {'pipeline':22} |" + "".join(f" {head:>11} |" for head in heads))
    print(f"|{'-' * 24}|" + f"{'-' * 13}|" * len(heads))
    for (name, *_), (columns, rows, busy, *_), pg, duck, web in zip(QUERIES, ours, postgres, duckdb, over_http):
        holds = pg / columns >= 10 and columns / duck <= 2.5 and busy <= 2 * columns and web - columns <= 1
        figures = [columns, rows, busy, web, pg, duck]
        print(f"| {name:22} |" + "".join(f" {figure:11.3f} |" for figure in figures)
              + f" {pg / columns:11.1f} | {columns / duck:11.2f} | {verdict(holds):>11} |")
    print_windows(measured, postgres[len(QUERIES):], duckdb[len(QUERIES):])
    known = {name for name, *_ in QUERIES + WINDOWS}
    for name, figures in measured.items():
        if "\t" in figures and name not in known:
            columns, rows, *_ = (float(figure) for figure in figures.split("\t"))
            print(f"{name}: {columns:.1f} ms, row by row {rows:.1f} ms")
    print(f"appends beside the queries: {measured['appends/s']}/s")
    print(f"HTTP adds at most {max(web - figures[0] for web, figures in zip(over_http, ours)):.3f} ms")
    print(f"start until all six queries were answered once: {loaded:.2f} s ({verdict(loaded <= 3)}, at most 3)")
    print(f"memory of the process: {memory / 1e6:.0f} MB ({verdict(memory <= 2_000 * arguments.states)}, at most 400 for "
          f"200,000), of it {anonymous / 1e6:.0f} MB without the pages of the program's file; since "
          f"before the states {overhead:.0f} bytes a state beyond its text, the store's own included")
    print(f"{missed} thresholds missed")
    sys.exit(arguments.strict == "yes" and missed > 0)


parser = argparse.ArgumentParser()
parser.add_argument("--states", type=int)
for option in ["ours", "psql", "socket", "program", "folder", "first-answer", "strict"]:
    parser.add_argument(f"--{option}")
arguments = parser.parse_args()
main()
