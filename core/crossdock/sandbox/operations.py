"""What the platform does to its resources: create, update, delete, each with its witness row."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from crossdock.sandbox import checks, exactjson
from crossdock.sandbox.answers import Answer, Finding, ProblemError
from crossdock.sandbox.auth import Caller
from crossdock.sandbox.routes import Collection, references

_JSON = {"content-type": "application/json"}
_OWN_MEMBERS = ("id", "createdAt", "updatedAt")


@dataclass(frozen=True, slots=True)
class Change:
    """One request that wants to change something.

    Attributes:
        collection: What kind of resource.
        caller: Who asks.
        request_id: Names the request in the witness and in its answer.
        idempotency_key: As the client gave it, without quotes.
        now: Seconds since the epoch at which it arrived.
        if_match: The ``If-Match`` header, if there is one.
    """

    collection: Collection
    caller: Caller
    request_id: str
    idempotency_key: str | None
    now: float
    if_match: str | None = None

    @property
    def at(self) -> str:
        return now_text(self.now)


def instant_text(moment: datetime) -> str:
    """RFC 3339 in UTC, of fixed width, so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def now_text(now: float) -> str:
    return instant_text(datetime.fromtimestamp(now, UTC))


def etag(changed: int) -> str:
    return f'"{changed}"'


def create(connection: sqlite3.Connection, change: Change, body: dict[str, Any]) -> Answer:
    """Store a checked body as a new resource.

    Raises:
        ProblemError: 422 for a reference to nothing, 409 for an external id that is taken.
    """
    _check_surroundings(connection, change, body, own_id=None)
    new_id = f"{change.collection.prefix}_{int(change.now * 1000):011x}{secrets.token_hex(7)}"
    at = change.at
    text = exactjson.write({**body, "id": new_id, "createdAt": at, "updatedAt": at})
    seq = _witness(connection, change, "create", new_id, text)
    connection.execute(
        "INSERT INTO stored (id, tenant, resource, external_id, updated_at, changed, body)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (new_id, change.caller.tenant, change.collection.resource, body.get("externalId"), at, seq, text),
    )
    location = {"location": f"{change.collection.path}/{new_id}", "etag": etag(seq)}
    return Answer(201, text.encode(), {**_JSON, **location})


def update(connection: sqlite3.Connection, change: Change, target: str, patch: Any) -> Answer:
    """Apply a JSON merge patch (RFC 7396) and check what comes out as a whole.

    Raises:
        ProblemError: 404, 412, 422, or 409 for an external id that is taken.
    """
    stored = exactjson.read(_stored_text(connection, change, target).encode())
    own = {name: stored.pop(name) for name in _OWN_MEMBERS}
    merged = checks.check(change.collection.model, _merge(stored, patch))
    _check_surroundings(connection, change, merged, own_id=target)
    at = change.at
    text = exactjson.write({**merged, **own, "updatedAt": at})
    seq = _witness(connection, change, "update", target, text)
    connection.execute(
        "UPDATE stored SET external_id = ?, updated_at = ?, changed = ?, body = ? WHERE id = ?",
        (merged.get("externalId"), at, seq, text, target),
    )
    return Answer(200, text.encode(), {**_JSON, "etag": etag(seq)})


def delete(connection: sqlite3.Connection, change: Change, target: str) -> Answer:
    """Remove a resource; the witness keeps its last body.

    Raises:
        ProblemError: 404 or 412.
    """
    text = _stored_text(connection, change, target)
    _witness(connection, change, "delete", target, text)
    connection.execute("DELETE FROM stored WHERE id = ?", (target,))
    return Answer(204)


def read(connection: sqlite3.Connection, collection: Collection, tenant: str, target: str) -> tuple[str, int]:
    """The body of one resource, and the number of the effect that changed it last.

    Raises:
        ProblemError: 404.
    """
    row = connection.execute(
        "SELECT body, changed FROM stored WHERE id = ? AND tenant = ? AND resource = ?",
        (target, tenant, collection.resource),
    ).fetchone()
    if row is None:
        raise ProblemError(404, f"There is no such {collection.resource}.")
    return row[0], row[1]


def _stored_text(connection: sqlite3.Connection, change: Change, target: str) -> str:
    text, changed = read(connection, change.collection, change.caller.tenant, target)
    wanted = [each.strip() for each in (change.if_match or "*").split(",")]
    if "*" not in wanted and etag(changed) not in wanted:
        raise ProblemError(412, "The resource has changed: If-Match names another version.")
    return text


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name), value)
    return merged


def _check_surroundings(
    connection: sqlite3.Connection, change: Change, body: dict[str, Any], *, own_id: str | None
) -> None:
    if findings := list(_dangling(connection, change.caller.tenant, body)):
        raise ProblemError(422, "The body refers to what does not exist.", findings=findings)
    external_id = body.get("externalId")
    if external_id is None:
        return
    holder = connection.execute(
        "SELECT id FROM stored WHERE tenant = ? AND resource = ? AND external_id = ?",
        (change.caller.tenant, change.collection.resource, external_id),
    ).fetchone()
    if holder is not None and holder[0] != own_id:
        finding = Finding("#/externalId", "is taken")
        raise ProblemError(409, f"Another {change.collection.resource} has this externalId.", findings=[finding])


def _dangling(connection: sqlite3.Connection, tenant: str, body: dict[str, Any]) -> Iterator[Finding]:
    known: dict[tuple[str, str], bool] = {}
    for pointer, resource, target in references(body):
        if (resource, target) not in known:
            query = "SELECT 1 FROM stored WHERE id = ? AND tenant = ? AND resource = ?"
            known[resource, target] = connection.execute(query, (target, tenant, resource)).fetchone() is not None
        if not known[resource, target]:
            yield Finding(pointer, f"names no {resource}")


def _witness(connection: sqlite3.Connection, change: Change, operation: str, target: str, body: str) -> int:
    cursor = connection.execute(
        "INSERT INTO effects (at, tenant, credential, request_id, idempotency_key, resource, operation, id, body)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            change.at,
            change.caller.tenant,
            change.caller.credential,
            change.request_id,
            change.idempotency_key,
            change.collection.resource,
            operation,
            target,
            body,
        ),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid
