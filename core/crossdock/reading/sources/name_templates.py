"""Templates of file names, such as ``STOCK_{date:%m-%d-%Y}_{number}.csv``, which order files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

Rank = tuple[tuple[datetime, ...], tuple[datetime, ...], tuple[int, ...], int]
"""Dates, times and numbers of a name, and the number of its template: compared in this order."""

_FIELD = re.compile(r"\{([^{}]*)\}")
_CODES = {
    "%Y": r"[0-9]{4}", "%y": r"[0-9]{2}", "%m": r"[0-9]{2}", "%d": r"[0-9]{2}", "%j": r"[0-9]{3}",
    "%-m": r"[0-9]{1,2}", "%-d": r"[0-9]{1,2}", "%b": r"[A-Za-z]{3}", "%B": r"[A-Za-z]{3,9}",
    "%H": r"[0-9]{2}", "%I": r"[0-9]{2}", "%M": r"[0-9]{2}", "%S": r"[0-9]{2}", "%f": r"[0-9]{1,6}",
    "%-H": r"[0-9]{1,2}", "%-I": r"[0-9]{1,2}", "%p": r"[AaPp][Mm]",
}  # fmt: skip
_CODE = re.compile(r"%-?.")
_TIME_CODES = {"%H", "%I", "%M", "%S", "%f", "%-H", "%-I", "%p"}
_WITHIN_YEAR = {"%m", "%-m", "%b", "%B", "%j"}
_EXAMPLE = 'such as "STOCK_{date:%Y%m%d}_{number}.csv"'


@dataclass(frozen=True, slots=True)
class NameTemplate:
    """A template of names.

    Attributes:
        kinds: The strptime format of each date or time field, or "", by the name of its group in *regex*.
    """

    text: str
    regex: re.Pattern[str]
    kinds: dict[str, str]

    @classmethod
    def parse(cls, text: str, *, ignore_case: bool = False) -> Self:
        """Read a template. Raises ValueError if a field is none of `NameTemplate`."""
        pattern, kinds, end = "", dict[str, str](), 0
        flags = re.DOTALL | re.IGNORECASE if ignore_case else re.DOTALL
        for number, field in enumerate(_FIELD.finditer(text)):
            pattern += _literal(text[end : field.start()])
            end = field.end()
            kind, _, form = field[1].partition(":")
            group = f"{kind}{number}"
            kinds[group] = form
            pattern += f"(?P<{group}>{_pattern(kind, form)})"
        return cls(text, re.compile(pattern + _literal(text[end:]), flags), kinds)

    @property
    def orders(self) -> bool:
        return any(not group.startswith("text") for group in self.kinds)

    def form(self) -> tuple[int, int]:
        """Return the number of dates and of times."""
        return sum(group.startswith("date") for group in self.kinds), sum(
            group.startswith("time") for group in self.kinds
        )

    def rank(self, name: str, number: int) -> Rank | None:
        """Return what *name* says, or None if it does not match. *number* is that of this template."""
        found = self.regex.fullmatch(name)
        if found is None:
            return None
        moments: dict[str, list[datetime]] = {"date": [], "time": []}
        numbers = list[int]()
        for group, form in self.kinds.items():
            if group.startswith("number"):
                numbers.append(int(found[group]))
            elif form:
                try:
                    moments[group[:4]].append(datetime.strptime(found[group], form.replace("%-", "%")))  # noqa: DTZ007
                except ValueError:
                    return None
        return tuple(moments["date"]), tuple(moments["time"]), tuple(numbers), number


def parse_all(texts: Sequence[str], *, ignore_case: bool = False) -> tuple[NameTemplate, ...]:
    """Parse templates that are compared with each other. Raises ValueError if they cannot order files."""
    templates = tuple(NameTemplate.parse(text, ignore_case=ignore_case) for text in texts)
    if not templates or (len(templates) == 1 and not templates[0].orders):
        raise ValueError(f"needs a field that orders the files: {{date:...}}, {{time:...}} or {{number}}, {_EXAMPLE}")
    if len({template.form() for template in templates}) > 1:
        raise ValueError("all templates need the same number of dates and of times, or they cannot be compared")
    return templates


def _literal(text: str) -> str:
    if "{" in text or "}" in text:
        raise ValueError(f"{text!r} in a template is neither a field nor part of a name; {_EXAMPLE}")
    return re.escape(text)


def _pattern(kind: str, form: str) -> str:
    if kind in {"number", "text"} and not form:
        return r"[0-9]{1,30}" if kind == "number" else "[^/]*?"
    if kind not in {"date", "time"} or not form:
        field = "{" + kind + (f":{form}" if form else "") + "}"
        raise ValueError(f"{field} is not a field: use {{date:%Y%m%d}}, {{time:%H%M}}, {{number}} or {{text}}")
    codes, pattern, end = set[str](), "", 0
    for code in _CODE.finditer(form):
        if code[0] not in _CODES:
            raise ValueError(f"{code[0]} in {form!r} is not a code of a {kind}; use {' '.join(_CODES)}")
        pattern += _literal(form[end : code.start()]) + _CODES[code[0]]
        end = code.end()
        codes.add(code[0])
    _check_codes(kind, form, codes)
    return pattern + _literal(form[end:])


def _check_codes(kind: str, form: str, codes: set[str]) -> None:
    if kind == "time":
        if not codes or codes - _TIME_CODES:
            raise ValueError(f"{form!r} is not a time; use {{time:%H%M}}, or {{date:%Y%m%d%H%M}} for both together")
    elif not codes & {"%Y", "%y"} or not codes & _WITHIN_YEAR:
        raise ValueError(
            f"{form!r} is not a date with its year and month or day of the year; without a year, no date says what "
            "comes after December; use 'modified' for such names"
        )
    if codes & {"%I", "%-I"} and "%p" not in codes:
        raise ValueError(f"{form!r} has hours of 12 without AM or PM; add %p, or use %H")
    if "%p" in codes and not codes & {"%I", "%-I"}:
        raise ValueError(f"{form!r} has AM or PM with hours of 24; use %I with %p")
