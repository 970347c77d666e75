"""The effects log: one row for everything that happened, written in the transaction that did it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

from starlette.responses import Response

from crossdock.mapping.resource_types import RESOURCES
from crossdock.sandbox import strict_json
from crossdock.sandbox.api_call import ApiCall
from crossdock.sandbox.query_parameters import (
    LOG_LIMITS,
    SEQUENCE_NUMBERS,
    raise_if_unknown_parameter,
    raise_unless_one_of,
    whole_number_parameter,
)

_OPERATIONS = ("create", "update", "delete", "approve", "move", "post")


def record_effect(
    connection: sqlite3.Connection, call: ApiCall, operation: str, resource: str, resource_id: str, body: str
) -> int:
    values = (call.at, call.caller.tenant, call.caller.id, call.id, call.key, resource, operation, resource_id, body)
    cursor = connection.execute("INSERT INTO effects VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def list_effects(connection: sqlite3.Connection, query: Mapping[str, str]) -> Response:
    filters = ("resource", "operation", "credential", "idempotencyKey")
    raise_if_unknown_parameter(query, "after", "limit", *filters)
    raise_unless_one_of(query, "resource", RESOURCES)
    raise_unless_one_of(query, "operation", _OPERATIONS)
    values = {
        **{name: query.get(name) for name in filters},
        "after": whole_number_parameter(query, "after", 0, SEQUENCE_NUMBERS),
        "limit": whole_number_parameter(query, "limit", 1000, LOG_LIMITS),
    }
    rows = connection.execute(
        "SELECT seq, at, tenant, credential, request_id AS requestId, idempotency_key AS idempotencyKey, resource,"
        " operation, id, body FROM effects WHERE seq > :after AND resource = coalesce(:resource, resource)"
        " AND operation = coalesce(:operation, operation) AND credential = coalesce(:credential, credential)"
        " AND (:idempotencyKey IS NULL OR idempotency_key = :idempotencyKey) ORDER BY seq LIMIT :limit",
        values,
    )
    names = [each[0] for each in rows.description[:-1]]
    # The body is copied as text: its numbers are exact.
    effects = (f'{json.dumps(dict(zip(names, row, strict=False)))[:-1]}, "body": {row[-1]}}}' for row in rows)
    return Response(f'{{"data":[{",".join(effects)}]}}', media_type=strict_json.MEDIA_TYPE)
