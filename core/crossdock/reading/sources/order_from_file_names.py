"""File names as people read them: their dates, times and numbers, declared by a template or not, and which is later.

Names are compared only if they differ in nothing else. What a number means is not declared, so there may be several
readings: `01112026` is in November or in January.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, product
from typing import Literal, Self

from msgspec import Struct

Position = tuple[tuple[datetime, ...], tuple[int, ...]]
"""Dates of a name, then its other numbers: those after its last date first."""
Kind = Literal["number", "half_day", "month"]
Shape = tuple[tuple[str, str], ...]
"""The kinds of the numbers of a name, each with the text before it; then an empty kind with the text after the last."""
Date = tuple[int, int, str]
"""A date in a name: the place of its first number, how many numbers it has, and its format."""

_SUFFIX = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]{0,7})+$")
_NUMBER = re.compile(
    r"(?<![0-9])(?P<half_day>(?:0?[1-9]|1[0-2])(?:[-._:][0-5][0-9](?:[-._:][0-5][0-9])?|[0-5][0-9](?:[0-5][0-9])?)?"
    r"[ _-]?[AaPp][Mm](?![A-Za-z]))"
    r"|(?<![A-Za-z])(?P<month>(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:tember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?))(?![A-Za-z])"
    r"|(?P<number>[0-9]+)"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_BY_LENGTH: Mapping[int, tuple[str, ...]] = {
    6: ("%y%m%d", "%d%m%y", "%m%d%y", "%Y%m"),
    8: ("%Y%m%d", "%d%m%Y", "%m%d%Y"),
    10: ("%Y%m%d%H", "%d%m%Y%H", "%m%d%Y%H"),
    12: ("%Y%m%d%H%M", "%d%m%Y%H%M", "%m%d%Y%H%M"),
    14: ("%Y%m%d%H%M%S", "%d%m%Y%H%M%S", "%m%d%Y%H%M%S"),
}
_IN_PARTS = ("%Y %m %d", "%d %m %Y", "%m %d %Y", "%y %m %d", "%d %m %y", "%m %d %y")
_SEPARATORS = {"-", "_", ".", " "}
_MAX_READINGS = 64
_SAME_DAYS = timedelta(days=3)  # allowed between a date in a name and the file's time, in any time zone
_YEAR, _MONTH = timedelta(days=400), timedelta(days=31)
_MARK = re.compile(r"[^0-9]*[0-9]{0,3}[^0-9]*")  # what corrections and versions add to a name
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


class TimedName(Struct, frozen=True):
    """A file by its name, and when it was changed, in seconds since 1970."""

    name: str
    at: int


class NameReading(Struct, frozen=True):
    shape: Shape
    dates: tuple[Date, ...]
    positions: Mapping[str, Position]


class NaturalNames:
    """The readings of names. The times of all *files* help to choose one; dates far after *now* are not accepted."""

    def __init__(self, files: Iterable[TimedName], now: datetime) -> None:
        self._shapes = dict[str, Shape]()
        groups: dict[Shape, dict[str, list[TimedName]]] = {}
        numbers = dict[str, tuple[str, ...]]()
        for file in files:
            if file.name not in numbers:
                self._shapes[file.name], numbers[file.name] = _split_name_at_numbers(file.name)
            groups.setdefault(self._shapes[file.name], {}).setdefault(file.name, []).append(file)
        self._readings = {
            shape: _plausible_readings(shape, group, numbers, now + _YEAR) for shape, group in groups.items()
        }

    def have_same_shape(self, one: str, other: str) -> bool:
        return self._shapes[one] == self._shapes[other]

    def compare_in_each_reading(self, one: str, other: str) -> set[int]:
        """Compare two alike names in each reading: *other* is later (1), earlier (-1), or neither (0)."""
        pairs = {(reading.positions[one], reading.positions[other]) for reading in self._readings[self._shapes[one]]}
        return {(first < second) - (first > second) for first, second in pairs}

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def shape(self, name: str) -> Shape:
        return self._shapes[name]

    def position_in_first_reading(self, name: str) -> Position:
        return self._readings[self._shapes[name]][0].positions[name]

    def suggested_templates(self, name: str) -> list[str]:
        found = list[str]()
        for reading in self._readings[self._shapes[name]]:
            numbers = [_split_name_at_numbers(each)[1] for each in reading.positions]
            with suppress(ValueError):
                template = NameTemplate.from_text(_template_text(reading, numbers))
                if all(template.rank(each, 0) for each in reading.positions):
                    found.append(template.text)
        return list(dict.fromkeys(found))


def is_base_with_version_mark(base: str, other: str) -> bool:
    """Return whether *other* is *base* with a mark of a correction or version at its end or beginning."""
    first, second = _SUFFIX.sub("", base), _SUFFIX.sub("", other)
    if len(second) <= len(first) or not first:
        return False
    if second.startswith(first):
        added, edge = second[len(first) :], first[-1] + second[len(first)]
    elif second.endswith(first):
        added, edge = second[: -len(first)], second[-len(first) - 1] + first[0]
    else:
        return False
    return bool(_MARK.fullmatch(added)) and not edge.isdigit() and not edge.isalpha()


def pairs_with_version_mark(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    stems = {name: _SUFFIX.sub("", name) for name in names}
    for step in (1, -1):
        bases = list[str]()  # each begins with the one before
        for name in sorted(stems, key=lambda name: (stems[name][::step], name)):
            while bases and not stems[name][::step].startswith(stems[bases[-1]][::step]):
                bases.pop()
            yield from ((base, name) for base in bases if is_base_with_version_mark(base, name))
            bases.append(name)


def _split_name_at_numbers(name: str) -> tuple[Shape, tuple[str, ...]]:
    shape, numbers, end = list[tuple[str, str]](), list[str](), 0
    for found in _NUMBER.finditer(name):
        shape.append((name[end : found.start()], str(found.lastgroup)))
        numbers.append(found[0])
        end = found.end()
    return (*shape, (name[end:], "")), tuple(numbers)


def _plausible_readings(
    shape: Shape, files: Mapping[str, Sequence[TimedName]], numbers: Mapping[str, tuple[str, ...]], latest: datetime
) -> list[NameReading]:
    texts = [numbers[name] for name in files]
    found = list[NameReading]()
    for chosen in islice(product(*_possible_dates(shape, texts)), _MAX_READINGS):
        dates = tuple(date for date in chosen if date is not None)
        positions = dict[str, Position]()
        for name in files:
            position = _parse_dates_and_numbers(shape, numbers[name], dates, latest)
            if position is None:
                break
            positions[name] = position
        else:
            found.append(NameReading(shape, dates, positions))
    most = max(map(_number_of_sure_dates, found))
    found = [reading for reading in found if _number_of_sure_dates(reading) == most]
    for before, after in ((_SAME_DAYS, _SAME_DAYS), (_YEAR, _MONTH)):
        likely = [reading for reading in found if reading.dates and _is_near_file_times(reading, files, before, after)]
        if likely:
            most = max(len(reading.dates) for reading in likely)
            found = [reading for reading in likely if len(reading.dates) == most]
            break
    return [reading for reading in found if _is_in_order_of_times(reading, files)] or found


def _number_of_sure_dates(reading: NameReading) -> int:
    """Return the number of unmistakable dates: with a whole year and a day, or in parts."""
    return sum(parts > 1 or ("%Y" in form and "%d" in form) for _, parts, form in reading.dates)


def _possible_dates(shape: Shape, names: Sequence[tuple[str, ...]]) -> list[list[Date | None]]:
    places, place = list[list[Date | None]](), 0
    while place < len(shape) - 1:
        forms = [*_dates_in_parts(shape, names, place), *_dates_in_one_number(shape, names, place)]
        if forms:
            places.append([*forms, None])
        place += max((parts for _, parts, _ in forms), default=1)
    return places


def _dates_in_parts(shape: Shape, names: Sequence[tuple[str, ...]], place: int) -> Iterator[Date]:
    parts = shape[place : place + 3]
    kinds = [kind for _, kind in parts]
    if place + 3 >= len(shape) or kinds.count("month") > 1 or "half_day" in kinds:
        return
    between = {text for text, _ in parts[1:]}
    if len(between) > 1 or not between <= _SEPARATORS | ({""} if "month" in kinds else set()):
        return
    for form in _IN_PARTS:
        codes = form.split()
        if "month" in kinds and codes.index("%m") != kinds.index("month"):
            continue
        lengths = {code: {len(name[place + part]) for name in names} for part, code in enumerate(codes)}
        years = lengths.get("%Y", lengths.get("%y"))
        if years == ({4} if "%Y" in form else {2}) and max(lengths["%d"]) <= 2:
            yield place, 3, form


def _dates_in_one_number(shape: Shape, names: Sequence[tuple[str, ...]], place: int) -> Iterator[Date]:
    lengths = {len(name[place]) for name in names}
    if shape[place][1] == "number" and len(lengths) == 1:
        yield from ((place, 1, form) for form in _BY_LENGTH.get(lengths.pop(), ()))


def _parse_dates_and_numbers(
    shape: Shape, numbers: tuple[str, ...], dates: tuple[Date, ...], latest: datetime
) -> Position | None:
    moments, others = list[datetime](), set(range(len(numbers)))
    for place, parts, form in dates:
        texts = [_MONTHS.index(text[:3].lower()) + 1 if text.isalpha() else text for text in numbers[place:][:parts]]
        try:
            moment = datetime.strptime(" ".join(map(str, texts)), form).replace(tzinfo=UTC)
        except ValueError:
            return None
        if moment.year < 1990 or moment > latest:
            return None
        moments.append(moment)
        others -= set(range(place, place + parts))
    last = max((place for place, _, _ in dates), default=-1)
    ordered = sorted(others, key=lambda place: (place < last, place))
    return tuple(moments), tuple(_number_value(shape[place][1], numbers[place]) for place in ordered)


def _number_value(kind: str, text: str) -> int:
    if kind == "month":
        return _MONTHS.index(text[:3].lower()) + 1
    if kind == "number":
        return int(text)
    digits = "".join(number.zfill(2) for number in re.findall("[0-9]+", text))
    padded = digits.zfill(len(digits) + len(digits) % 2).ljust(6, "0")
    hours, minutes, seconds = (int(padded[place : place + 2]) for place in (0, 2, 4))
    return (hours % 12 + 12 * ("p" in text.lower())) * 3600 + minutes * 60 + seconds


def _is_near_file_times(
    reading: NameReading, files: Mapping[str, Sequence[TimedName]], before: timedelta, after: timedelta
) -> bool:
    return all(
        -before.total_seconds() <= moment.timestamp() - file.at <= after.total_seconds()
        for name, (moments, _) in reading.positions.items()
        for file in files[name]
        for moment in moments
    )


def _is_in_order_of_times(reading: NameReading, files: Mapping[str, Sequence[TimedName]]) -> bool:
    ordered = sorted((reading.positions[name], file.at) for name, of in files.items() for file in of)
    return all(first[1] <= second[1] for first, second in pairwise(ordered))


def _template_text(reading: NameReading, names: Sequence[tuple[str, ...]]) -> str:
    text, place, dates = "", 0, {place: (parts, form) for place, parts, form in reading.dates}
    while place < len(reading.shape) - 1:
        before, kind = reading.shape[place]
        parts, form = dates.get(place, (1, ""))
        numbers = [[name[place + part] for name in names] for part in range(parts)]
        if parts > 1:
            between = [*(text for text, _ in reading.shape[place + 1 : place + parts]), ""]
            codes = [
                _strptime_code_for_texts(code, texts) + after
                for code, texts, after in zip(form.split(), numbers, between, strict=True)
            ]
            form = "".join(codes)
        field = (
            f"{{date:{form}}}"
            if form
            else f"{{time:{_twelve_hour_format(numbers[0])}}}"
            if kind == "half_day"
            else "{number}"
        )
        text += before + field
        place += parts
    return text + reading.shape[-1][0]


def _strptime_code_for_texts(code: str, texts: Sequence[str]) -> str:
    if texts[0].isalpha():
        return "%b" if {len(text) for text in texts} == {3} else "%B"
    return code.replace("%", "%-") if min(map(len, texts)) < 2 else code


def _twelve_hour_format(texts: Sequence[str]) -> str:
    first = re.findall("[0-9]+", texts[0])
    if len(first) == 1 and len(first[0]) > 2:
        return "%I%M%S"[: len(first[0])] + texts[0][len(first[0]) : -2] + "%p"
    codes = iter(("%-I" if any(re.match("[0-9](?![0-9])", text) for text in texts) else "%I", "%M", "%S"))
    return re.sub("[0-9]+", lambda _: next(codes), texts[0][:-2]) + "%p"


Rank = tuple[tuple[datetime, ...], tuple[datetime, ...], tuple[int, ...], int]
"""Dates, times and numbers of a name, and the number of its template: compared in this order."""


class NameTemplate(Struct, frozen=True):
    """A template of names. `kinds` has the strptime format of each field, or "", by its group in `regex`."""

    text: str
    regex: re.Pattern[str]
    kinds: dict[str, str]

    @classmethod
    def from_text(cls, text: str, *, ignore_case: bool = False) -> Self:
        pattern, kinds, end = "", dict[str, str](), 0
        flags = re.DOTALL | re.IGNORECASE if ignore_case else re.DOTALL
        for number, field in enumerate(_FIELD.finditer(text)):
            pattern += _literal_pattern(text[end : field.start()])
            end = field.end()
            kind, _, form = field[1].partition(":")
            group = f"{kind}{number}"
            kinds[group] = form
            pattern += f"(?P<{group}>{_field_pattern(kind, form)})"
        found = cls(text, re.compile(pattern + _literal_pattern(text[end:]), flags), kinds)
        dates, times = found.date_and_time_field_counts()
        if times and not dates:
            raise ValueError(
                "a time without a date does not say which day is the later one; add {date:...}, write {text} for the"
                " time, or use 'modified'"
            )
        return found

    @property
    def has_order_field(self) -> bool:
        return any(not group.startswith("text") for group in self.kinds)

    def date_and_time_field_counts(self) -> tuple[int, int]:
        return sum(group.startswith("date") for group in self.kinds), sum(
            group.startswith("time") for group in self.kinds
        )

    def may_have_begun_anew(self, one: str, other: str) -> bool:
        """Return whether a counter may have passed its last number between two names, such as from 9999 to 0001.

        They have as many digits, and are among the first and the last tenth of all such numbers.
        """
        found, others = self.regex.fullmatch(one), self.regex.fullmatch(other)
        if found is None or others is None:
            return False
        numbers = ((found[group], others[group]) for group in self.kinds if group.startswith("number"))
        low, high = sorted(next((pair for pair in numbers if int(pair[0]) != int(pair[1])), ("", "")))
        return len(low) == len(high) > 1 and low.startswith("0") and high.startswith("9")

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


def parse_templates(texts: Sequence[str], *, ignore_case: bool = False) -> tuple[NameTemplate, ...]:
    """Parse templates that are compared with each other. Raises ValueError if they cannot order files."""
    templates = tuple(NameTemplate.from_text(text, ignore_case=ignore_case) for text in texts)
    if not templates or (len(templates) == 1 and not templates[0].has_order_field):
        raise ValueError(f"needs a field that orders the files: {{date:...}}, {{time:...}} or {{number}}, {_EXAMPLE}")
    if len({template.date_and_time_field_counts() for template in templates}) > 1:
        raise ValueError("all templates need the same number of dates and of times, or they cannot be compared")
    return templates


def _literal_pattern(text: str) -> str:
    if "{" in text or "}" in text:
        raise ValueError(f"{text!r} in a template is neither a field nor part of a name; {_EXAMPLE}")
    return re.escape(text)


def _field_pattern(kind: str, form: str) -> str:
    if kind in {"number", "text"} and not form:
        return r"[0-9]{1,30}" if kind == "number" else "[^/]*?"
    if kind not in {"date", "time"} or not form:
        field = "{" + kind + (f":{form}" if form else "") + "}"
        raise ValueError(f"{field} is not a field: use {{date:%Y%m%d}}, {{time:%H%M}}, {{number}} or {{text}}")
    codes, pattern, end = set[str](), "", 0
    for code in _CODE.finditer(form):
        if code[0] not in _CODES:
            raise ValueError(f"{code[0]} in {form!r} is not a code of a {kind}; use {' '.join(_CODES)}")
        pattern += _literal_pattern(form[end : code.start()]) + _CODES[code[0]]
        end = code.end()
        codes.add(code[0])
    _check_format_codes(kind, form, codes)
    return pattern + _literal_pattern(form[end:])


def _check_format_codes(kind: str, form: str, codes: set[str]) -> None:
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
