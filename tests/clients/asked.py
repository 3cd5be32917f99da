"""Hooks of schemathesis: what it asks of things that are there, and the one thing that it must not do.

FOLDWORK_KNOWN holds ids of things that were made for it, by the name of the parameter that means them, and the id of its own
key.
"""

import json
import os
import zlib

import schemathesis

KNOWN = json.loads(os.environ["FOLDWORK_KNOWN"])


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
    # Its own key it needs until the end.
    if parameters.get("key_id") == KNOWN["own_key"]:
        parameters["key_id"] = "another"
