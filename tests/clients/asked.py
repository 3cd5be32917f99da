"""Hooks of schemathesis: what it asks of things that are there, and what it must not do.

FOLDWORK_KNOWN holds ids of things that were made for it, by the name of the parameter that means them, and the ids of
what it cannot do without.
"""

import json
import os
import zlib

import schemathesis

KNOWN = json.loads(os.environ["FOLDWORK_KNOWN"])
IDEMPOTENCY_KEY = "Idempotency-Key"
SENT = set()


@schemathesis.hook
def before_call(context, case, kwargs):
    parameters = case.path_parameters or {}
    valid = case.meta is None or case.meta.generation.mode.is_positive
    for name, value in parameters.items():
        # Made-up ids find nothing: half of those that may be sent are replaced by real ones.
        known = KNOWN.get(name, [])
        chance = zlib.crc32(f"{case.method}{case.path}{value}".encode())
        if known and valid and chance % 2:
            parameters[name] = known[chance // 2 % len(known)]
        # Its own key, membership and plan it needs until the end.
        if value in KNOWN["own"]:
            parameters[name] = "another"
    # The answer to a repeat is that of the first request. It names what was made then, which may be deleted by now, and
    # schemathesis expects that what it was just told of is there.
    headers = case.headers or {}
    key = headers.get(IDEMPOTENCY_KEY)
    if valid and key in SENT:
        del headers[IDEMPOTENCY_KEY]
    elif key is not None:
        SENT.add(key)
