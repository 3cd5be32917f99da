"""The requests of a soak, with the allowed statuses of each kind of request."""

import http.client
import json
import random
import socket
import struct
import threading
import time
import uuid

NOTES = 1_000
ARTICLES = 200
PROJECTS = 20
# The number of aggregates whose states are large and whose events are small, and the number of words in each state.
PAGES, PAGE_WORDS = 20, 3_000
WORDS = "river stone copper lantern winter garden signal harbour thread ladder meadow ember quartz willow".split()
TYPE = {"type_name": "note", "fields": [{"name": "text", "type": "string"}, {"name": "n", "type": "integer"},
                                        {"name": "sum", "type": "number", "fold": "sum"}]}
PAGE = {"type_name": "page", "fields": [{"name": "text", "type": "string"}, {"name": "views", "type": "number", "fold": "sum"}]}
# The maximum time in seconds that a connection stays open after its request was sent.
ABORTED_WITHIN_S = 0.005


class Refused(Exception):
    """A request got a status that is not allowed, or a wrong response."""


class Counts:
    """The statuses of responses and their durations, by kind of request."""

    def __init__(self):
        self.lock = threading.Lock()
        self.statuses, self.seconds, self.wrong, self.aborted = {}, {}, [], 0

    def answered(self, kind, status, seconds):
        with self.lock:
            self.statuses[status] = self.statuses.get(status, 0) + 1
            self.seconds.setdefault(kind, []).append(seconds)

    def failed(self, kind, what):
        with self.lock:
            self.wrong.append(f"{kind}: {what}")

    def requests(self):
        with self.lock:
            return sum(self.statuses.values()) + self.aborted


class Load:
    """A connection that sends random requests one after another."""

    def __init__(self, address, key, chance, counts):
        self.address, self.key, self.chance, self.counts = address, key, chance, counts
        self.connection = http.client.HTTPConnection(address, timeout=60)
        self.kind = None

    def call(self, method, path, body=None, expected=(200,), key=None, headers=()):
        """Sends one request and returns the status and the response."""
        text = None if body is None else json.dumps(body)
        headers = {"Authorization": f"Bearer {key or self.key}", "Content-Type": "application/json", **dict(headers)}
        began = time.monotonic()
        self.connection.request(method, f"/api/v1{path}", text, headers)
        response = self.connection.getresponse()
        answer = response.read()
        self.counts.answered(self.kind, response.status, time.monotonic() - began)
        if response.status not in expected:
            raise Refused(f"{method} {path} gets {response.status}: {answer[:300]!r}")
        return response.status, json.loads(answer) if answer else None

    def one(self):
        """Sends a random request."""
        operation = self.chance.choices(OPERATIONS, WEIGHTS)[0]
        self.kind = operation.__name__
        try:
            operation(self)
        except Refused as refused:
            self.counts.failed(self.kind, refused)
        except (OSError, http.client.HTTPException, ValueError) as failure:
            self.counts.failed(self.kind, f"{type(failure).__name__} {failure}")
            self.connection.close()

    def text(self, words=8):
        return " ".join(self.chance.choices(WORDS, k=words))

    def note(self, verb="updated", **more):
        number = self.chance.randrange(NOTES)
        payload = {"text": self.text(), "n": self.chance.randrange(1_000), "sum": 1, **more}
        return {"aggregate_id": f"note-{number}", "aggregate_type": "note", "event_type": f"note.{verb}", "payload": payload}

    def article(self):
        return f"/articles/article-{self.chance.randrange(ARTICLES)}"


def append(load):
    event = load.note()
    load.call("POST", f"/aggregates/{event['aggregate_id']}/events", event, (201,))


def append_many(load):
    load.call("POST", "/events", {"events": [load.note() for _ in range(20)]}, (201,))


def append_large(load):
    load.call("POST", "/events", {"events": [load.note(text=load.text(6_000))]}, (201,))


def view_page(load):
    event = {"event_type": "page.viewed", "aggregate_type": "page", "payload": {"views": 1}}
    load.call("POST", f"/aggregates/page-{load.chance.randrange(PAGES)}/events", event, (201,))


def append_twice(load):
    event = {**load.note(), "event_id": str(uuid.UUID(int=load.chance.getrandbits(128)))}
    path = f"/aggregates/{event['aggregate_id']}/events"
    _, first = load.call("POST", path, event, (201,))
    _, again = load.call("POST", path, event, (200,))
    if first["position"] != again["position"]:
        raise Refused(f"an event sent twice is at {first['position']} and {again['position']}")


def append_keyed(load):
    event = load.note()
    headers = {"Idempotency-Key": f"key-{load.chance.getrandbits(64)}"}
    path = f"/aggregates/{event['aggregate_id']}/events"
    _, first = load.call("POST", path, event, (201,), headers=headers)
    _, again = load.call("POST", path, event, (200,), headers=headers)
    if first["position"] != again["position"]:
        raise Refused(f"a key sent twice gives {first['position']} and {again['position']}")


def append_expecting(load):
    event = {**load.note(), "expected_version": load.chance.randrange(1, 100)}
    load.call("POST", f"/aggregates/{event['aggregate_id']}/events", event, (201, 409))


def append_wrong(load):
    load.call("POST", "/events", {"events": [load.note(n="no number")]}, (400,))


def append_failing(load):
    load.call("POST", "/events", {"events": [load.note(fail=True)]}, (201,))


def write_article(load):
    change = {"title": load.text(3), "body": f"# {load.text(4)}\n\n{load.text(80)} [next](slug-{load.chance.randrange(ARTICLES)}.md)"}
    load.call("PATCH", load.article(), change, (200,))


def publish(load):
    load.call("POST", f"{load.article()}/{load.chance.choice(['publish', 'unpublish'])}", expected=(200, 409))


def create_article(load):
    # Uses a few keys repeatedly. A repeated request gets the first response.
    number = load.chance.randrange(ARTICLES)
    new = {"title": f"Keyed {number}", "slug": f"keyed-{number}"}
    load.call("POST", "/articles", new, (200, 201), headers={"Idempotency-Key": f"article-{number}"})


def create_project(load):
    number = load.chance.randrange(PROJECTS)
    load.call("POST", "/projects", {"name": f"Project {number}", "slug": f"project-{number}"}, (201, 409))


def pipeline(load):
    load.call("POST", "/aggregates/query", {"pipeline": load.chance.choice(PIPELINES)})


def pipeline_over_log(load):
    head = load.call("GET", "/system/consumers")[1]["head"]
    condition = {"aggregate_type": "note", "position": {"$gte": max(1, head - 300)}}
    load.call("POST", "/aggregates/query", {"pipeline": [{"$match": condition}, {"$count": "events"}]})


def pipeline_wrong(load):
    load.call("POST", "/aggregates/query", {"pipeline": [{"$nonsense": 1}]}, (400,))


def search(load):
    load.call("POST", "/aggregates/search", {"query": load.text(2), "limit": 10})


def read(load):
    load.call("GET", f"/aggregates/note-{load.chance.randrange(NOTES)}", expected=(200, 404))


def read_stream(load):
    load.call("GET", f"/aggregates/note-{load.chance.randrange(NOTES)}/events?direction=desc&limit=20", expected=(200, 404))


def read_log(load):
    load.call("GET", f"/events?limit=100&after={load.chance.randrange(1_000)}")


def read_lists(load):
    load.call("GET", load.chance.choice(["/articles?limit=20", "/projects", "/keys", "/plugins", "/aggregate-types", "/workspace"]))


def read_graph(load):
    load.call("GET", f"/aggregates/article-{load.chance.randrange(ARTICLES)}/graph?depth=2")


def keys(load):
    body = {"name": "of a soak", "scopes": ["api:read", "api:write"]}
    made = load.call("POST", "/keys", body, (201,))[1]
    load.call("GET", "/keys/self", key=made["key"])
    load.call("DELETE", f"/keys/{made['id']}", expected=(204,))
    load.call("GET", "/keys/self", key=made["key"], expected=(401,))


def parked(load):
    steps = load.call("GET", "/parked?limit=20")[1]["data"]
    for step in steps:
        # Another connection may have been faster.
        if load.chance.random() < 0.2:
            load.call("POST", f"/parked/{step['id']}/replay", expected=(200, 404))
        load.call("DELETE", f"/parked/{step['id']}", expected=(204, 404))
    load.call("POST", "/plugins/shaky/resume")


def dry_run(load):
    load.call("POST", "/plugins/shaky/dry-run", {"from_position": load.chance.randrange(1, 500), "limit": 20})


def replay_plugin(load):
    head = load.call("GET", "/system/consumers")[1]["head"]
    load.call("POST", "/plugins/shaky/replay", {"from_position": max(1, head - 50)})


def abort(load):
    """Sends a request and breaks its connection while the request is in progress."""
    method, path, body = load.chance.choice([
        lambda: ("POST", "/events", {"events": [load.note() for _ in range(10)]}),
        lambda: ("POST", "/aggregates/query", {"pipeline": load.chance.choice(PIPELINES)}),
        lambda: ("POST", "/aggregates/search", {"query": load.text(2)}),
        lambda: ("PATCH", load.article(), {"title": load.text(3)}),
        lambda: ("POST", "/parked/replay", {"plugin": "shaky"}),
        lambda: ("POST", "/plugins/shaky/resume", {}),
        lambda: ("GET", "/events?limit=200", None),
    ])()
    text = b"" if body is None else json.dumps(body).encode()
    head = f"{method} /api/v1{path} HTTP/1.1\r\nHost: {load.address}\r\nAuthorization: Bearer {load.key}\r\n" \
           f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    host, port = load.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        half = load.chance.random() < 0.2
        connection.sendall(head.encode() + (text[:len(text) // 2] if half else text))
        time.sleep(load.chance.random() * ABORTED_WITHIN_S)
    with load.counts.lock:
        load.counts.aborted += 1


PIPELINES = [
    [{"$match": {"aggregate_type": "note"}}, {"$fold": {}}, {"$group": {"_id": {"$mod": ["$n", 10]}, "count": {"$sum": 1}}}],
    [{"$match": {"aggregate_type": "note"}}, {"$fold": {}}, {"$match": {"n": {"$lt": 100}}}, {"$sort": {"n": 1}}, {"$limit": 20}],
    [{"$match": {"aggregate_type": "article"}}, {"$fold": {}}, {"$project": {"title": 1, "_facts": 1}}, {"$limit": 50}],
    [{"$match": {"aggregate_type": "note"}}, {"$fold": {}}, {"$match": {"text": {"$regex": "river.*ember"}}}, {"$count": "n"}],
]
# The operations with their weights. Each published article creates a task, which stays in memory like all aggregates.
# Publishing is rare, so that the amount of data grows little during the soak.
SHARES = [
    (append, 22), (append_many, 4), (append_large, 1), (view_page, 8), (append_twice, 3), (append_keyed, 3), (append_expecting, 3),
    (append_wrong, 2), (append_failing, 0.5), (write_article, 4), (publish, 0.1), (create_article, 1), (create_project, 1),
    (pipeline, 8), (pipeline_over_log, 2), (pipeline_wrong, 1), (search, 6), (read, 8), (read_stream, 4), (read_log, 3),
    (read_lists, 3), (read_graph, 2), (keys, 1), (parked, 1), (dry_run, 0.5), (replay_plugin, 0.2), (abort, 5),
]
OPERATIONS, WEIGHTS = [operation for operation, _ in SHARES], [share for _, share in SHARES]


def prepare(client):
    """Creates the data that exists before the load: the types, the notes, the pages and the articles."""
    for definition in (TYPE, PAGE):
        client.call("POST", "/aggregates/define", definition)
    chance = random.Random(0)
    events = [{"aggregate_id": f"note-{number}", "aggregate_type": "note", "event_type": "note.created",
               "payload": {"text": " ".join(chance.choices(WORDS, k=8)), "n": number, "sum": 1}} for number in range(NOTES)]
    events += [{"aggregate_id": f"article-{number}", "aggregate_type": "article", "event_type": "article.created",
                "payload": {"title": f"Article {number}", "slug": f"slug-{number}", "body": "one"}}
               for number in range(ARTICLES)]
    events += [{"aggregate_id": f"page-{number}", "aggregate_type": "page", "event_type": "page.created",
                "payload": {"text": " ".join(chance.choices(WORDS, k=PAGE_WORDS)), "views": 0}} for number in range(PAGES)]
    for start in range(0, len(events), 200):
        status, answer = client.call("POST", "/events", {"events": events[start:start + 200]})
        if status != 201:
            raise Refused(f"the initial data is rejected with {status}: {str(answer)[:300]}")
