"""Hooks that adapt schemathesis's requests to the state of the sandbox.

A schema describes the form of an id, not which ids exist, and no versions. So values that are well formed are replaced:
ids name resources created for the run, the tenant is that of the credential, externalIds and idempotency keys are new,
If-Match accepts any version. Values that are not well formed are sent as generated, so that only they can be the reason
for a refusal.
"""

from __future__ import annotations

import json
import os
import re
from itertools import count
from typing import Any

import schemathesis

from crossdock.sandbox.api_keys import SLUG_PATTERN
from crossdock.sandbox.openapi_document import KEY_PATTERN

PARENTS: dict[str, str] = json.loads(os.environ.get("CONSUMERS_PARENTS", "{}"))  # member name -> an id that exists
ID = re.compile("[a-z]{3}_[0-9a-f]{25}")
KEY = "Idempotency-Key"
_COUNTED = (f"-{os.getpid()}-{number}" for number in count())


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    if case.method == "DELETE" and (case.path_parameters or {}).get("id") in PARENTS.values():
        case.path_parameters["id"] = "gone"  # others still refer to it
    adapt(case.body)
    sent = case.headers or {}
    if "If-Match" in sent:
        sent["If-Match"] = "*"
    tenant = sent.get("x-tenant-slug")
    if isinstance(tenant, str) and SLUG_PATTERN.fullmatch(tenant):
        sent["x-tenant-slug"] = os.environ["CONSUMERS_TENANT"]
    key = sent.get(KEY)
    if isinstance(key, str) and len(key) <= 230 and re.fullmatch(KEY_PATTERN, key):
        unique = next(_COUNTED)
        sent[KEY] = f'{key[:-1]}{unique}"' if key.startswith('"') else f"{key}{unique}"


def adapt(value: Any) -> None:
    """Replace ids and externalIds in *value*, in place."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in PARENTS and isinstance(inner, str) and ID.fullmatch(inner):
                value[name] = PARENTS[name]
            elif name == "externalId" and isinstance(inner, str) and 0 < len(inner) <= 470:
                value[name] = inner + next(_COUNTED)
            adapt(inner)
    elif isinstance(value, list):
        for inner in value:
            adapt(inner)


@schemathesis.hook
def filter_failure(context: Any, failure: Any, case: Any, response: Any) -> bool:
    """Whether a failure counts.

    One does not: a valid patch or movement that the state of its resource does not allow, for example more than the lot
    holds, is answered 422, as documented; a schema cannot express it.
    """
    depends_on_the_state = case.operation.definition.raw["operationId"].startswith(("update", "move"))
    rejected = type(failure).__name__ == "RejectedPositiveData" and response.status_code == 422
    return not (depends_on_the_state and rejected)
