"""What can be read: one resource, pages of them, and the witness."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Mapping
from datetime import datetime

from crossdock.resources import RESOURCES
from crossdock.sandbox import checks, operations
from crossdock.sandbox.answers import Answer, ProblemError
from crossdock.sandbox.auth import Caller
from crossdock.sandbox.routes import Collection

_JSON = {"content-type": "application/json"}
_EFFECT = (
    "seq", "at", "tenant", "credential", "requestId", "idempotencyKey", "resource", "operation", "id",
)  # fmt: skip


def one(connection: sqlite3.Connection, collection: Collection, caller: Caller, target: str) -> Answer:
    """Answer one resource.

    Raises:
        ProblemError: 404.
    """
    text, changed = operations.read(connection, collection, caller.tenant, target)
    return Answer(200, text.encode(), {**_JSON, "etag": operations.etag(changed)})


def page(connection: sqlite3.Connection, collection: Collection, caller: Caller, query: Mapping[str, str]) -> Answer:
    """Answer a page in the order of last change, so that what changes meanwhile is seen again and never missed.

    Raises:
        ProblemError: 400 for a parameter that is unknown or makes no sense.
    """
    known_only(query, "limit", "cursor", "updatedSince", "externalId")
    if "externalId" in query:
        return _look_up(connection, collection, caller, query["externalId"])
    limit = whole(query, "limit", 100, highest=1000)
    since = _instant(query["updatedSince"]) if "updatedSince" in query else ""
    start = _position(query["cursor"]) if "cursor" in query else (since, 0)
    rows = connection.execute(
        "SELECT body, updated_at, changed FROM stored WHERE tenant = ? AND resource = ?"
        " AND (updated_at, changed) > (?, ?) ORDER BY updated_at, changed LIMIT ?",
        (caller.tenant, collection.resource, *start, limit + 1),
    ).fetchall()
    more = len(rows) > limit
    return _listed([row[0] for row in rows[:limit]], _cursor(*rows[limit - 1][1:]) if more else None)


def _look_up(connection: sqlite3.Connection, collection: Collection, caller: Caller, external_id: str) -> Answer:
    if not collection.has_external_id:
        raise ProblemError(400, f"A {collection.resource} has no externalId.")
    rows = connection.execute(
        "SELECT body FROM stored WHERE tenant = ? AND resource = ? AND external_id = ?",
        (caller.tenant, collection.resource, external_id),
    )
    return _listed([row[0] for row in rows], None)


def _listed(texts: list[str], cursor: str | None) -> Answer:
    return Answer(200, f'{{"data":[{",".join(texts)}],"nextCursor":{json.dumps(cursor)}}}'.encode(), _JSON)


def _cursor(updated_at: str, changed: int) -> str:
    return base64.urlsafe_b64encode(f"{updated_at}|{changed}".encode()).decode()


def _position(cursor: str) -> tuple[str, int]:
    try:
        updated_at, _, changed = base64.urlsafe_b64decode(cursor.encode()).decode().partition("|")
        return updated_at, int(changed)
    except ValueError:
        raise ProblemError(400, "cursor is none that a list has answered.") from None


def _instant(text: str) -> str:
    try:
        if not checks.instant(text):
            raise ValueError(text)
        return operations.instant_text(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise ProblemError(400, "updatedSince must be an RFC 3339 time with a zone, percent-encoded.") from None


def known_only(query: Mapping[str, str], *names: str) -> None:
    """Refuse a misspelt question.

    Raises:
        ProblemError: 400 if *query* holds anything but *names*.
    """
    if unknown := set(query) - set(names):
        raise ProblemError(400, f"{len(unknown)} unknown query parameter(s); there are: {', '.join(names)}.")


def whole(query: Mapping[str, str], name: str, default: int, *, lowest: int = 1, highest: int = 2**63 - 1) -> int:
    """A whole number out of the query.

    Raises:
        ProblemError: 400 if it is none, or not between *lowest* and *highest*.
    """
    text = query.get(name, str(default))
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    if not lowest <= number <= highest:
        raise ProblemError(400, f"{name} must be a whole number from {lowest} to {highest}.")
    return number


def effects(connection: sqlite3.Connection, query: Mapping[str, str]) -> Answer:
    """Every effect that really happened after ``after``, oldest first, at most ``limit`` of them.

    Raises:
        ProblemError: 400 for what cannot be asked; an empty answer to a misspelt question would prove the wrong thing.
    """
    known_only(query, "after", "limit", "resource")
    if query.get("resource", "invoice") not in RESOURCES:
        raise ProblemError(400, f"resource must be one of {', '.join(RESOURCES)}.")
    after, limit = whole(query, "after", 0, lowest=0), whole(query, "limit", 1000, highest=10_000)
    rows = connection.execute(
        "SELECT seq, at, tenant, credential, request_id, idempotency_key, resource, operation, id, body FROM effects"
        " WHERE seq > ? AND resource = coalesce(?, resource) ORDER BY seq LIMIT ?",
        (after, query.get("resource"), limit),
    )
    told = (f'{json.dumps(dict(zip(_EFFECT, row, strict=False)))[:-1]}, "body": {row[-1]}}}' for row in rows)
    return Answer(200, f'{{"data":[{",".join(told)}]}}'.encode(), _JSON)
