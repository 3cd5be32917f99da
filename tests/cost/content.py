"""Prepares tasks with as much content as the limits of the server allow within seconds, and articles and types with large
rows. Generates requests that read, change and list them. `@name@` in a request stands for an id of the preparation."""

# The number of artifacts in one request, of artifacts of a task, and of rounds in which an agent delivers.
DELIVERED = 100
ARTIFACTS = 500
ROUNDS = 6
# The size of an artifact's text and of an effect's payload, in bytes. The artifacts of a round fit into one request, and
# 500 effects into one approval.
ARTIFACT_BYTES = 7_000
ROW_BYTES = 60_000
ARTICLE_BYTES = 800_000
# The numbers of prepared tasks whose rows are large, and of the tasks that a request may approve.
LARGE_ROWS = 80
APPROVED = 2
ARTICLES = 6
TYPES = 6
AGENTS = 20


def preparation():
    """Yields the name, method, path and body of each request. The id in the answer becomes known under the name."""
    for number in range(AGENTS):
        yield f"agent{number}", "POST", "/agents", {"name": f"agent {number}", "description": "x" * 1_000}
    yield from many_artifacts("wide", effects=True)
    for number in range(APPROVED):
        yield from many_artifacts(f"approved{number}", effects=True)
    yield from many_versions()
    yield from stale_effects()
    for number in range(LARGE_ROWS):
        yield None, "POST", "/mailbox", {"title": f"row {number}", "metadata": {"text": "x" * ROW_BYTES}}
    for number in range(ARTICLES):
        yield f"article{number}", "POST", "/articles", {"title": f"article {number}", "body": "x" * ARTICLE_BYTES}
    for number in range(TYPES):
        fields = [{"name": f"f{field}", "type": "string", "enum": ["x" * 1_000]} for field in range(450)]
        yield None, "POST", "/aggregates/define", {"type_name": f"large{number}", "fields": fields}


def delivery(name, task, artifacts, effects):
    """Yields the requests with which an agent delivers artifacts of a task."""
    yield None, "POST", f"/mailbox/@{task}@/claim", {"agent_id": "@agent0@"}
    drafts = [{"name": f"{name}{number}", "text": "x" * 500, "effect": effect(number)} if effects
              else {"name": f"{name}{number}", "text": "x" * ARTIFACT_BYTES} for number in artifacts]
    yield None, "POST", f"/mailbox/@{task}@/complete", {"artifacts": drafts}


def effect(number):
    return {"aggregate_id": f"note-{number % 50}", "event_type": "note.written", "payload": {"text": "y" * ARTIFACT_BYTES}}


def many_artifacts(task, effects):
    yield task, "POST", "/mailbox", {
        "title": task, "source": {"aggregate_id": "note-0"}, "assignee_type": "agent", "assignee_id": "@agent0@"}
    for first in range(0, ARTIFACTS, DELIVERED):
        if first:
            yield None, "POST", f"/mailbox/@{task}@/request-changes", {"message": "more"}
        yield from delivery("artifact ", task, range(first, first + DELIVERED), effects)


def many_versions():
    yield "deep", "POST", "/mailbox", {"title": "deep", "assignee_type": "agent", "assignee_id": "@agent0@"}
    for number in range(ROUNDS):
        if number:
            yield None, "POST", "/mailbox/@deep@/request-changes", {"message": "another version"}
        yield from delivery("version ", "deep", range(DELIVERED), effects=False)
    yield None, "POST", "/mailbox/@deep@/request-changes", {"message": "another version"}
    yield None, "POST", "/mailbox/@deep@/claim", {"agent_id": "@agent0@"}


def stale_effects():
    """Prepares a task whose effects concern an aggregate that has changed very often since."""
    event = {"aggregate_id": "busy", "aggregate_type": "note", "event_type": "note.counted", "payload": {"n": 1}}
    yield None, "POST", "/events", {"events": [event]}
    stale = {"aggregate_id": "busy", "event_type": "note.counted", "payload": {"n": 2}, "expected_version": 1}
    drafts = [{"name": f"stale {number}", "text": "x", "effect": stale} for number in range(DELIVERED)]
    yield "stale", "POST", "/mailbox", {"title": "stale", "source": {"aggregate_id": "busy"}, "artifacts": drafts}
    for _ in range(4):
        yield None, "POST", "/events", {"events": [event] * 500}


def task(chance):
    """Returns a request that reads or changes a task."""
    name = chance.choice(["wide", "deep", "stale", f"approved{chance.randrange(APPROVED)}"])
    path = f"/api/v1/mailbox/@{name}@"
    draft = {"name": f"version {chance.randrange(DELIVERED)}", "text": "x" * chance.choice([10, ARTIFACT_BYTES, 800_000])}
    return chance.choice([
        lambda: ("GET", path, None),
        lambda: ("GET", f"{path}?timeline={chance.choice([0, 1, 1_000])}", None),
        lambda: ("POST", f"/api/v1/mailbox/@approved{chance.randrange(APPROVED)}@/approve", {"accept_stale": True}),
        lambda: ("POST", f"{path}/edit", {"modifications": {"text": "z" * chance.choice([10, 800_000])}}),
        lambda: ("POST", f"{path}/reject", {"reason": "x" * 100}) if name.startswith("approved") else ("POST", f"{path}/read", {}),
        lambda: ("POST", "/api/v1/mailbox/@deep@/artifacts", draft),
        lambda: ("POST", "/api/v1/mailbox/@deep@/messages", {"message": "x" * chance.choice([10, 100_000])}),
        lambda: ("POST", "/api/v1/mailbox/actions", {"action": chance.choice(["read", "unread"]), "ids": ["@wide@", "@deep@", "@stale@"]}),
        lambda: ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "get_task", "arguments": {"task_id": f"@{name}@", "timeline": chance.random() < 0.5}}}),
    ])()


def listing(chance):
    """Returns a request for a page of a list with large rows."""
    limit = chance.choice([1, 50, 200])
    path = chance.choice([
        "/mailbox?", "/mailbox?status=open&", "/articles?", "/articles?status=draft&", "/aggregate-types?",
        "/aggregate-types/definitions?", "/agents?", "/agents/roster?", "/events?", "/aggregates/note-0/events?",
        "/aggregates?aggregate_type=article&", "/aggregates?aggregate_type=task&", "/aggregates/@deep@/events?", "/keys?",
    ])
    return "GET", f"/api/v1{path}limit={limit}", None


def heartbeat(chance):
    return "POST", "/api/v1/agents/heartbeat", {"agent_ids": [f"@agent{number}@" for number in range(AGENTS)]}
