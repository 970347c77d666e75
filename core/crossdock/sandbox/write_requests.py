"""How anything is written: one call, the version that it means, and what it changes, each with its witness."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from crossdock.sandbox import json_codec
from crossdock.sandbox.access_control import NOBODY, Caller
from crossdock.sandbox.collections import Collection, instant_text, references
from crossdock.sandbox.problem_answers import ProblemError
from crossdock.sandbox.read_requests import stored


@dataclass(slots=True)
class Call:
    """One request to the API, and what becomes known of it on the way to its answer."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    now: float  # seconds since the epoch at which it arrived
    limits: Mapping[str, str]  # what its answer tells of the rate limit
    max_items: int  # that its body may list
    caller: Caller = NOBODY
    key: str | None = None  # the idempotency key that it holds
    id: str = field(default_factory=partial(secrets.token_hex, 8))  # in the witnesses and in its answer
    at: str = field(init=False)  # the same time as text

    def __post_init__(self) -> None:
        self.at = instant_text(datetime.fromtimestamp(self.now, UTC))


def new_id(prefix: str, now: float) -> str:
    """An id that nobody can guess; those of later milliseconds sort behind it."""
    return f"{prefix}_{int(now * 1000):011x}{secrets.token_hex(7)}"


def read_json(call: Call) -> Any:
    """The body; 400 where it is no JSON, 422 where it lists too many items to look at each."""
    try:
        body = json_codec.read(call.body)
    except ValueError as error:
        raise ProblemError(400, f"The body is no acceptable JSON: {error}.") from None
    items = body.get("items") if isinstance(body, dict) else None
    if isinstance(items, list) and len(items) > call.max_items:
        findings = [("#/items", f"must have at most {call.max_items} items")]
        raise ProblemError(422, "The body has too many items.", findings=findings)
    return body


def present(connection: sqlite3.Connection, call: Call, collection: Collection, target: str) -> tuple[str, str]:
    """The text and entity tag of what is stored, if it is the version that the caller means."""
    text, tag = stored(connection, collection, call.caller.tenant, target)
    wanted = [each.strip() for each in call.headers.get("if-match", "*").split(",")]
    if "*" not in wanted and tag not in wanted:
        raise ProblemError(412, "The resource has changed: If-Match names another version.")
    return text, tag


def check_surroundings(
    connection: sqlite3.Connection, tenant: str, collection: Collection, body: Mapping[str, Any], own_id: str
) -> None:
    """Refuse a *body* that refers to what is not there, or whose externalId another resource than *own_id* has."""
    named = list(references(body))
    query = "SELECT 1 FROM stored WHERE resource = ? AND id = ? AND tenant = ?"
    asked = {(resource, target) for _, resource, target in named}  # the lines of an invoice often name one product
    gone = {each for each in asked if connection.execute(query, (*each, tenant)).fetchone() is None}
    if gone:
        findings = [(place, f"names no {each[0]}") for place, *each in named if tuple(each) in gone]
        raise ProblemError(422, "The body refers to what does not exist.", findings=findings)
    if holder(connection, tenant, collection, body.get("externalId")) not in {None, own_id}:
        findings = [("#/externalId", "is taken")]
        raise ProblemError(409, f"Another {collection.kind.name} has this externalId.", findings=findings)


def holder(connection: sqlite3.Connection, tenant: str, collection: Collection, external_id: str | None) -> str | None:
    """The id of the resource that has this externalId."""
    query = "SELECT id FROM stored WHERE tenant = ? AND resource = ? AND external_id = ?"
    row = connection.execute(query, (tenant, collection.kind.name, external_id)).fetchone()
    return None if row is None else str(row[0])


def keep(
    connection: sqlite3.Connection, call: Call, operation: str, collection: Collection, body: Mapping[str, Any]
) -> tuple[str, str]:
    """Store a checked *body*, its id in it, and witness that; return its text and entity tag."""
    tenant, name = call.caller.tenant, collection.kind.name
    text = json_codec.write({**body, "updatedAt": call.at})
    seq = witness(connection, call, operation, name, body["id"], text)
    connection.execute(
        "INSERT INTO stored VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET (external_id, updated_at,"
        " changed, body) = (excluded.external_id, excluded.updated_at, excluded.changed, excluded.body)",
        (body["id"], tenant, name, body.get("externalId"), call.at, seq, text),
    )
    return text, f'"{seq}"'


def witness(connection: sqlite3.Connection, call: Call, operation: str, resource: str, target: str, body: str) -> int:
    """Note an effect, in the transaction that makes it, and return its number."""
    values = (call.at, call.caller.tenant, call.caller.id, call.id, call.key, resource, operation, target, body)
    cursor = connection.execute("INSERT INTO effects VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    assert cursor.lastrowid is not None
    return cursor.lastrowid
