"""What can be read: resources, and the two witnesses of what really happened.

A question that is misspelt or makes no sense is 400: an empty answer to it would prove the wrong thing.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from starlette.responses import Response

from crossdock.resources import RESOURCES
from crossdock.sandbox.problems import ProblemError
from crossdock.sandbox.resources import INSTANT, Collection, instant_text

JSON = "application/json"
_ANY, _WITNESSED = range(2**63), range(1, 10_001)


def stored(connection: sqlite3.Connection, collection: Collection, tenant: str, target: str) -> tuple[str, str]:
    """The body of one resource, and its entity tag: the number of the effect that changed it last; 404 without it."""
    row = connection.execute(
        "SELECT body, changed FROM stored WHERE id = ? AND tenant = ? AND resource = ?",
        (target, tenant, collection.kind.name),
    ).fetchone()
    if row is None:
        raise ProblemError(404, f"There is no such {collection.kind.name}.")
    return row[0], f'"{row[1]}"'


def page(connection: sqlite3.Connection, collection: Collection, tenant: str, query: Mapping[str, str]) -> Response:
    """A page in the order of last change, so that what changes meanwhile is seen again and never missed."""
    _known_only(query, "limit", "cursor", "updatedSince", "externalId")
    name, limit = collection.kind.name, _whole(query, "limit", 100, range(1, 1001))
    if "externalId" in query:
        if not collection.kind.has_external_id:
            raise ProblemError(400, f"A {name} has no externalId.")
        found = "SELECT body FROM stored WHERE tenant = ? AND resource = ? AND external_id = ?"
        return _listed(connection.execute(found, (tenant, name, query["externalId"])), None)
    rows = connection.execute(
        "SELECT body, updated_at, changed FROM stored WHERE tenant = ? AND resource = ?"
        " AND (updated_at, changed) > (?, ?) ORDER BY updated_at, changed LIMIT ?",
        (tenant, name, *_start(query), limit + 1),
    ).fetchall()
    last = "{1}|{2}".format(*rows[limit - 1]) if len(rows) > limit else None
    return _listed(rows[:limit], last and base64.urlsafe_b64encode(last.encode()).decode())


def _listed(rows: Iterable[tuple[Any, ...]], cursor: str | None) -> Response:
    bodies = ",".join(row[0] for row in rows)
    return Response(f'{{"data":[{bodies}],"nextCursor":{json.dumps(cursor)}}}', media_type=JSON)


def _start(query: Mapping[str, str]) -> tuple[str, int]:
    """The change after which a page begins."""
    since = query.get("updatedSince", "1970-01-01T00:00:00Z")
    try:
        if not INSTANT.fullmatch(since):
            raise ValueError(since)
        at, changed = instant_text(datetime.fromisoformat(since)), "0"
        if "cursor" in query:
            at, _, changed = base64.urlsafe_b64decode(query["cursor"].encode()).decode().partition("|")
        return at, int(changed)
    except (ValueError, OverflowError):
        wrong = (
            "cursor is none that a list has answered, or updatedSince no RFC 3339 time with a zone, percent-encoded."
        )
        raise ProblemError(400, wrong) from None


def _known_only(query: Mapping[str, str], *names: str) -> None:
    if unknown := set(query) - set(names):
        raise ProblemError(400, f"{len(unknown)} unknown query parameter(s); there are: {', '.join(names)}.")


def _whole(query: Mapping[str, str], name: str, default: int, allowed: range) -> int:
    text = query.get(name, str(default))
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    if number not in allowed:
        raise ProblemError(400, f"{name} must be a whole number from {allowed[0]} to {allowed[-1]}.")
    return number


def effects(connection: sqlite3.Connection, query: Mapping[str, str]) -> Response:
    """Every effect that really happened after ``after``, oldest first, at most ``limit`` of them."""
    _known_only(query, "after", "limit", "resource")
    if query.get("resource", "invoice") not in RESOURCES:
        raise ProblemError(400, f"resource must be one of {', '.join(RESOURCES)}.")
    rows = connection.execute(
        "SELECT seq, at, tenant, credential, request_id AS requestId, idempotency_key AS idempotencyKey, resource,"
        " operation, id, body FROM effects WHERE seq > ? AND resource = coalesce(?, resource) ORDER BY seq LIMIT ?",
        (_whole(query, "after", 0, _ANY), query.get("resource"), _whole(query, "limit", 1000, _WITNESSED)),
    )
    names = [each[0] for each in rows.description[:-1]]
    told = (f'{json.dumps(dict(zip(names, row, strict=False)))[:-1]}, "body": {row[-1]}}}' for row in rows)
    return Response(f'{{"data":[{",".join(told)}]}}', media_type=JSON)


class RequestLog:
    """Every request outside ``/_sandbox``, in memory: the latest in full, all of them as counts."""

    def __init__(self, kept: int = 20_000) -> None:
        self._latest: deque[dict[str, object]] = deque(maxlen=kept)
        self._by_status: Counter[int] = Counter()

    def note(self, status: int, **facts: str | None) -> None:
        self._by_status[status] += 1
        self._latest.append({"seq": self._by_status.total(), "status": status, **facts})

    def answer(self, query: Mapping[str, str]) -> Response:
        """The requests after ``after`` that are still kept, at most ``limit``, with the counts of all."""
        _known_only(query, "after", "limit")
        total, limit = self._by_status.total(), _whole(query, "limit", 1000, _WITNESSED)
        skipped = max(0, _whole(query, "after", 0, _ANY) - (total - len(self._latest)))
        data = list(islice(self._latest, skipped, skipped + limit))
        document = {"data": data, "total": total, "byStatus": dict(sorted(self._by_status.items()))}
        return Response(json.dumps(document), media_type=JSON)
