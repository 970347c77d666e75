"""The operations that change nothing: read one resource, list a collection, list a ledger account's entries.

Webhook subscriptions and deliveries are listed in pages with the newest first.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from starlette.responses import Response

from crossdock.sandbox import record_level_access, resource_store, strict_json
from crossdock.sandbox.access_control import Caller
from crossdock.sandbox.api_routes import Collection, ResourceRoute
from crossdock.sandbox.problem_errors import ProblemError
from crossdock.sandbox.query_parameters import raise_if_unknown_parameter, whole_number_parameter
from crossdock.sandbox.rfc3339 import INSTANT_PATTERN, instant_text

CURSOR_PATTERN = re.compile(r"[0-9]{20}\.-?[0-9]{1,18}")  # the digits of the last change's time, and its number
_BEFORE_ALL = "-9"  # changes are numbered from 1; the accounts that exist from the beginning have numbers below 0


def execute_read(
    connection: sqlite3.Connection, route: ResourceRoute, caller: Caller, query: Mapping[str, str]
) -> Response:
    if route.operation == "list":
        return _list_collection(connection, route.collection, caller, query)
    text, tag = resource_store.load_body_and_etag(connection, route.collection, caller.tenant, route.resource_id)
    record_level_access.raise_if_record_forbidden(
        connection, caller, route.collection, strict_json.read(text.encode()), "read"
    )
    if route.operation == "entries":
        return _list_ledger_entries(connection, route.resource_id, query)
    return Response(text, 200, {"etag": tag}, strict_json.MEDIA_TYPE)


def _list_collection(
    connection: sqlite3.Connection, collection: Collection, caller: Caller, query: Mapping[str, str]
) -> Response:
    """Return a page in the order of last change. A resource that changes meanwhile is listed again, none is missed."""
    raise_if_unknown_parameter(query, "limit", "cursor", "updatedSince", "externalId")
    name, limit, start = (
        collection.kind.name,
        whole_number_parameter(query, "limit", 100, _PAGE_SIZES),
        _start_of_page(query),
    )
    permitted, ids = record_level_access.sql_condition_for_readable_records(connection, caller, name)
    if "externalId" in query:
        if not collection.kind.has_external_id:
            raise ProblemError(400, f"A {name} has no externalId.")
        found = f"SELECT body FROM stored WHERE tenant = ? AND resource = ? AND external_id = ?{permitted}"  # noqa: S608  no text of a request
        return _page_response(connection.execute(found, (caller.tenant, name, query["externalId"], *ids)), None)
    rows = connection.execute(
        "SELECT body, updated_at, changed FROM stored WHERE tenant = ? AND resource = ?"  # noqa: S608  as above
        f" AND (updated_at, changed) > (?, ?){permitted} ORDER BY updated_at, changed LIMIT ?",
        (caller.tenant, name, *start, *ids, limit + 1),
    ).fetchall()
    return _page_response(rows[:limit], rows[limit - 1][1:] if len(rows) > limit else None)


def _list_ledger_entries(connection: sqlite3.Connection, account: str, query: Mapping[str, str]) -> Response:
    raise_if_unknown_parameter(query, "limit", "cursor")
    limit = whole_number_parameter(query, "limit", 100, _PAGE_SIZES)
    rows = connection.execute(
        "SELECT body, seq FROM entries WHERE account = ? AND seq > ? ORDER BY seq LIMIT ?",
        (account, _start_of_page(query)[1], limit + 1),
    ).fetchall()
    return _page_response(rows[:limit], ("", rows[limit - 1][1]) if len(rows) > limit else None)


def _page_response(rows: Iterable[tuple[Any, ...]], last: tuple[str, int] | None) -> Response:
    bodies = ",".join(row[0] for row in rows)
    cursor = f"{re.sub('[^0-9]', '', last[0]):0>20}.{last[1]}" if last else None
    return Response(f'{{"data":[{bodies}],"nextCursor":{json.dumps(cursor)}}}', media_type=strict_json.MEDIA_TYPE)


def _start_of_page(query: Mapping[str, str]) -> tuple[str, int]:
    since = query.get("updatedSince", "1970-01-01T00:00:00Z")
    try:
        if not INSTANT_PATTERN.fullmatch(since):
            raise ValueError(since)
        at, changed = instant_text(datetime.fromisoformat(since)), _BEFORE_ALL
        if "cursor" in query:
            if not CURSOR_PATTERN.fullmatch(query["cursor"]):
                raise ValueError(query["cursor"])
            digits, _, changed = query["cursor"].partition(".")
            at = "{}{}-{}-{}T{}:{}:{}.{}{}{}Z".format(*map("".join, zip(digits[::2], digits[1::2], strict=True)))
        return at, int(changed)
    except (ValueError, OverflowError):
        wrong = "cursor must be a nextCursor, and updatedSince an RFC 3339 time with a zone. Percent-encode both."
        raise ProblemError(400, wrong) from None


_PAGE_SIZES = range(1, 1001)
_BEHIND_ALL = 10**18 - 1  # the largest number that a cursor can hold


def read_page_newest_first(
    connection: sqlite3.Connection, select: str, values: tuple[object, ...], query: Mapping[str, str]
) -> tuple[list[tuple[Any, ...]], str | None]:
    """Return the rows of a page, and the cursor of the next. *select* has a condition; its first column is ``seq``."""
    raise_if_unknown_parameter(query, "limit", "cursor")
    limit = whole_number_parameter(query, "limit", 100, _PAGE_SIZES)
    cursor = query.get("cursor", f"{0:020}.{_BEHIND_ALL}")
    if not CURSOR_PATTERN.fullmatch(cursor):
        raise ProblemError(400, "cursor must be a nextCursor.")
    before = int(cursor.partition(".")[2])
    rows = connection.execute(
        f"{select} AND seq < ? ORDER BY seq DESC LIMIT ?", (*values, before, limit + 1)
    ).fetchall()
    return rows[:limit], f"{0:020}.{rows[limit - 1][0]}" if len(rows) > limit else None
