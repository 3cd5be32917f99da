"""Actors that act on tasks while the server is killed. Each actor acts as a person and as an agent, and records the
responses.

A request that was in progress when the server died is in doubt: it may have taken effect or not. Errors are compared
with the table of transitions.
"""

import collections
import http.client
import threading

from server import Failure, check
from tasks import ENDED, Fold

BOARDS = 3
OWN = 4
SHARED = 3
# The maximum length of leases and deferrals in seconds. A round waits for their end.
LONGEST_S = 2
BROKEN = (OSError, http.client.HTTPException, ValueError)
# The actions on a task in each status, and their weights. Some actions are rejected, because another actor was faster
# or because the action is not allowed in this status.
HABITS = {
    "pending": {"claim": 6, "approve": 1, "edit": 1, "reject": 0.5, "defer*": 1, "ask": 1, "message": 0.5, "cancel": 0.3,
                "complete": 0.2},
    "in_progress": {"artifact": 4, "complete": 3, "claim": 1, "heartbeat": 0.5, "request_input": 0.5, "fail*": 0.4,
                    "release": 0.4, "ask": 0.3, "approve": 0.7, "reject": 0.2, "leave": 0.4},
    "review": {"approve": 4, "edit": 3, "reject": 0.5, "defer*": 1, "ask": 1, "leave": 0.2, "release": 0.1},
    "awaiting_reply": {"message": 4, "claim": 1, "approve": 1, "defer*": 0.5},
    "input_required": {"ask": 4, "reject": 0.5, "defer*": 0.5, "approve": 0.2},
    "deferred": {"leave": 5, "defer*": 0.5, "approve": 1, "edit": 0.5, "ask": 0.5, "message": 0.5},
}
# Errors that are not in the table, and the actions that may return them.
REFUSED = {"not_lease_holder": ("claim", "artifact", "complete", "request_input", "fail*", "release"),
           "not_assignee": ("claim", "message"), "artifacts_changed": ("edit",)}
PATHS = {"defer*": "defer", "fail*": "fail", "request_input": "request-input", "message": "messages", "artifact": "artifacts"}
# The actions with an idempotency key. If such an action gets no response, it is sent again.
KEYED = ("create", "message", "artifact")

# A request about one task, about several tasks in a batch, or about a task that the request creates.
Act = collections.namedtuple("Act", "verb tag tasks body agent")
Answer = collections.namedtuple("Answer", "verb version status")


class Shared:
    """The tasks on which all actors act."""

    def __init__(self):
        self.lock, self.tasks = threading.Lock(), []

    def some(self, chance):
        with self.lock:
            return chance.choice(self.tasks) if self.tasks else None

    def wants(self):
        with self.lock:
            return len(self.tasks) < SHARED

    def add(self, task):
        with self.lock:
            self.tasks.append(task)

    def drop(self, task):
        with self.lock:
            self.tasks = [other for other in self.tasks if other != task]


class Writer:
    """Acts on tasks as a person and with its own agent, and records responses and requests in progress."""

    def __init__(self, name, agent, shared, chance):
        self.name, self.agent, self.shared, self.chance = name, agent, shared, chance
        self.count = self.refusals = 0
        self.own = []
        # The status of each task in the last response that contained it.
        self.status = {}
        self.answers = collections.defaultdict(dict)
        self.leases = {}
        # The tasks with responses since the last check.
        self.acted = set()
        self.doubtful = self.refused = None

    def run(self, client, ended):
        try:
            while not ended.is_set():
                self.ask(client, self.doubtful or self.next_act())
        except (Failure, KeyError, TypeError) as failure:
            self.refused = f"{type(failure).__name__}: {failure}"
        except BROKEN:
            return

    def tag(self):
        self.count += 1
        return f"{self.name}-{self.count}"

    def next_act(self):
        self.own = [task for task in self.own if self.status.get(task) not in ENDED]
        if len(self.own) < OWN or self.shared.wants():
            return self.create(is_shared=len(self.own) >= OWN)
        task = self.shared.some(self.chance) if self.chance.random() < 0.4 else self.chance.choice(self.own)
        task = task or self.own[0]
        if self.chance.random() < 0.06:
            tasks = list({task, *self.chance.sample(self.own, 2)})
            return self.act(self.chance.choice(["approve", "reject", "defer*", "ask"]), tasks)
        habits = HABITS.get(self.status.get(task, "pending"), HABITS["pending"])
        verb = self.chance.choices(list(habits), habits.values())[0]
        return self.next_act() if verb == "leave" else self.act(verb, [task])

    def create(self, is_shared=False):
        tag = self.tag()
        body = {"title": tag, "source": {"aggregate_id": f"board-{self.chance.randrange(BOARDS)}"},
                "metadata": {"shared": is_shared}}
        if not is_shared:
            body.update(assignee_type="agent", assignee_id=self.agent)
        if self.chance.random() < 0.5:
            body["idempotency_key"] = f"own-{tag}"
        return Act("create", tag, [], body, self.agent)

    def act(self, verb, tasks, seconds=None):
        tag, by_agent = self.tag(), {"agent_id": self.agent}
        note = {"name": tag, "text": f"text of {tag}", "effect": {
            "event_type": "article.updated", "payload": {"mark": tag, "note": f"text of {tag}"}}}
        seconds = seconds or self.chance.randint(1, LONGEST_S)
        body = {
            "approve": lambda: {"comment": tag, "accept_stale": True},
            "edit": lambda: {"comment": tag, "text": f"edited by {tag}", "accept_stale": True},
            "reject": lambda: {"reason": tag},
            "cancel": lambda: {"reason": tag},
            "defer*": lambda: {"for_seconds": seconds, "reason": tag},
            "ask": lambda: {"message": tag},
            "message": lambda: {"text": tag, **(by_agent if self.chance.random() < 0.8 else {})},
            "claim": lambda: {**by_agent, "lease_seconds": seconds},
            "heartbeat": lambda: {"agent_ids": [self.agent]},
            "artifact": lambda: {**by_agent, **note},
            "complete": lambda: {**by_agent, "message": tag, **({"artifact": note} if self.chance.random() < 0.5 else {})},
            "request_input": lambda: {**by_agent, "message": tag},
            "fail*": lambda: {**by_agent, "error": tag, "retryable": True},
            "release": lambda: by_agent,
        }[verb]()
        if len(tasks) > 1:
            body.update(ids=tasks, action=verb.strip("*"))
        return Act(verb, tag, tasks, body, self.agent)

    def ask(self, client, act):
        """Sends a request and records its response. Without a response, the request stays in doubt."""
        self.doubtful = act
        if act.verb == "heartbeat":
            path = "/agents/heartbeat"
        elif act.verb == "create":
            path = "/mailbox"
        elif len(act.tasks) > 1:
            path = "/mailbox/actions"
        else:
            path = f"/mailbox/{act.tasks[0]}/{PATHS.get(act.verb, act.verb)}"
        status, answer = client.call("POST", path, act.body, act.tag if act.verb in KEYED else None)
        if len(act.tasks) > 1:
            check(status == 200 and len(answer["results"]) == len(act.tasks), f"{act} gets {status}: {answer}")
            for result in answer["results"]:
                self.take(act, result["id"], result["status"], result.get("task") or result.get("error"))
        elif act.verb == "create":
            check(status in (200, 201), f"{act} gets {status}: {answer}")
            self.take_made(act, answer)
        elif act.verb == "heartbeat":
            check(status == 200 and answer["updated"] == [self.agent], f"a heartbeat gets {status}: {answer}")
        else:
            self.take(act, act.tasks[0], status, answer)
        self.doubtful = None

    def take_made(self, act, task):
        self.acted.add(task["id"])
        self.answers[task["id"]][act.tag] = Answer("create", None, None)
        self.status[task["id"]] = "pending"
        if act.body["metadata"]["shared"]:
            self.shared.add(task["id"])
        else:
            self.own.append(task["id"])

    def take(self, act, task, status, answer):
        if status == 409:
            self.refusals += 1
            self.take_refusal(act, task, answer)
            return
        check(status in (200, 201), f"{act} gets {status}: {answer}")
        self.acted.add(task)
        if act.verb in ("message", "artifact"):
            self.answers[task][act.tag] = Answer(act.verb, None, answer["id"])
            return
        self.status[task] = answer["status"]
        if answer["status"] in ENDED:
            self.shared.drop(task)
        if act.verb == "claim":
            lease = answer["lease"]
            check(answer["status"] == "in_progress", f"{act} gets a task that is {answer['status']}")
            self.answers[task]["claim", lease["claim"]] = Answer("claim", lease["claim"], "in_progress")
            held = (task, lease["claim"])
            self.leases[held] = max(self.leases.get(held, ""), lease["expires_at"])
        elif act.verb == "release":
            self.answers[task]["release", answer["version"]] = Answer("release", answer["version"], answer["status"])
        else:
            self.answers[task][act.tag] = Answer(act.verb, answer["version"], answer["status"])

    def take_refusal(self, act, task, answer):
        if answer["code"] == "task_state_conflict":
            self.status[task] = answer["status"]
            # A deferral until the time that another actor has chosen in the same millisecond changes nothing.
            same_time = (answer["status"], act.verb) == ("deferred", "defer*")
            refused = same_time or Fold.table[answer["status"], act.verb] == "409"
            if answer["status"] in ENDED:
                self.shared.drop(task)
        else:
            refused = act.verb in REFUSED.get(answer["code"], ())
            self.status[task] = answer.get("status", "pending")
        check(refused, f"{act} is rejected: {answer}")

    def is_doubtful(self, task, done):
        """Returns whether an event of a task may be the result of the request in doubt."""
        act = self.doubtful
        if act is None or act.verb != done.verb:
            return False
        if done.verb == "create":
            return act.tag == done.tag
        return task in act.tasks and (act.tag == done.tag if done.agent is None else act.agent == done.agent)
