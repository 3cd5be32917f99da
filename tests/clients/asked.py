"""Hooks of schemathesis. The hooks insert ids of existing records, and protect records that the run needs.

FOLDWORK_KNOWN contains the ids of records that were created for the run, by the names of the path parameters that
identify them. Its entry `own` contains the ids of records that the run needs.
"""

import json
import os
import zlib

import schemathesis

KNOWN = json.loads(os.environ["FOLDWORK_KNOWN"])
IDEMPOTENCY_KEY = "Idempotency-Key"
# The maximum wait of a request in milliseconds. The server permits 30 s, longer than schemathesis waits.
WAIT_MS = 500
SENT = set()


@schemathesis.hook
def before_call(context, case, kwargs):
    parameters = case.path_parameters or {}
    valid = case.meta is None or case.meta.generation.mode.is_positive
    for name, value in parameters.items():
        # Random ids find nothing, so half of the valid ids are replaced by ids of existing records.
        known = KNOWN.get(name, [])
        chance = zlib.crc32(f"{case.method}{case.path}{value}".encode())
        if known and valid and chance % 2:
            parameters[name] = known[chance // 2 % len(known)]
        # The run needs its own key, membership and plan until the end.
        if value in KNOWN["own"]:
            parameters[name] = "another"
    query = case.query or {}
    # Limits the wait of invalid requests as well: a request that is invalid for another reason may still wait.
    wait = str(query.get("wait_ms", ""))
    if wait.isdecimal() and int(wait) > WAIT_MS:
        query["wait_ms"] = int(wait) % WAIT_MS
    # A repeated request gets the response to the first request. The record in that response may have been deleted
    # since, but schemathesis expects that records in a response exist.
    headers = case.headers or {}
    key = headers.get(IDEMPOTENCY_KEY)
    if valid and key in SENT:
        del headers[IDEMPOTENCY_KEY]
    elif key is not None:
        SENT.add(key)
