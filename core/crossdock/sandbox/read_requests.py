"""What can be read: resources, and the two witnesses of what really happened.

A question that is misspelt or makes no sense is 400: an empty answer to it would prove the wrong thing.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, get_args

from starlette.responses import Response

from crossdock.resources import RESOURCES
from crossdock.sandbox.collections import INSTANT, Collection, instant_text
from crossdock.sandbox.fault_injection import FaultName
from crossdock.sandbox.problem_answers import ProblemError
from crossdock.sandbox.url_routes import Route

JSON = "application/json"
CURSOR = re.compile(r"[0-9]{20}\.-?[0-9]{1,18}")  # the digits of the last change's time, and its number
_ANY, _WITNESSED = range(2**63), range(1, 10_001)
_EFFECTS = ("create", "update", "delete", "approve", "move", "post")
_BEFORE_ALL = "-9"  # changes are numbered from 1, except those that were there from the beginning: these are below 0


def stored(connection: sqlite3.Connection, collection: Collection, tenant: str, target: str) -> tuple[str, str]:
    """The body of one resource, and its entity tag: the number of the effect that changed it last; 404 without it."""
    row = connection.execute(
        "SELECT body, changed FROM stored WHERE id = ? AND tenant = ? AND resource = ?",
        (target, tenant, collection.kind.name),
    ).fetchone()
    if row is None:
        raise ProblemError(404, f"There is no such {collection.kind.name}.")
    return row[0], f'"{row[1]}"'


def answer(connection: sqlite3.Connection, route: Route, tenant: str, query: Mapping[str, str]) -> Response:
    """Answer what changes nothing."""
    match route.operation:
        case "list":
            return page(connection, route.collection, tenant, query)
        case "entries":
            stored(connection, route.collection, tenant, route.target)
            return _entries(connection, route.target, query)
    text, tag = stored(connection, route.collection, tenant, route.target)
    return Response(text, 200, {"etag": tag}, JSON)


def page(connection: sqlite3.Connection, collection: Collection, tenant: str, query: Mapping[str, str]) -> Response:
    """A page in the order of last change, so that what changes meanwhile is seen again and never missed."""
    _known_only(query, "limit", "cursor", "updatedSince", "externalId")
    name, limit, start = collection.kind.name, _whole(query, "limit", 100, range(1, 1001)), _start(query)
    if "externalId" in query:
        if not collection.kind.has_external_id:
            raise ProblemError(400, f"A {name} has no externalId.")
        found = "SELECT body FROM stored WHERE tenant = ? AND resource = ? AND external_id = ?"
        return _listed(connection.execute(found, (tenant, name, query["externalId"])), None)
    rows = connection.execute(
        "SELECT body, updated_at, changed FROM stored WHERE tenant = ? AND resource = ?"
        " AND (updated_at, changed) > (?, ?) ORDER BY updated_at, changed LIMIT ?",
        (tenant, name, *start, limit + 1),
    ).fetchall()
    last = "{1}|{2}".format(*rows[limit - 1]) if len(rows) > limit else None
    return _listed(rows[:limit], last)


def _entries(connection: sqlite3.Connection, account: str, query: Mapping[str, str]) -> Response:
    """A page of the entries of one ledger account, oldest first."""
    _known_only(query, "limit", "cursor")
    limit = _whole(query, "limit", 100, range(1, 1001))
    rows = connection.execute(
        "SELECT body, seq FROM entries WHERE account = ? AND seq > ? ORDER BY seq LIMIT ?",
        (account, _start(query)[1], limit + 1),
    ).fetchall()
    return _listed(rows[:limit], f"|{rows[limit - 1][1]}" if len(rows) > limit else None)


def _listed(rows: Iterable[tuple[Any, ...]], last: str | None) -> Response:
    bodies = ",".join(row[0] for row in rows)
    at, _, changed = (last or "").partition("|")
    cursor = last and f"{re.sub('[^0-9]', '', at):0>20}.{changed}"
    return Response(f'{{"data":[{bodies}],"nextCursor":{json.dumps(cursor)}}}', media_type=JSON)


def _start(query: Mapping[str, str]) -> tuple[str, int]:
    """The change after which a page begins."""
    since = query.get("updatedSince", "1970-01-01T00:00:00Z")
    try:
        if not INSTANT.fullmatch(since):
            raise ValueError(since)
        at, changed = instant_text(datetime.fromisoformat(since)), _BEFORE_ALL
        if "cursor" in query:
            if not CURSOR.fullmatch(query["cursor"]):
                raise ValueError(query["cursor"])
            digits, _, changed = query["cursor"].partition(".")
            at = "{}{}-{}-{}T{}:{}:{}.{}{}{}Z".format(*map("".join, zip(digits[::2], digits[1::2], strict=True)))
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


def _one_of(query: Mapping[str, str], name: str, allowed: Iterable[str]) -> None:
    if query.get(name) not in {None, *allowed}:
        raise ProblemError(400, f"{name} must be one of {', '.join(allowed)}.")


def effects(connection: sqlite3.Connection, query: Mapping[str, str]) -> Response:
    """Every effect that really happened after ``after`` and fits, oldest first, at most ``limit`` of them."""
    filters = ("resource", "operation", "credential", "idempotencyKey")
    _known_only(query, "after", "limit", *filters)
    _one_of(query, "resource", RESOURCES)
    _one_of(query, "operation", _EFFECTS)
    wanted = {name: query.get(name) for name in filters}
    pages = {"after": _whole(query, "after", 0, _ANY), "limit": _whole(query, "limit", 1000, _WITNESSED)}
    rows = connection.execute(
        "SELECT seq, at, tenant, credential, request_id AS requestId, idempotency_key AS idempotencyKey, resource,"
        " operation, id, body FROM effects WHERE seq > :after AND resource = coalesce(:resource, resource)"
        " AND operation = coalesce(:operation, operation) AND credential = coalesce(:credential, credential)"
        " AND (:idempotencyKey IS NULL OR idempotency_key = :idempotencyKey) ORDER BY seq LIMIT :limit",
        {**wanted, **pages},
    )
    names = [each[0] for each in rows.description[:-1]]
    told = (f'{json.dumps(dict(zip(names, row, strict=False)))[:-1]}, "body": {row[-1]}}}' for row in rows)
    return Response(f'{{"data":[{",".join(told)}]}}', media_type=JSON)


class RequestLog:
    """Every request outside ``/_sandbox``, in memory: the latest in full, all of them as counts."""

    def __init__(self, kept: int = 20_000) -> None:
        self._latest: deque[dict[str, object]] = deque(maxlen=kept)
        self._by_status: Counter[int] = Counter()

    def note(self, status: int, **facts: object) -> None:
        """Note a request; *status* is 0 where no answer was made."""
        self._by_status[status] += 1
        self._latest.append({"seq": self._by_status.total(), "status": status, **facts})

    def answer(self, query: Mapping[str, str]) -> Response:
        """The requests after ``after`` that are still kept and fit, at most ``limit``, with the counts of all."""
        fits = _request_filter(query)
        total, limit = self._by_status.total(), _whole(query, "limit", 1000, _WITNESSED)
        skipped = max(0, _whole(query, "after", 0, _ANY) - (total - len(self._latest)))
        data = list(islice(filter(fits, islice(self._latest, skipped, None)), limit))
        document = {"data": data, "total": total, "byStatus": dict(sorted(self._by_status.items()))}
        return Response(json.dumps(document), media_type=JSON)


def _request_filter(query: Mapping[str, str]) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a noted request is asked for: by path's beginning, by fault, and by what it otherwise equals."""
    equals = ("method", "credential", "idempotencyKey")
    _known_only(query, "after", "limit", "status", "path", "fault", *equals)
    _one_of(query, "fault", get_args(FaultName))
    if not query.get("path", "/").startswith("/") or not query.get("method", "GET").isupper():
        raise ProblemError(400, "path must begin with '/', and method must be in capitals.")
    status = _whole(query, "status", 0, range(600)) if "status" in query else None
    wanted = {name: query[name].strip('"') for name in equals if name in query}

    def fits(noted: Mapping[str, Any]) -> bool:
        return (
            status in {None, noted["status"]}
            and noted["path"].startswith(query.get("path", ""))
            and ("fault" not in query or query["fault"] in noted["faults"])
            and all((noted[name] or "").strip('"') == value for name, value in wanted.items())
        )

    return fits
