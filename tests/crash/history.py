"""The steps for both stores. The result of the steps is predictable.

The server also appends events (derived events and tasks). Two runs may interleave these events with the steps in
different ways, and no result may depend on the order. Therefore, after a step that makes the server append to a stream
or read a stream, no step uses the stream until the follower has reached the end of the log (`catch_up`).
"""

import json
import subprocess

PILLARS = 12
WORDS = "river stone garden window harbour copper meadow lantern winter signal marble thunder".split()
# The maximum size of a request, unless a single event is larger.
BATCH_BYTES = 256 * 1024
# The plugin `breaker` throws for one in this many events.
BREAKS = 7

TYPE = {"type_name": "note", "display_name": "Note", "traits": ["content-bearing"],
        "fields": [{"name": "text", "type": "string"}]}

PLUGINS = {
    "breaker": {
        "plugin.toml": '''name = "breaker"
version = "1.0.0"
description = "Throws for every seventh event, until it is fixed; then for fewer."
hooks = ["enrich"]
on = { events = ["article.*", "note.*"] }

[settings]
fixed = false
''',
        "plugin.rhai": '''fn enrich(event, state, settings) {
    let n = event.payload.n;
    if type_of(n) != "i64" {
        return ();
    }
    if n % 7 == 0 && (!settings.fixed || n % 35 == 0) {
        throw `the number ${n} breaks it`;
    }
    let facts = #{ derived: #{ n: n, version: state._version }, labels: [`number ${n}`] };
    if type_of(event.payload.follows) == "string" {
        facts.edges = [#{ kind: "links_to", to_label: event.payload.follows, weight: 1.0 + n % 3 }];
    }
    facts
}
''',
    },
    "chronicler": {
        "plugin.toml": '''name = "chronicler"
version = "1.0.0"
description = "Derives events from some events, and events from those."
hooks = ["enrich"]
on = { events = ["note.*", "article.published"] }
''',
        "plugin.rhai": '''fn enrich(event, state, settings) {
    let kind = event.event_type;
    let n = event.payload.n;
    if kind == "note.created" && n % 3 == 0 {
        return #{ derived: #{ summaries: 2 }, events: [
            #{ event_type: "note.summarized", payload: #{ summary: `${state.text} in short`, of: n } },
            #{ event_type: "note.summarized", payload: #{ digest: `${state.text} shorter`, of: n } },
        ] };
    }
    if kind == "note.summarized" {
        return #{ events: [#{ event_type: "note.counted", payload: #{ counted: event.payload.of } }] };
    }
    if kind == "article.published" && n % 2 == 0 {
        return #{ events: [#{ event_type: "article.indexed", payload: #{ indexed: n } }] };
    }
    #{ derived: #{ last: kind } }
}
''',
    },
}


class History:
    """The steps. Each step is a list of events to append together, or the name of an action."""

    def __init__(self, chance, events, data=None):
        self.chance = chance
        self.steps, self.number, self.streams = [], 0, {}
        self.slugs, self.notes = {}, []
        self.aim = events
        if data is None:
            self.write_made()
        else:
            self.write_lines(data)

    def append(self, events):
        """Adds events in batches of different sizes."""
        while events:
            size = self.chance.choice([1, 2, 5, 12, 30])
            while size > 1 and len(json.dumps(events[:size])) > BATCH_BYTES:
                size //= 2
            self.steps.append(events[:size])
            events = events[size:]

    def event(self, stream, verb, payload, number=None):
        self.number += 1
        kind = "note" if stream.startswith("note-") else "article"
        payload = {"n": self.number if number is None else number, **payload}
        return {"event_id": f"event-{self.number}", "aggregate_id": stream, "aggregate_type": kind,
                "event_type": f"{kind}.{verb}", "payload": payload, "occurred_at": moment(self.number)}

    def write_lines(self, lines):
        """Adds the events of a file with new ids. Events without a time get a time."""
        events = []
        for line in lines:
            self.number += 1
            event = {"occurred_at": moment(self.number), **json.loads(line), "event_id": f"event-{self.number}"}
            event.pop("project_id", None)
            event["payload"] = {**event["payload"], "n": self.number}
            if event["event_type"].endswith(".deleted"):
                event["payload"] = {}
            events.append(event)
            self.streams[event["aggregate_id"]] = None
        self.append(events)
        self.steps += ["catch_up", "compare"]

    def write_made(self):
        self.append([self.event(f"pillar-{number}", "created", {
            "title": pillar(number), "slug": f"pillar-{number}",
            "body": f"See /pages/pillar-{(number + 5) % PILLARS}.md."}) for number in range(PILLARS)])
        self.steps.append("catch_up")
        sections = 4
        for section in range(sections):
            self.write_section(int(self.aim * 0.8 / sections))
            self.steps.append("catch_up")
        self.steps.append("compare")
        self.break_the_circuit(int(self.aim * 0.05))
        self.steps += ["catch_up", "compare", "fix", "resume"] + ["replay"] * 4
        self.write_section(int(self.aim * 0.15))
        self.steps += ["catch_up", "replay", "catch_up", "compare"]

    def write_section(self, most):
        """Adds events of articles and notes. Does not change published articles and new notes in the rest of the
        section."""
        settled = [stream for stream, state in self.streams.items() if state != "deleted"]
        self.chance.shuffle(settled)
        to_publish, to_change = settled[:len(settled) // 4], settled[len(settled) // 4:]
        notes_to_change, self.notes, fresh_notes = self.notes, [], []
        events = []
        while len(events) < most:
            draw = self.chance.random()
            if draw < 0.12 and to_publish:
                events.append(self.publish(to_publish.pop()))
            elif draw < 0.22:
                stream = f"note-{self.number}"
                fresh_notes.append(stream)
                events.append(self.event(stream, "created", {"text": " ".join(self.chance.sample(WORDS, 3))}))
            elif draw < 0.26 and notes_to_change:
                events.append(self.event(self.chance.choice(notes_to_change), "updated", {"text": "said otherwise"}))
            elif draw < 0.65 or not to_change:
                stream = f"article-{len(self.streams)}"
                to_change.append(stream)
                events.append(self.create(stream))
            else:
                events.append(self.change(to_change))
        self.notes = notes_to_change + fresh_notes
        self.append(events)

    def body(self):
        """Returns a body that links slugs of existing, former and future articles, and mentions pillars by their
        titles."""
        likely = len(self.streams) * 5 // 4 + 10
        links = [f"slug-{self.chance.randrange(likely)}" for _ in range(self.chance.randrange(5))]
        text = "".join(self.chance.choice([f"See [this](/pages/{slug}). ", f"In docs/{slug}.md it says so. "])
                       for slug in links)
        mentions = [pillar(number) for number in self.chance.sample(range(PILLARS), self.chance.randrange(3))]
        return f"# Part\n\n{text}\n\nOf the {' and the '.join(mentions) or 'rest'} we know. Filler. " * 2

    def create(self, stream):
        number = len(self.streams)
        self.streams[stream] = "there"
        self.slugs[stream] = f"slug-{number}"
        payload = {"title": f"Untold {number}", "slug": self.slugs[stream], "body": self.body(),
                   "tags": self.chance.sample(WORDS, 2)}
        if self.chance.random() < 0.3:
            payload["follows"] = pillar(self.chance.randrange(PILLARS))
        return self.event(stream, "created", payload)

    def change(self, streams):
        stream = self.chance.choice(streams)
        draw = self.chance.random()
        if draw < 0.12:
            streams.remove(stream)
            self.streams[stream] = "deleted"
            self.slugs.pop(stream)
            return self.event(stream, "deleted", {})
        if draw < 0.35:
            # Chooses a slug to which other articles may link, and which another article may have had before.
            slug = f"slug-{self.chance.randrange(len(self.streams) * 5 // 4 + 10)}"
            if slug in self.slugs.values() or int(slug.split("-")[1]) >= len(self.streams):
                slug = f"renamed-{self.number}"
            self.slugs[stream] = slug
            return self.event(stream, "updated", {"slug": slug})
        if draw < 0.5:
            return self.event(stream, "updated", {"follows": pillar(self.chance.randrange(PILLARS))})
        if draw < 0.55:
            return self.event(stream, "updated", {"$unset": ["body"]})
        return self.event(stream, "updated", {"body": self.body()})

    def publish(self, stream):
        return self.event(stream, "published", {"published_at": moment(self.number + 1)})

    def break_the_circuit(self, most):
        """Adds consecutive failures that open the circuit, and then events for which the plugin is no longer called."""
        streams = [stream for stream, state in self.streams.items() if state != "deleted"]
        def update(turn, number=None):
            return self.event(self.chance.choice(streams), "updated", {"round": turn}, number)

        most = max(most, 10)
        failing = [update(turn, BREAKS * (turn + 1)) for turn in range(8)]
        refused = [update(turn) for turn in range(most)]
        # The number of failures before the circuit opens must survive a kill, and so must the open circuit.
        self.append(failing[:3])
        self.steps += ["catch_up", "kill"]
        self.append(failing[3:] + refused[:most // 2])
        self.steps += ["catch_up", "kill"]
        self.append(refused[most // 2:])


def pillar(number):
    return f"{WORDS[number]} of {WORDS[(number * 5 + 3) % len(WORDS)]}".capitalize()


def moment(number):
    """Returns the time of the event with this number: seven seconds after the event before."""
    seconds = number * 7
    return (f"2024-{1 + seconds // 2_419_200 % 12:02}-{1 + seconds // 86_400 % 28:02}"
            f"T{seconds // 3_600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.000Z")


def lines_of(file):
    if file.suffix == ".zst":
        unpacked = subprocess.run(["zstd", "-dcq", "--long=27", file], check=True, stdout=subprocess.PIPE)
        return unpacked.stdout.splitlines()
    return file.read_bytes().splitlines()
