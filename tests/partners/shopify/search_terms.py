"""The search syntax of ``query`` arguments: terms with a field, a comparator and a value; AND, OR, NOT, parentheses.

Source: shopify.dev/docs/api/usage/search-syntax. Two habits of it hide records from careless clients: a field that a
list does not know is ignored, with a warning in the answer's extensions, and so is a time that has no quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from tests.partners.shopify.records import number_of

Kind = Literal["time", "id", "text", "integer", "boolean"]
Values = Mapping[str, Any]
Test = Callable[[Values], bool]

_TOKEN = re.compile(
    r"""\s*(?:(?P<bracket>[()])|(?P<minus>-)?(?:(?P<field>[a-z_][a-z0-9_]*):\s*(?P<comparator>>=|<=|>|<)?)?
    (?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<plain>[^\s()]+)))""",
    re.VERBOSE,
)
_END: dict[str, str | None] = {**dict.fromkeys(_TOKEN.groupindex), "bracket": ")"}  # as if what is open were closed
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Filter:
    """A field that a list can be searched for.

    Attributes:
        name: Of the attribute that the record has the value in.
    """

    name: str
    kind: Kind


@dataclass(slots=True)
class Search:
    """A parsed query: *matches* says whether it finds a record; *warnings* tell what was ignored."""

    matches: Test
    warnings: list[dict[str, str]] = field(default_factory=list)


class _Parser:
    def __init__(self, query: str, filters: Mapping[str, Filter], zone: ZoneInfo) -> None:
        self._tokens = [one.groupdict() for one in _TOKEN.finditer(query)]
        self._filters, self._zone, self._at = filters, zone, 0
        self.warnings: list[dict[str, str]] = []

    def parse(self) -> Test:
        return self._either() if self._tokens else _everything

    def _peek(self) -> dict[str, str | None]:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _is_word(self, word: str) -> bool:
        token = self._peek()
        return token["plain"] == word and not token["field"] and not token["minus"]

    def _either(self) -> Test:
        options = [self._both()]
        while self._is_word("OR"):
            self._at += 1
            options.append(self._both())
        return lambda values: any(test(values) for test in options)

    def _both(self) -> Test:
        tests = [self._term()]
        while self._peek()["bracket"] != ")" and not self._is_word("OR"):
            self._at += self._is_word("AND")
            tests.append(self._term())
        return lambda values: all(test(values) for test in tests)

    def _term(self) -> Test:
        if self._is_word("NOT"):
            self._at += 1
            test = self._term()
            return lambda values: not test(values)
        token = self._peek()
        self._at += 1
        if token["bracket"] == "(":
            inner = self._either()
            self._at += 1
            return inner
        if token["bracket"]:
            return _everything
        test = self._compare(token)
        return (lambda values: not test(values)) if token["minus"] else test

    def _compare(self, token: Mapping[str, str | None]) -> Test:
        name, comparator = token["field"], token["comparator"] or ""
        quoted = next((token[one] for one in ("single", "double") if token[one] is not None), None)
        value = quoted if quoted is not None else token["plain"] or ""
        known = self._filters.get(name or "")
        if known is None:
            return self._ignore(name or "default", "Invalid search field for this query.")
        if known.kind == "time":
            return self._compare_time(name or "", known, comparator, value, quoted=quoted is not None)
        return _compare_value(known, comparator, value)

    def _compare_time(self, name: str, known: Filter, comparator: str, value: str, *, quoted: bool) -> Test:
        try:
            start = datetime.fromisoformat(value)
        except ValueError:
            return self._ignore(name, f"Input `{value}` is not an accepted `date`.")
        day = len(value) == len("2026-01-01")
        if not day and (not quoted or start.tzinfo is None):
            return self._ignore(name, f"Input `{value}` is not an accepted `date`.")
        start = start.replace(tzinfo=self._zone) if day else start
        # A time without a fraction stands for its whole second where the bound is excluded from below, as of 2026-10.
        unit = timedelta(days=1) if day else timedelta(0) if "." in value else _SECOND
        return lambda values: _within(values.get(known.name), comparator, start, start + unit)

    def _ignore(self, name: str, message: str) -> Test:
        self.warnings.append({"field": name, "message": message})
        return _everything


def _everything(_: Values) -> bool:
    return True


def _within(value: datetime | None, comparator: str, start: datetime, end: datetime) -> bool:
    """Compare with the second (or day, or instant) from *start* to before *end*.

    ``>`` begins after that second; the other comparators take it as the instant at which it begins
    (shopify.dev/changelog/exclusive-timestamp-filters).
    """
    if value is None:
        return False
    match comparator:
        case ">=":
            return value >= start
        case ">":
            return value >= end if end > start else value > start
        case "<=":
            return value <= start
        case "<":
            return value < start
    return start <= value < max(end, start + timedelta(microseconds=1))


def _compare_value(known: Filter, comparator: str, value: str) -> Test:
    wanted = [_plain(known.kind, one) for one in value.split(",")]

    def test(values: Values) -> bool:
        found = values.get(known.name)
        if found is None:
            return False
        has = _plain(known.kind, str(found))
        if comparator:
            return _ordered(has, comparator, wanted[0])
        return has in wanted or value == "*"

    return test


def _plain(kind: Kind, text: str) -> Any:
    """A comparable value: ids by their number, with or without the rest of the global id; texts in lower case."""
    if kind == "id":
        digits = number_of(text) if text.startswith("gid:") else text
        return int(digits) if str(digits).isdecimal() else -1
    if kind == "integer":
        return int(text) if text.lstrip("-").isdecimal() else -1
    return text.lower()


def _ordered(value: Any, comparator: str, bound: Any) -> bool:
    return bool({">=": value >= bound, ">": value > bound, "<=": value <= bound, "<": value < bound}[comparator])


def parsed(query: str, filters: Mapping[str, Filter], zone: ZoneInfo) -> Search:
    """What *query* finds in a list with these filters; days are those of *zone*."""
    parser = _Parser(query, filters, zone)
    return Search(parser.parse(), parser.warnings)
