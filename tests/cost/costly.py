"""Generates expensive requests. Each request depends only on a random number generator."""

import json

import content

# The characters of texts and patterns.
LETTERS = "ab0 é"
LARGEST_BODY = 900_000
SIZES = [1, 3, 10, 100, 1_000, 10_000, 100_000]


def preparation():
    """Yields the requests that prepare a new server: the definition of a type, events of readable aggregates, and tasks
    with much content. Each is a name for the id in the answer, or None, with the method, path and body."""
    fields = [{"name": "title", "type": "string"}, {"name": "tags", "type": "array", "fold": "union"}]
    yield None, "POST", "/aggregates/define", {"type_name": "note", "fields": fields}
    for number in range(50):
        payload = {"title": f"note {number} " + "ab" * number, "tags": list(range(number)), "n": number % 7}
        yield None, "POST", f"/aggregates/note-{number}/events", {
            "aggregate_type": "note", "event_type": "note.created", "payload": payload}
    yield from content.preparation()


def request(chance):
    """Returns the kind, method, path and body of a request."""
    kind, make = chance.choice([
        ("pipeline", pipeline), ("pipeline", pipeline), ("pipeline", pipeline), ("dry run", dry_run), ("mcp", mcp),
        ("type", definition), ("payload", payload), ("search", search), ("task", content.task), ("task", content.task),
        ("list", content.listing), ("heartbeat", content.heartbeat),
    ])
    while True:
        method, path, body = make(chance)
        # A larger body would be rejected before it is read.
        if len(json.dumps(body)) < LARGEST_BODY:
            return kind, method, path, body


def pipeline(chance):
    return "POST", "/api/v1/aggregates/query", {"pipeline": stages(chance), **({"limit": 5} if chance.random() < 0.3 else {})}


def dry_run(chance):
    return "POST", "/api/v1/aggregates/query", {"pipeline": stages(chance), "dry_run": True}


def mcp(chance):
    call = {"name": "query", "arguments": {"pipeline": stages(chance)}}
    return "POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}


def search(chance):
    return "POST", "/api/v1/aggregates/search", {"query": text(chance)[:1_000] or "a", "limit": chance.choice([1, 10, 50])}


def definition(chance):
    fields = [{"name": f"f{number}", "type": "string", "pattern": pattern(chance)}
              for number in range(chance.choice([1, 5, 50, 100, 400]))]
    if chance.random() < 0.3:
        fields = [{"name": f"f{number}", "type": "object", "default": nested(chance)} for number in range(5)]
    return "POST", "/api/v1/aggregates/define", {"type_name": f"t{chance.randrange(20)}", "fields": fields}


def payload(chance):
    values = {f"f{number}": chance.choice([text, nested, number_of])(chance)
              for number in range(chance.choice([1, 5, 100]))}
    kind = chance.choice(["note"] + [f"t{number}" for number in range(20)])
    return "POST", f"/api/v1/aggregates/{kind}-{chance.randrange(30)}/events", {
        "aggregate_type": kind, "event_type": f"{kind}.changed", "payload": values}


def text(chance, most=len(SIZES)):
    part = "".join(chance.choices(LETTERS, k=chance.choice([1, 2, 7])))
    return part * chance.choice(SIZES[:most])


def number_of(chance):
    return chance.choice([0, 1, -1, 2**31, 2**53, -2**63, 0.5, 1e300])


def nested(chance):
    """Returns a wide or deep value."""
    value = chance.choice([1, "a", None])
    for _ in range(chance.choice([1, 3, 50, 150])):
        value = [value] if chance.random() < 0.5 else {"a": value}
    width = chance.choice([1, 10, 1_000, 20_000])
    return [value] + list(range(width)) if chance.random() < 0.5 else {f"k{number}": number for number in range(width)}


def pattern(chance):
    """Returns a regular expression. Many of the expressions are large or cause backtracking."""
    atom = chance.choice(["a", "[ab]", "(a|ab)", r"\w", r"\p{L}", ".", "[^b]", "(a*)", "(?:a|b)", "é", r"\d"])
    kind = chance.randrange(9)
    if kind == 0:
        return atom * chance.choice([1, 10, 100, 1_000])
    if kind == 1:
        return atom + "{" + str(chance.choice([2, 50, 500, 1_000])) + "}"
    if kind == 2:
        return "(" * 3 + atom + "{1,20}){1,20}){1," + str(chance.choice([2, 20, 50])) + "}"
    if kind == 3:
        return f"(?={atom}*b)" * chance.choice([1, 16, 300]) + "c"
    if kind == 4:
        return f"({atom}+)+\\1$"
    if kind == 5:
        return f"[ab]*a[ab]{{{chance.choice([10, 200, 2_000, 8_000])}}}c"
    if kind == 6:
        return "|".join("".join(chance.choices("ab", k=chance.choice([1, 8]))) for _ in range(chance.choice([2, 100, 2_000])))
    if kind == 7:
        return "(?i)" + atom + "+" + f"(?<!{atom})x" * chance.choice([1, 50])
    return chance.choice(["(((((", "a**", "(?P<n>a)\\k<n>", "\\Q" + "a" * 1_000, "(?(1)a|b)", "(?R)", "(a(?1)?b)"])


def regex(chance):
    return {"input": chance.choice(["$title", {"$literal": text(chance)}, repeated(chance)]),
            "regex": pattern(chance), **({"options": chance.choice(["i", "m", "s", "x", "imsx"])} if chance.random() < 0.3 else {})}


def repeated(chance):
    """Returns an expression that creates a long text from a short text."""
    return {"$reduce": {"input": {"$range": [0, chance.choice([5, 12, 18, 24])]}, "initialValue": text(chance, 3),
                        "in": {"$concat": ["$$value", "$$value"]}}}


def shared(chance, then):
    """Returns an expression whose value shares its parts. The value has few bytes in memory, but many leaves."""
    levels, width = chance.choice([(3, 3), (6, 8), (10, 8), (20, 2), (25, 4)])
    expression = then
    for _ in range(levels):
        expression = {"$let": {"vars": {"x": ["$$x"] * width, "y": {f"k{number}": "$$y" for number in range(width)}},
                               "in": expression}}
    return {"$let": {"vars": {"x": "$n", "y": "$n"}, "in": expression}}


def array(chance):
    return chance.choice([
        "$tags",
        lambda: {"$range": [0, chance.choice(SIZES + [10_000_000])]},
        lambda: {"$map": {"input": {"$range": [0, chance.choice(SIZES)]}, "in": expression(chance, 1)}},
        lambda: {"$literal": nested(chance)},
        lambda: {"$split": [repeated(chance), "a"]},
        lambda: {"$reduce": {"input": {"$range": [0, chance.choice([5, 15, 25])]}, "initialValue": ["$n"],
                             "in": {"$concatArrays": ["$$value", "$$value"]}}},
    ]) if chance.random() < 0.2 else made(chance.choice([
        lambda: {"$range": [0, chance.choice(SIZES + [10_000_000])]},
        lambda: {"$map": {"input": {"$range": [0, chance.choice(SIZES)]}, "in": expression(chance, 1)}},
        lambda: {"$split": [repeated(chance), "a"]},
        lambda: {"$reduce": {"input": {"$range": [0, chance.choice([5, 15, 25])]}, "initialValue": ["$n"],
                             "in": {"$concatArrays": ["$$value", "$$value"]}}},
    ]))


def made(make):
    return make() if callable(make) else make


def expression(chance, depth=0):
    if depth > 3:
        return chance.choice(["$n", "$title", "$tags", 1, "a"])
    inner = lambda: expression(chance, depth + 1)
    items = lambda: made(array(chance))
    return chance.choice([
        lambda: {"$regexMatch": regex(chance)},
        lambda: {"$regexFindAll": regex(chance)},
        lambda: {"$regexFind": regex(chance)},
        lambda: shared(chance, {chance.choice(["$eq", "$cmp", "$max", "$setUnion", "$concatArrays", "$mergeObjects"]):
                                [["$$x"], ["$$x"]]}),
        lambda: shared(chance, {"$eq": ["$$y", {"$mergeObjects": ["$$y", "$$y"]}]}),
        lambda: shared(chance, {"$indexOfArray": [["$$y", "$$x"], "$$x"]}),
        lambda: shared(chance, chance.choice(["$$x", "$$y", {"$toString": "$$x"}, {"$year": "$$x"}, {"$size": "$$x"}])),
        lambda: {chance.choice(["$setUnion", "$setDifference", "$setIntersection", "$setEquals", "$setIsSubset"]):
                 [items(), items()]},
        lambda: {"$sortArray": {"input": items(), "sortBy": chance.choice([1, -1, {"a": 1}])}},
        lambda: {"$in": [inner(), items()]},
        lambda: {"$indexOfArray": [items(), inner()]},
        lambda: {"$reduce": {"input": items(), "initialValue": chance.choice([{}, [], 0, ""]),
                             "in": chance.choice([{"$mergeObjects": ["$$value", {"a": "$$this"}]}, ["$$value"],
                                                  {"a": "$$value"}, {"$concatArrays": [["$$this"], "$$value"]},
                                                  {"$setUnion": ["$$value", ["$$this"]]}])}},
        lambda: {"$filter": {"input": items(), "cond": inner()}},
        lambda: {"$zip": {"inputs": [items(), items(), items()]}},
        lambda: {"$arrayToObject": {"$map": {"input": items(), "in": {"k": {"$toString": "$$this"}, "v": 1}}}},
        lambda: {"$replaceAll": {"input": repeated(chance), "find": "a", "replacement": text(chance, 3)}},
        lambda: {"$indexOfCP": [repeated(chance), text(chance, 4)]},
        lambda: {"$substrCP": [repeated(chance), chance.choice([0, 5, 100_000]), chance.choice([1, 100_000])]},
        lambda: {"$dateFromString": {"dateString": repeated(chance)}},
        lambda: {"$dateToString": {"date": "$$NOW", "format": text(chance).replace(" ", "%Y")}},
        lambda: {"$median": {"input": items(), "method": "approximate"}},
        lambda: {"$trim": {"input": repeated(chance), "chars": text(chance, 3)}},
        lambda: {"$toInt": repeated(chance)},
        lambda: {"$convert": {"input": inner(), "to": "string", "onError": inner()}},
        lambda: {"$switch": {"branches": [{"case": inner(), "then": inner()}] * chance.choice([1, 3, 50])}},
        lambda: {"$add": [chance.choice(["$n", 1, 1.5])] * chance.choice(SIZES[:5])},
    ])()


def schema(chance, depth=0):
    if depth > 4:
        return {"pattern": pattern(chance)}
    return chance.choice([
        lambda: {"pattern": pattern(chance)},
        lambda: {"required": [f"k{number}" for number in range(chance.choice(SIZES[:5]))]},
        lambda: {"enum": list(range(chance.choice(SIZES[:5])))},
        lambda: {"anyOf": [schema(chance, depth + 1) for _ in range(chance.choice([1, 3, 8]))]},
        lambda: {"properties": {name: schema(chance, depth + 1) for name in ("title", "tags", "n")}},
        lambda: {"patternProperties": {pattern(chance): schema(chance, depth + 1) for _ in range(chance.choice([1, 5]))}},
        lambda: {"items": schema(chance, depth + 1), "uniqueItems": True},
        lambda: {"not": schema(chance, depth + 1)},
    ])()


def condition(chance):
    return chance.choice([
        lambda: {"title": {"$regex": pattern(chance)}},
        lambda: {"$or": [{"title": {"$regex": pattern(chance)}} for _ in range(chance.choice([1, 20, 150, 1_000]))]},
        lambda: {"tags": {"$in": list(range(chance.choice(SIZES[:6])))}},
        lambda: {"tags": {"$all": [{"$elemMatch": {"$gt": number}} for number in range(chance.choice([1, 50]))]}},
        lambda: {"tags": nested(chance)},
        lambda: {"$jsonSchema": schema(chance)},
        lambda: {"$expr": expression(chance)},
        lambda: {"title": {"$in": [{"$regularExpression": {"pattern": pattern(chance), "options": "i"}}
                                   for _ in range(chance.choice([1, 10, 300]))]}},
    ])()


def stage(chance):
    field = lambda: f"$f{chance.randrange(3)}"
    return chance.choice([
        lambda: {"$match": condition(chance)},
        lambda: {"$set": {f"f{chance.randrange(3)}": expression(chance)}},
        lambda: {"$set": {f"f{chance.randrange(3)}": expression(chance)}},
        lambda: {"$project": {f"f{number}": expression(chance) for number in range(chance.choice([1, 3, 20]))}},
        lambda: {"$group": {"_id": chance.choice([None, "$n", expression(chance), field()]),
                            "x": {chance.choice(["$push", "$addToSet", "$min", "$max", "$first", "$sum", "$mergeObjects"]):
                                  chance.choice(["$$ROOT", field(), "$tags"])}}},
        lambda: {"$unwind": chance.choice(["$tags", field()])},
        lambda: {"$sort": {field()[1:]: chance.choice([1, -1]), "title": 1}},
        lambda: {"$bucketAuto": {"groupBy": chance.choice([field(), "$n"]), "buckets": chance.choice([1, 5, 1_000_000])}},
        lambda: {"$sortByCount": chance.choice([field(), "$tags"])},
        lambda: {"$replaceRoot": {"newRoot": chance.choice([expression(chance), {"a": "$$ROOT", "b": "$$ROOT"}])}},
        lambda: {"$facet": {f"p{number}": [stage(chance)] for number in range(chance.choice([1, 3]))}},
        lambda: {"$lookup": {"from": "note", "localField": chance.choice(["n", "tags"]), "foreignField": "n", "as": "f0"}},
        lambda: {"$lookup": {"from": "note", "let": {"v": "$n"}, "pipeline": [
            {"$match": {"$expr": {"$gte": ["$n", "$$v"]}}}, {"$project": {"n": 1}}], "as": "f1"}},
        lambda: {"$unionWith": "note"},
        lambda: {"$redact": {"$cond": [{"$eq": [1, 1]}, "$$DESCEND", "$$PRUNE"]}},
        lambda: {"$limit": chance.choice([1, 10])},
    ])()


def stages(chance):
    begin = chance.choice([
        [{"$match": {"aggregate_type": "note"}}, {"$fold": {}}],
        [{"$match": {"aggregate_type": "note"}}, {"$fold": {}}],
        [{"$documents": [{"n": number, "title": "ab" * number, "tags": [number] * number} for number in range(20)]}],
        [{"$documents": {"$map": {"input": {"$range": [0, 5_000]}, "in": {"n": "$$this", "title": "ab", "tags": [1, 2]}}}}],
    ])
    pipeline = begin + [stage(chance) for _ in range(chance.choice([1, 2, 3, 5]))]
    if chance.random() < 0.05:
        pipeline += [stage(chance)] * 500
    return pipeline
