"""What the platform does to its resources: create, update, delete, each with its witness, and once under one key."""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from starlette.responses import Response

from crossdock.sandbox import exactjson
from crossdock.sandbox.admission import NOBODY, Credential
from crossdock.sandbox.problems import ProblemError
from crossdock.sandbox.reading import JSON, stored
from crossdock.sandbox.resources import Collection, check, instant_text, references

_OPERATIONS = {"POST": "create", "PATCH": "update", "DELETE": "delete"}


@dataclass(slots=True)
class Call:
    """One request to the API, and what becomes known of it on the way to its answer."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    now: float  # seconds since the epoch at which it arrived
    limits: Mapping[str, str]  # what its answer tells of the rate limit
    caller: Credential = NOBODY
    key: str | None = None  # the idempotency key that it holds
    id: str = field(default_factory=partial(secrets.token_hex, 8))  # in the witnesses and in its answer

    @property
    def at(self) -> str:
        return instant_text(datetime.fromtimestamp(self.now, UTC))


def execute(connection: sqlite3.Connection, call: Call, collection: Collection, target: str) -> Response:
    """Do what is asked, or answer what was answered under this key before; refusals are answers too, and are kept."""
    work = {"POST": _create, "PATCH": _update, "DELETE": _delete}[call.method]
    if call.key is None:
        return work(connection, call, collection, target)
    connection.execute("DELETE FROM answers WHERE at < ?", (call.now - 24 * 3600,))
    scope = (call.caller.tenant, call.caller.id, call.key)
    fingerprint = hashlib.sha256(f"{call.method} {call.path}\n".encode() + call.body).digest()
    kept = connection.execute(
        "SELECT fingerprint, status, headers, body FROM answers WHERE tenant = ? AND credential = ? AND key = ?", scope
    ).fetchone()
    if kept is not None:
        if kept[0] != fingerprint:
            raise ProblemError(422, "This Idempotency-Key was used for another request.")
        return Response(kept[3], kept[1], {**json.loads(kept[2]), "idempotent-replayed": "true"})
    try:
        response = work(connection, call, collection, target)
    except ProblemError as problem:  # raised before anything is written
        response = problem.response
    answer = (response.status_code, json.dumps(dict(response.headers)), response.body)
    connection.execute("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*scope, call.now, fingerprint, *answer))
    return response


def _create(connection: sqlite3.Connection, call: Call, collection: Collection, _: str) -> Response:
    body = check(collection.kind, _json(call))
    new_id = f"{collection.prefix}_{int(call.now * 1000):011x}{secrets.token_hex(7)}"
    text, tag = _store(connection, call, collection, body, {"id": new_id, "createdAt": call.at})
    return Response(text, 201, {"location": f"{collection.path}/{new_id}", "etag": tag}, JSON)


def _update(connection: sqlite3.Connection, call: Call, collection: Collection, target: str) -> Response:
    patch = _json(call)
    present = exactjson.read(_unchanged(connection, call, collection, target).encode())
    own = {name: present.pop(name) for name in ("id", "createdAt", "updatedAt")}
    text, tag = _store(connection, call, collection, check(collection.kind, _merge(present, patch)), own)
    return Response(text, 200, {"etag": tag}, JSON)


def _delete(connection: sqlite3.Connection, call: Call, collection: Collection, target: str) -> Response:
    text = _unchanged(connection, call, collection, target)
    connection.execute("DELETE FROM stored WHERE id = ?", (target,))
    _witness(connection, call, collection, target, text)
    return Response(status_code=204)


def _json(call: Call) -> Any:
    try:
        return exactjson.read(call.body)
    except ValueError as error:
        raise ProblemError(400, f"The body is no acceptable JSON: {error}.") from None


def _unchanged(connection: sqlite3.Connection, call: Call, collection: Collection, target: str) -> str:
    """The present body, if it is the version that the caller means."""
    text, tag = stored(connection, collection, call.caller.tenant, target)
    wanted = [each.strip() for each in call.headers.get("if-match", "*").split(",")]
    if "*" not in wanted and tag not in wanted:
        raise ProblemError(412, "The resource has changed: If-Match names another version.")
    return text


def _merge(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    present = target if isinstance(target, dict) else {}
    merged = {**present, **{name: _merge(present.get(name), value) for name, value in patch.items()}}
    return {name: value for name, value in merged.items() if value is not None}


def _store(
    connection: sqlite3.Connection, call: Call, collection: Collection, body: dict[str, Any], own: dict[str, str]
) -> tuple[str, str]:
    """Keep a checked body and the members that are the platform's *own*; return its text and entity tag."""
    tenant, name, external_id = call.caller.tenant, collection.kind.name, body.get("externalId")
    named = list(references(body))
    query = "SELECT 1 FROM stored WHERE resource = ? AND id = ? AND tenant = ?"
    asked = {(resource, target) for _, resource, target in named}  # the lines of an invoice often name one product
    gone = {each for each in asked if connection.execute(query, (*each, tenant)).fetchone() is None}
    if gone:
        findings = [(place, f"names no {each[0]}") for place, *each in named if tuple(each) in gone]
        raise ProblemError(422, "The body refers to what does not exist.", findings=findings)
    query = "SELECT 1 FROM stored WHERE tenant = ? AND resource = ? AND external_id = ? AND id <> ?"
    if connection.execute(query, (tenant, name, external_id, own["id"])).fetchone():
        raise ProblemError(409, f"Another {name} has this externalId.", findings=[("#/externalId", "is taken")])
    text = exactjson.write({**body, **own, "updatedAt": call.at})
    seq = _witness(connection, call, collection, own["id"], text)
    connection.execute(
        "INSERT INTO stored VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET (external_id, updated_at,"
        " changed, body) = (excluded.external_id, excluded.updated_at, excluded.changed, excluded.body)",
        (own["id"], tenant, name, external_id, call.at, seq, text),
    )
    return text, f'"{seq}"'


def _witness(connection: sqlite3.Connection, call: Call, collection: Collection, target: str, body: str) -> int:
    """Note an effect, in the transaction that makes it, and return its number."""
    who, what = (call.caller.tenant, call.caller.id), (collection.kind.name, _OPERATIONS[call.method])
    values = (call.at, *who, call.id, call.key, *what, target, body)
    cursor = connection.execute("INSERT INTO effects VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    assert cursor.lastrowid is not None
    return cursor.lastrowid
