"""Hooks of schemathesis: they insert ids of existing records and protect records that the run needs.

FOLDWORK_KNOWN holds ids of records made for the run, by the names of the path parameters that identify them, and the
ids of records that the run cannot do without.
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
        # Random ids find nothing, so half of the valid ones are replaced by ids of existing records.
        known = KNOWN.get(name, [])
        chance = zlib.crc32(f"{case.method}{case.path}{value}".encode())
        if known and valid and chance % 2:
            parameters[name] = known[chance // 2 % len(known)]
        # The run needs its own key, membership and plan until the end.
        if value in KNOWN["own"]:
            parameters[name] = "another"
    # A repeated request gets the response to the first one. That response names a record that may be deleted by now,
    # while schemathesis expects records in a response to exist.
    headers = case.headers or {}
    key = headers.get(IDEMPOTENCY_KEY)
    if valid and key in SENT:
        del headers[IDEMPOTENCY_KEY]
    elif key is not None:
        SENT.add(key)
