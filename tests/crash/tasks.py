"""An independent fold of tasks from their events, according to the table in `tests/mailbox/transitions.md`.

For each event, the fold derives the request that may have caused the event, and the status that must follow. The result
is the expected task with its messages, its artifacts and the effects of its approval. The fold uses no response of the
server.
"""

import collections
import pathlib

from server import check

MAX_ATTEMPTS = 5
ENDED = ("approved", "rejected", "completed", "failed", "canceled")
TABLE = pathlib.Path(__file__).resolve().parents[1] / "mailbox" / "transitions.md"
# The action of the table for each type of event. Claims and releases contain their agent. All other events have a tag.
VERBS = {"task.claimed": "claim", "task.approved": "approve", "task.edited": "edit", "task.rejected": "reject",
         "task.deferred": "defer*", "task.asked": "ask", "task.artifact": "artifact", "task.delivered": "complete",
         "task.completed": "complete*", "task.input_requested": "request_input", "task.canceled": "cancel"}
# The actions whose events an agent gets under the type of the event.
NOTIFYING_VERBS = ("create", "approve", "edit", "reject", "defer*", "ask", "cancel")

# An event of the log: the action in words of the table, and the tag or agent that identifies its request.
Done = collections.namedtuple("Done", "version verb tag agent status event")


def transitions():
    """Returns the cells of the tables, by status and action."""
    cells = {}
    columns = []
    for line in TABLE.read_text().splitlines():
        if not line.startswith("|") or line.startswith("|--"):
            continue
        first, *rest = (cell.strip() for cell in line.strip("|").split("|"))
        if first == "from":
            columns = rest
        else:
            cells.update(((first, act), cell) for act, cell in zip(columns, rest, strict=True))
    return cells


def counts(event):
    """Returns whether an event that ends an attempt counts the attempt. A lease that ended while no server ran does not
    count."""
    return event["event_type"] == "task.failed" or "attempt" in event["payload"]


class Fold:
    """A task, folded event by event."""

    table = transitions()

    def __init__(self, events):
        self.id = events[0]["aggregate_id"]
        self.status, self.taken_from, self.attempt, self.version = None, None, 1, 0
        self.agent = self.claimed_by = self.claim = self.lease_until = self.deferred_until = self.subject = None
        self.messages, self.artifacts, self.done, self.effects, self.notifications = [], [], [], [], []
        for event in events:
            self.take(event)

    def row(self):
        return "in_progress + output" if self.status == "in_progress" and self.artifacts else self.status

    def current(self):
        """Returns the artifacts that no later version supersedes, in the order of their first versions."""
        before = {artifact.get("supersedes") for artifact in self.artifacts}
        places = {}
        for number, artifact in enumerate(self.artifacts):
            places[artifact["id"]] = places.get(artifact.get("supersedes"), number)
        current = [artifact for artifact in self.artifacts if artifact["id"] not in before]
        return sorted(current, key=lambda artifact: places[artifact["id"]])

    def take(self, event):
        payload, name = event["payload"], event["event_type"]
        self.version += 1
        check(event["version"] == self.version,
              f"{self.id} continues with version {event['version']} after {self.version - 1}")
        if name == "task.created":
            check(self.version == 1, f"{self.id} is made twice")
            verb, tag, agent, status = "create", payload["title"], None, "pending"
            self.agent = payload.get("assignee_id")
            self.subject = payload["source"]["aggregate_id"]
        else:
            verb, tag, agent, status = self.act(event)
        check(payload["status"] == status, f"{self.id}: {name} in version {self.version} leads from {self.row()} to "
                                           f"{payload['status']}, expected {status}")
        self.keep(event, verb)
        self.status = status
        self.tell(event, verb)
        self.done.append(Done(self.version, verb, tag, agent, status, event))

    def act(self, event):
        """Returns the action, its tag, its agent, and the status that follows."""
        payload, name, messages = event["payload"], event["event_type"], event["payload"].get("messages", [])
        if name == "task.expired" or name == "task.failed" and "error" not in event["metadata"]:
            check(self.status == "in_progress", f"{self.id}: a lease ends while it is {self.status}")
            if not counts(event):
                return "expire", self.claim, None, self.taken_from
            check((name == "task.failed") == (self.attempt >= MAX_ATTEMPTS), f"{self.id}: {name} in attempt {self.attempt}")
            return "expire", self.claim, None, self.again()
        if name == "task.resumed":
            check(self.status == "deferred", f"{self.id} wakes while it is {self.status}")
            return "wake", self.deferred_until, None, self.taken_from
        if name in ("task.released", "task.failed"):
            holder, tag = self.claimed_by, event["metadata"].get("error")
            if tag is None:
                return "release", None, holder, self.taken_from
            return "fail*", tag, None, self.again()
        if name == "task.message":
            by_agent = messages[0]["role"] == "agent"
            check(self.status not in ENDED, f"{self.id} has a message after its end")
            return "message", messages[0]["text"], None, self.allowed("message") if by_agent else self.status
        check(name in VERBS, f"{self.id} has a {name}, which no actor requests")
        verb, resolution = VERBS[name], payload.get("resolution") or {}
        tag = resolution.get("comment") or resolution.get("reason") or event["metadata"].get("reason")
        if verb == "artifact":
            tag = payload["artifacts"][0]["name"]
        elif messages:
            tag = messages[0]["text"]
        return verb, tag, payload.get("claimed_by") if verb == "claim" else None, self.allowed(verb)

    def allowed(self, verb):
        cell = self.table[self.row(), verb]
        check(cell != "409", f"{self.id}: {verb} is done to a task that is {self.row()}")
        return cell

    def again(self):
        return "failed" if self.attempt >= MAX_ATTEMPTS else self.taken_from

    def keep(self, event, verb):
        """Applies the fields of an event other than the status."""
        payload = event["payload"]
        if verb in ("approve", "edit"):
            if verb == "edit":
                self.check_edit(payload["artifacts"])
            self.artifacts += payload.get("artifacts", [])
            self.effects = [(event["position"], artifact) for artifact in self.current() if "effect" in artifact]
        else:
            self.artifacts += payload.get("artifacts", [])
        self.messages += payload.get("messages", [])
        if verb == "claim":
            self.claimed_by, self.taken_from = payload["claimed_by"], self.status
            self.claim, self.lease_until = payload["claim"], payload["lease_until"]
            self.agent = self.agent or self.claimed_by
        elif payload["status"] != "in_progress":
            self.claimed_by = None
        if verb in ("expire", "fail*") and payload["status"] != "failed" and counts(event):
            self.attempt += 1
            check(payload["attempt"] == self.attempt, f"{self.id}: attempt {payload['attempt']} follows {self.attempt - 1}")
        if verb == "defer*":
            self.taken_from = self.taken_from if self.status == "deferred" else self.status
            self.deferred_until = payload["deferred_until"]
        elif payload["status"] != "deferred":
            self.deferred_until = None

    def tell(self, event, verb):
        """Records the name under which the agent gets an event, if the agent gets the event."""
        again = {"pending": "task.assigned", "awaiting_reply": "task.asked"}.get(self.status)
        by_agent = verb == "message" and event["payload"]["messages"][0]["role"] == "agent"
        name = {"message": None if by_agent else "task.message", "expire": again, "release": again, "fail*": again,
                "wake": "task.resumed"}.get(verb, event["event_type"] if verb in NOTIFYING_VERBS else None)
        if self.agent and name:
            self.notifications.append((name, event["event_id"], self.agent))

    def check_edit(self, artifacts):
        """Checks an edit: the new text is the next version of the last artifact, and the artifact's effect contains the
        new text as well."""
        check(len(artifacts) == 1, f"{self.id}: an edit makes {len(artifacts)} artifacts")
        after, before = artifacts[0], (self.current() or [None])[-1]
        check(after.get("supersedes") == (before and before["id"]), f"{self.id}: the edit supersedes another artifact")
        if before:
            check(after["version"] == before["version"] + 1 and after["patch"],
                  f"{self.id}: the edit is not the next version")
            payload = dict(before["effect"]["payload"], note=after["parts"][0]["text"])
            check(after["effect"] == dict(before["effect"], payload=payload),
                  f"{self.id}: the edit's effect is {after['effect']}")

    def compare(self, shown):
        """Compares this fold with the task in the mailbox."""
        shown_fields = {name: shown[name] for name in ("status", "version", "attempt", "claimed_by", "deferred_until")}
        expected = {"status": self.status, "version": self.version, "attempt": self.attempt,
                    "claimed_by": self.claimed_by, "deferred_until": self.deferred_until}
        check(shown_fields == expected, f"{self.id} is shown as {shown_fields}, its events give {expected}")
        check(shown["messages"] == self.messages, f"{self.id} shows other messages than its events have")
        check(shown["artifacts"] == self.artifacts, f"{self.id} shows other artifacts than its events have")
        timeline = [(entry["version"], entry["position"], entry["event_id"], entry["status"]) for entry in shown["timeline"]]
        events = [(done.version, done.event["position"], done.event["event_id"], done.status) for done in self.done]
        check(timeline == events, f"{self.id} shows another timeline than its events")
