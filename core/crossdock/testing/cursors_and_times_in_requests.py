"""The times that requests ask for and that answers contain, in the forms that APIs use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit
from zoneinfo import ZoneInfo

from crossdock.testing.graphql_selection import GraphQLRequest
from crossdock.values import exact_json

_ISO = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)\d*(Z|[+-]\d\d:?\d\d)?)?(?!\d)")
_UNIX = re.compile(r"(?<![\d.-])(\d{10})(\d{3})?(?![\d-])")
_NUMBER = re.compile(r"(?<![\d.])\d{1,18}(?![\d.])")
_DESCENDING = re.compile(r"(?:^|[\s_:,.])(?:desc|descending)$")
_DIGITS = re.compile(r"\d{1,18}")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBERS = 100_000  # how much less than a cursor may be asked for
_BEFORE = timedelta(days=1)  # how much earlier
_ZONES = timedelta(hours=14)  # so far a local time may be from UTC
_LATEST_S = 4_102_444_800  # of UNIX time: the year 2100


class Moment(NamedTuple):
    """A time, as early and as late as it can be: a text may lack the time zone, or the time of the day."""

    earliest: datetime
    latest: datetime


def moments_in(text: str, zone: str | None = None) -> Iterator[Moment]:
    """Yield the times in a URL or a body: ISO 8601, dates, and UNIX time in seconds or milliseconds.

    Args:
        zone: The time zone of times without an offset, such as ``Europe/London``; None if it is not known.
    """
    for day, clock, offset in _ISO.findall(unquote(text)):
        with suppress(ValueError):  # no time of a calendar
            moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}{offset}")
            earliest, latest = (moment, moment) if offset else _possible_instants_of_local_time(moment, zone)
            yield Moment(earliest, latest + (timedelta() if clock else timedelta(days=1)))
    for seconds, _ in _UNIX.findall(unquote(text)):
        if 946_684_800 <= int(seconds) < _LATEST_S:
            moment = datetime.fromtimestamp(int(seconds), UTC)
            yield Moment(moment, moment + timedelta(seconds=1))


def _possible_instants_of_local_time(moment: datetime, zone: str | None) -> tuple[datetime, datetime]:
    """Return the earliest and the latest instant that a time without an offset may be."""
    if zone is None:
        aware = moment.replace(tzinfo=UTC)
        return aware - _ZONES, aware + _ZONES
    found = [moment.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC) for fold in (0, 1)]
    return min(found), max(found)


def contains_cursor_or_slightly_earlier(
    request: tuple[str, str, bytes], cursor: str, name: str | None = None, zone: str | None = None
) -> bool:
    """Return whether the method, URL and body of a *request* contain *cursor*, a number up to it, or a time up to a day
    before it.

    Args:
        name: The parameter, or the member of a JSON body, that contains it; None for any.
        zone: See `moments_in`.
    """
    _, url, body = request
    texts = [*_named_values(url, body)]
    return any(
        _contains_cursor_or_slightly_earlier(text, cursor, zone) for found, text in texts if name in {None, found}
    )


def _named_values(url: str, body: bytes) -> Iterator[tuple[str, str]]:
    """Yield the parameters and the members with texts and numbers, with their names."""
    parts = urlsplit(url)
    yield "", unquote(parts.path)
    yield from parse_qsl(parts.query)
    yield "", unquote(parts.query)  # several times in one expression
    try:
        yield from _leaves("", exact_json.loads(body or b"null"))
    except ValueError:
        yield from parse_qsl(body.decode("utf-8", "replace"))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for inner, each in value.items():
            yield from _leaves(inner, each)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(name, each)
    elif value is not None:
        yield name, str(value)


def find_descending_order_parameter(request: tuple[str, str, bytes], column: str) -> str | None:
    """Return what in a *request* asks for the latest value of *column* first, or None."""
    _, url, body = request
    asked = GraphQLRequest.parse_body(body)
    given = _named_values(url, body) if asked is None else ((path[-1], str(value)) for path, value in asked.arguments())
    name = column.rpartition(".")[2]
    for parameter, text in given:
        plain = text.strip().casefold()
        is_reverse = parameter == "reverse" and plain == "true"
        if is_reverse or _DESCENDING.search(plain) or plain in {f"-{name}".casefold(), f"-{column}".casefold()}:
            return f"{parameter} {text}"
    return None


def _contains_cursor_or_slightly_earlier(text: str, cursor: str, zone: str | None) -> bool:
    if cursor in text:
        return True
    instant = parse_instant(cursor) or next((moment.earliest for moment in moments_in(cursor, zone)), None)
    if instant is not None:
        if moments := [*moments_in(text, zone)]:
            return any(moment.earliest <= instant <= moment.latest + _BEFORE for moment in moments)
        return any(_mentions_day(text, instant + shift) for shift in (-_BEFORE, timedelta(), _ZONES))
    return cursor.isdigit() and any(0 <= int(cursor) - int(each) <= _NUMBERS for each in _NUMBER.findall(text))


def _mentions_day(text: str, day: datetime) -> bool:
    """Return whether *text* has the numbers of a day in any order, such as ``02.11.2026`` or ``Mon, 02 Nov 2026``."""
    if f"{day:%Y%m%d}" in text:
        return True
    numbers = {int(each) for each in _DIGITS.findall(text)}
    is_month = day.month in numbers or _MONTHS[day.month - 1] in text.casefold()
    return is_month and day.day in numbers and not {day.year, day.year % 100}.isdisjoint(numbers)


def parse_instant(text: str | None) -> datetime | None:
    """Return the instant that a cursor is; None if it is not one."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else None
