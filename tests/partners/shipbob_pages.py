"""Lists of the fake of ShipBob: parameters, pages by number, and pages by cursor."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlencode

from tests.partners.partner_server import PartnerRequest
from tests.partners.shipbob_state import time_of
from tests.partners.shipbob_stockroom import RefusedError

R = TypeVar("R")
MAX_LIMIT = 250


class Parameters:
    """Query parameters; their names have no case, as in ShipBob's own examples.

    Args:
        values: The first value of each parameter.
    """

    def __init__(self, values: dict[str, str]) -> None:
        self.values = {name.lower(): value for name, value in values.items()}

    def text(self, name: str) -> str:
        return self.values.get(name.lower(), "")

    def texts(self, name: str) -> frozenset[str]:
        """The values of a list with commas; empty without one."""
        return frozenset(filter(None, self.text(name).split(",")))

    def count(self, name: str, default: int, most: int) -> int:
        """A number from 1 to *most*.

        Raises:
            RefusedError: 400 for anything else.
        """
        text = self.text(name) or str(default)
        if not text.isdecimal() or not 1 <= int(text) <= most:
            raise RefusedError(400, {name: [f"The value '{text}' is not a number from 1 to {most}."]})
        return int(text)

    def time(self, name: str) -> datetime | None:
        """A time, None without the parameter.

        Raises:
            RefusedError: 400 if it is no time.
        """
        if not (text := self.text(name)):
            return None
        try:
            return time_of(text)
        except ValueError as error:
            raise RefusedError(400, {name: [f"The value '{text}' is not valid."]}) from error

    def between(self, after: str, before: str) -> Callable[[datetime], bool]:
        """Whether a time is later than the one and earlier than the other parameter, so far as they are there."""
        start, end = self.time(after), self.time(before)
        return lambda at: (start is None or at > start) and (end is None or at < end)


def parameters(request: PartnerRequest) -> Parameters:
    return Parameters({name: values[0] for name, values in request.params.items()})


def numbered_page(request: PartnerRequest, rows: Sequence[R]) -> Sequence[R]:
    """The page that ``Page`` (from 1) and ``Limit`` ask for; beyond the last it is empty."""
    asked = parameters(request)
    page, limit = asked.count("Page", 1, 1_000_000), asked.count("Limit", 50, MAX_LIMIT)
    return rows[(page - 1) * limit : page * limit]


def cursor_page(
    request: PartnerRequest,
    rows_for: Callable[[Parameters], Sequence[R]],
    size: int = 50,
    most: int = MAX_LIMIT,
    size_name: str = "PageSize",
) -> tuple[Sequence[R], dict[str, str | None]]:
    """One page of a list with cursors, and its links.

    A cursor holds the filters, the size and the position of its page; other parameters beside it are ignored. Links are
    whole addresses. The position is a number of records, so a record that joins the front of a list moves the rest.

    Raises:
        RefusedError: 400 for a cursor that the fake never gave out, or a size that is not 1 to *most*.
    """
    asked, start = parameters(request), 0
    if cursor := asked.text("Cursor"):
        asked, start = _from_cursor(cursor)
    limit = asked.count(size_name, size, most)
    rows = rows_for(asked)
    last = max(len(rows) - 1, 0) // limit * limit
    address = f"http://{request.headers.get('host', '')}{request.path}?"

    def link(position: int, there: bool) -> str | None:
        return address + urlencode({"Cursor": _cursor(asked, position)}) if there else None

    links = {
        "first": link(0, start > 0),
        "prev": link(max(start - limit, 0), start > 0),
        "next": link(start + limit, start < last),
        "last": link(last, start < last),
    }
    return rows[start : start + limit], links


def _cursor(asked: Parameters, position: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([position, asked.values]).encode()).decode()


def _from_cursor(cursor: str) -> tuple[Parameters, int]:
    try:
        position, values = json.loads(base64.urlsafe_b64decode(cursor))
    except ValueError as error:
        raise RefusedError(
            400, {"title": "Bad Request", "status": 400, "detail": "The cursor is not valid."}
        ) from error
    return Parameters(values), position


def page_of(rows: Sequence[Any], links: dict[str, str | None]) -> dict[str, Any]:
    return {"items": list(rows), **links}
