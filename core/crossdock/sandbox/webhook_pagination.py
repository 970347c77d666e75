"""Pages of rows with a sequence number, the newest first."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from crossdock.sandbox.problem_errors import ProblemError
from crossdock.sandbox.query_parameters import refuse_unknown, whole_number
from crossdock.sandbox.read_operations import CURSOR

_PAGE_SIZES = range(1, 1001)
_BEHIND_ALL = 10**18 - 1  # the largest number that a cursor can hold


def read_page_newest_first(
    connection: sqlite3.Connection, select: str, values: tuple[object, ...], query: Mapping[str, str]
) -> tuple[list[tuple[Any, ...]], str | None]:
    """Return the rows of a page, and the cursor of the next. *select* has a condition; its first column is ``seq``."""
    refuse_unknown(query, "limit", "cursor")
    limit = whole_number(query, "limit", 100, _PAGE_SIZES)
    cursor = query.get("cursor", f"{0:020}.{_BEHIND_ALL}")
    if not CURSOR.fullmatch(cursor):
        raise ProblemError(400, "cursor must be a nextCursor.")
    before = int(cursor.partition(".")[2])
    rows = connection.execute(
        f"{select} AND seq < ? ORDER BY seq DESC LIMIT ?", (*values, before, limit + 1)
    ).fetchall()
    return rows[:limit], f"{0:020}.{rows[limit - 1][0]}" if len(rows) > limit else None
