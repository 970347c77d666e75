"""The order of files: declared, or derived from their names and times where these leave no doubt.

Names are read as people do, by their dates, times and numbers, and are compared only if they differ in nothing else.
What a number means is not declared, so there may be several readings: `01112026` is in November or in January.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, product
from typing import Annotated, Any, Literal, Self, TypeVar

from msgspec import Struct
from pydantic import AfterValidator, Discriminator, Tag

from crossdock.errors import RefusedError
from crossdock.reading.transport.file_store import RemoteFile
from crossdock.state import FileFacts
from crossdock.values.clock import SystemClock
from crossdock.values.config_base_types import ConfigModel
from crossdock.values.texts_of_numbers_and_times import instant_text_to_minute

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
_TEMPLATE_EXAMPLE = 'such as "STOCK_{date:%Y%m%d}_{number}.csv"'


class TimedName(Struct, frozen=True):
    """A file by its name, and when it was changed, in seconds since 1970."""

    name: str
    at: int


class NameReading(Struct, frozen=True):
    shape: Shape
    dates: tuple[Date, ...]
    positions: Mapping[str, Position]


class DatesAndNumbersInNames:
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


def pairs_of_base_and_versioned_names(names: Iterable[str]) -> Iterator[tuple[str, str]]:
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
            else f"{{time:{_strptime_format_of_twelve_hour_times(numbers[0])}}}"
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


def _strptime_format_of_twelve_hour_times(texts: Sequence[str]) -> str:
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


def parse_name_templates(texts: Sequence[str], *, ignore_case: bool = False) -> tuple[NameTemplate, ...]:
    """Parse templates that are compared with each other. Raises ValueError if they cannot order files."""
    templates = tuple(NameTemplate.from_text(text, ignore_case=ignore_case) for text in texts)
    if not templates or (len(templates) == 1 and not templates[0].has_order_field):
        raise ValueError(
            f"needs a field that orders the files: {{date:...}}, {{time:...}} or {{number}}, {_TEMPLATE_EXAMPLE}"
        )
    if len({template.date_and_time_field_counts() for template in templates}) > 1:
        raise ValueError("all templates need the same number of dates and of times, or they cannot be compared")
    return templates


def _literal_pattern(text: str) -> str:
    if "{" in text or "}" in text:
        raise ValueError(f"{text!r} in a template is neither a field nor part of a name; {_TEMPLATE_EXAMPLE}")
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
    _raise_if_format_codes_are_unusable(kind, form, codes)
    return pattern + _literal_pattern(form[end:])


def _raise_if_format_codes_are_unusable(kind: str, form: str, codes: set[str]) -> None:
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


Dated = RemoteFile | FileFacts
F = TypeVar("F", RemoteFile, FileFacts)
Fault = Literal["tie", "disagree", "older"]
"""Why a file does not follow another: nothing shows which is newer, name and time disagree, or it is the older one."""
_EXAMPLE = 'such as order: {name: ["X_{date:%Y%m%d}.csv", "X_{date:%Y%m%d}-CORR.csv"]}, a later form last'
_LATE = (
    "ask the sender to send its rows again in a new file, or move this one away; declare order_by if a column says "
    "which row is newer, or 'order: any' if no record is in two files"
)
_BY_TIME = "order: modified if the rows of a file are as new as its time of change"
_TIME_AHEAD = timedelta(hours=26)  # a local time taken for UTC is up to 14 hours ahead; half a day is for wrong clocks
_NAME_AHEAD = timedelta(days=400)  # a name may have a day to come, such as the one from which its prices are valid
_NO_RANK: Rank = ((), (), (), 0)


def _checked_templates(value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    parse_name_templates([value] if isinstance(value, str) else value)
    return value


Templates = Annotated[
    Annotated[
        Annotated[str, Tag("one")] | Annotated[tuple[str, ...], Tag("several")],
        Discriminator(lambda value: "one" if isinstance(value, str) else "several"),
    ],
    AfterValidator(_checked_templates),
]


class NameOrder(ConfigModel):
    """Files in the order of what their names say."""

    name: Templates
    """The form of the names: text with ``{date:%Y%m%d}``, ``{time:%H%M}``, ``{number}`` and ``{text}``. Of several
    forms, a name of a later one follows one of an earlier one that has the same dates, times and numbers."""


def _tag_of_order_setting(value: Any) -> str:
    return "word" if isinstance(value, str) else "section"


Order = Annotated[
    Annotated[Literal["modified", "any"], Tag("word")] | Annotated[NameOrder, Tag("section")],
    Discriminator(_tag_of_order_setting),
]
"""How it is decided which of two files is newer: ``modified``, ``any`` or a `NameOrder`."""


class FileOrder:
    """The order of the files of one pattern. It is derived from names and times if *declared* is None."""

    def __init__(
        self, declared: Order | None = None, *, snapshot: bool = False, parts: bool = False, ignore_case: bool = False
    ) -> None:
        self.declared, self.snapshot, self.ignore_case = declared, snapshot, ignore_case
        self.parts = snapshot and parts
        self._templates = (
            parse_name_templates(
                [declared.name] if isinstance(declared.name, str) else declared.name, ignore_case=ignore_case
            )
            if isinstance(declared, NameOrder)
            else None
        )

    @property
    def goes_by_times_alone(self) -> bool:
        return self.declared == "modified"

    def rank_by_templates(self, name: str) -> Rank | None:
        ranks = (template.rank(name, number) for number, template in enumerate(self._templates or ()))
        return next((rank for rank in ranks if rank is not None), None)

    def may_have_begun_anew(self, one: str, other: str) -> bool:
        """Return whether two names of one form, with the same dates and times, may be from two rounds of a counter."""
        first, second = self.rank_by_templates(one), self.rank_by_templates(other)
        if first is None or second is None or (*first[:2], first[3]) != (*second[:2], second[3]):
            return False
        return (self._templates or ())[first[3]].may_have_begun_anew(one, other)

    def fits_no_template(self, name: str) -> bool:
        return self._templates is not None and self.rank_by_templates(name) is None

    def sortable_date_text_in_name(self, name: str) -> str | None:
        """Return the first date in *name*, with the first time, as sortable text, as the declared order reads them."""
        rank = self.rank_by_templates(name)
        if rank is None or not rank[0]:
            return None
        moment = datetime.combine(rank[0][0], rank[1][0].time()) if rank[1] else rank[0][0]
        return moment.isoformat().removesuffix("T00:00:00")

    def raise_if_file_is_in_future(self, file: Dated, now: datetime) -> None:
        """Refuse a file with a time of change, or a date in its name, after which all others would count as older."""
        if (reason := self._reason_if_in_future(file, now)) is None:
            return
        where = file.path if isinstance(file, RemoteFile) else file.name
        if self._templates is None:
            hint = (
                "give it the time at which it was written ('touch -d TIME FILE'; if no newer file is there, upload it "
                f"again), or order files by their names: {_example_of_declared_name_order(file, now)}"
            )
        else:
            hint = f"correct its name, or the form of the names in 'order'; or declare {_BY_TIME}"
        raise RefusedError(reason, where=where, hint=hint, code="file_order_unclear")

    def raise_if_known_file_is_in_future(self, file: FileFacts, known: FileFacts, now: datetime) -> None:
        """Refuse *file*, which counts as older than the *known* one, if the place of that one is in the future."""
        if (reason := self._reason_if_in_future(known, now)) is not None:
            raise self._older_than_future_file_error(known, file, reason, now)

    def _reason_if_in_future(self, file: Dated, now: datetime) -> str | None:
        """Return what is wrong with the place of *file*, which is in the future; None if it is not, or has no place."""
        if self.declared == "any":
            return None
        now = max(now, SystemClock().now())  # runs with a simulated clock read files that are written today
        if self._templates is None:
            at, most, what = datetime.fromtimestamp(file.modified_epoch_s, UTC), _TIME_AHEAD, "time of change"
        else:
            dates = (self.rank_by_templates(file.name) or _NO_RANK)[0]
            at, most, what = dates[0].replace(tzinfo=UTC) if dates else now, _NAME_AHEAD, "date in the name"
        if at <= now + most:
            return None
        return f"its {what} is in the future: {instant_text_to_minute(at)}; now it is {instant_text_to_minute(now)}"

    def newest(self, files: Sequence[RemoteFile], now: datetime) -> RemoteFile:
        compared = self._comparison_strategy(files, now)
        newest = max(files, key=compared.sort_key)
        self.raise_if_file_is_in_future(newest, now)
        for file in files:
            if file is not newest and (fault := compared.why_not_newer(file, newest)):
                raise self._order_refusal_error(fault, file, newest, compared, now)
        return newest

    def sorted_oldest_first(self, files: Sequence[FileFacts], now: datetime) -> list[FileFacts]:
        """Sort *files* from the oldest to the newest, as far as their order is known."""
        return sorted(files, key=self._comparison_strategy(files, now).sort_key)

    def sorted_without_older_duplicates(self, files: Sequence[FileFacts], now: datetime) -> list[FileFacts]:
        """Sort as `sorted_oldest_first`, without files whose content a newer file has."""
        found = dict[str, FileFacts]()
        for facts in self.sorted_oldest_first(files, now):
            found.pop(facts.content_hash, None)  # so that its place is that of the newer file
            found[facts.content_hash] = facts
        return list(found.values())

    def is_older(self, one: FileFacts, other: FileFacts, now: datetime) -> bool:
        return self._comparison_strategy([one, other], now).why_not_newer(other, one) == "older"

    def is_newer_version_or_later_file(
        self, one: FileFacts, last: FileFacts, known: Iterable[FileFacts], now: datetime
    ) -> bool:
        """Return whether *one* is the newer version of *last*, or a later file.

        If only the times say so, one of the *known* files must have an earlier name of the same form: then *one* is not
        a copy.
        """
        if self.declared == "any" or self.fits_no_template(one.name):
            return False
        compared = self._comparison_strategy([last, one], now)
        if one.name == last.name:
            return one.modified_epoch_s > last.modified_epoch_s
        if compared.is_other_later_by_name(last.name, one.name):
            return compared.why_not_newer(last, one) is None
        if compared.are_names_comparable(last.name, one.name) or one.modified_epoch_s <= last.modified_epoch_s:
            return False
        known = [*known]
        compared = self._comparison_strategy([*known, one], now)
        return any(
            compared.is_other_later_by_name(each.name, one.name) and not compared.why_not_newer(each, one)
            for each in known
        )

    def raise_if_unread_file_is_not_newer(
        self,
        unread: Sequence[FileFacts],
        known: Sequence[FileFacts],
        now: datetime,
        *,
        late: bool = False,
        returned: Collection[str] = (),
    ) -> None:
        """Refuse *unread* files, which are sorted, unless each is newer than those before and than the *known* files.

        Files that are read again need only be newer than other files that are read again. *late* accepts files that are
        older than known ones; contents in *returned* were taken in before and count as new.
        """
        if self.declared == "any" or not unread:
            return
        before = {facts.content_hash: facts for facts in known if not self.fits_no_template(facts.name)}
        again = {facts.content_hash for facts in unread if facts.content_hash in before}.difference(returned)
        new = [facts for facts in unread if facts.content_hash not in again]
        for facts in new:
            self.raise_if_file_is_in_future(facts, now)
        replaced = {facts.name for facts in new}  # which shows that a time in the future was wrong
        before = {
            content: facts
            for content, facts in before.items()
            if facts.name not in replaced or self._reason_if_in_future(facts, now) is None
        }
        compared = self._comparison_strategy([*before.values(), *unread], now)
        for first, second in compared.pairs_to_compare(new):
            if fault := compared.why_not_newer(first, second):
                raise self._order_refusal_error(fault, first, second, compared, now)
        of_new = compared.predecessors_by_name(list(before.values()))
        current = {facts.name: facts for facts in sorted(before.values(), key=lambda facts: facts.modified_epoch_s)}
        others = [facts for facts in current.values() if facts.content_hash not in again]  # those not written again
        of_others = compared.predecessors_by_name(others)
        for facts in unread:
            is_again = facts.content_hash in again
            for last in of_others(facts.name) if is_again else of_new(facts.name):
                fault = compared.why_not_newer(last, facts, taken=True)
                if fault and (not late if fault == "older" else self.snapshot or not is_again):
                    raise self._order_refusal_error(fault, last, facts, compared, now, taken=True)

    def member_sort_key(
        self, times: Mapping[str, tuple[int, ...]], archive: FileFacts, now: datetime
    ) -> Callable[[str], Any]:
        """Return the key that sorts the members of an archive, by name with their *times*.

        Dates count first, and then numbers; a member with the mark of a version follows the one without it. Times count
        only where all names have the same dates and numbers: those of members may be when they were packed.
        """
        read = DatesAndNumbersInNames([TimedName(name, archive.modified_epoch_s) for name in times], now)
        bases = {other: base for base, other in pairs_of_base_and_versioned_names(read)}
        by_time = len({read.position_in_first_reading(name) for name in times}) == 1

        def key(name: str) -> tuple[Any, ...]:
            dates, numbers = read.position_in_first_reading(name)
            around = key(bases[name]) if name in bases else ()
            return (*around, (dates, times[name] if by_time else (), read.shape(name), numbers, name))

        return key

    def _comparison_strategy(
        self, files: Iterable[Dated], now: datetime
    ) -> _OrderByTime | _OrderByTemplateRank | _OrderByNameAndTime:
        if self._templates is not None:
            return _OrderByTemplateRank(self)
        return _OrderByNameAndTime(files, now) if self.declared is None else _OrderByTime()

    def _order_refusal_error(
        self,
        fault: Fault,
        first: Dated,
        second: Dated,
        compared: _OrderByTime | _OrderByTemplateRank | _OrderByNameAndTime,
        now: datetime,
        *,
        taken: bool = False,
    ) -> RefusedError:
        if taken and (reason := self._reason_if_in_future(first, now)) is not None:
            return self._older_than_future_file_error(first, second, reason, now)
        where = second.path if isinstance(second, RemoteFile) else second.name
        other = ("the snapshot " if self.snapshot and taken else "") + f"{first.name!r}"
        other += " taken in before" if taken else ""
        if fault == "older":
            hint = "ask the sender for a fresh one" if self.snapshot else _LATE
            other = "the version of it that was taken in before" if first.name == second.name else other
            return RefusedError(f"is older than {other}", where=where, hint=hint, code="file_outdated")
        if fault == "disagree":
            by_name, by_time = (
                ("older", "newer") if first.modified_epoch_s < second.modified_epoch_s else ("newer", "older")
            )
            message = f"is {by_name} than {other} by its name, and {by_time} by its time of change"
            if taken and not self.snapshot and by_name == "older":
                hint = f"declare {_BY_TIME}. Else it comes too late: {_LATE}"
                return RefusedError(message, where=where, hint=hint, code="file_order_unclear")
        else:
            message = f"is as new as {other}: neither name nor time of change says which of them is newer"
        return RefusedError(
            message, where=where, hint=compared.advice(first.name, second.name, fault), code="file_order_unclear"
        )

    def _older_than_future_file_error(self, known: Dated, file: Dated, reason: str, now: datetime) -> RefusedError:
        message = f"counts as older than {known.name!r} taken in before, but {reason}"
        if self._templates is None:
            hint = f"order files by their names: {_example_of_declared_name_order(file, now)}"
            hint += "" if self.snapshot else "; or declare 'order: any' if no record is in two files"
        else:
            hint = f"declare {_BY_TIME}"
        return RefusedError(message, where=file.name, hint=hint, code="file_order_unclear")


def _example_of_declared_name_order(file: Dated, now: datetime) -> str:
    names = DatesAndNumbersInNames([TimedName(file.name, min(file.modified_epoch_s, int(now.timestamp())))], now)
    if dated := [text for text in names.suggested_templates(file.name) if "{date:" in text]:
        return f'order: {{name: "{dated[0]}"}}'
    return f"ask the sender for names with a date, and declare their form, {_EXAMPLE}"


def _compare_modification_times(first: Dated, second: Dated) -> int:
    """Return whether *second* was changed after *first* (1), before it (-1), or in the same second (0)."""
    return (second.modified_epoch_s > first.modified_epoch_s) - (second.modified_epoch_s < first.modified_epoch_s)


class _OrderByTime:
    def sort_key(self, file: Dated) -> Any:
        return file.modified_epoch_s

    def why_not_newer(self, first: Dated, second: Dated, *, taken: bool = False) -> Fault | None:
        if first.modified_epoch_s != second.modified_epoch_s:
            return "older" if second.modified_epoch_s < first.modified_epoch_s else None
        return None if taken and first.name == second.name else "tie"

    def pairs_to_compare(self, files: Sequence[F]) -> Iterator[tuple[F, F]]:
        return pairwise(files)

    def predecessors_by_name(self, known: Sequence[FileFacts]) -> Callable[[str], Iterable[FileFacts]]:
        """Return which of *known* a file must follow, by its name. It then follows all of them."""
        newest = [max(known, key=self.sort_key)] if known else []
        return lambda _: newest

    def is_other_later_by_name(self, one: str, other: str) -> bool:
        """Return whether the order makes *other* the later one if their names differ only in it."""
        del one, other
        return True

    def are_names_comparable(self, one: str, other: str) -> bool:
        del one, other
        return True

    def advice(self, one: str, other: str, fault: Fault) -> str:
        del one, other, fault
        return f"files were changed in the same second: declare the order of their names, {_EXAMPLE}"


class _OrderByTemplateRank(_OrderByTime):
    def __init__(self, order: FileOrder) -> None:
        self._order = order

    def sort_key(self, file: Dated) -> Any:
        return self._order.rank_by_templates(file.name) or _NO_RANK, file.modified_epoch_s

    def why_not_newer(self, first: Dated, second: Dated, *, taken: bool = False) -> Fault | None:
        one, other = (self._order.rank_by_templates(file.name) or _NO_RANK for file in (first, second))
        if one != other:
            later = _compare_modification_times(first, second)
            if later == (-1 if one < other else 1) and self._order.may_have_begun_anew(first.name, second.name):
                return "disagree"
            return "older" if other < one else None
        if first.name == second.name:
            return None  # the same file, written again
        return "tie" if self._order.snapshot else super().why_not_newer(first, second, taken=taken)

    def advice(self, one: str, other: str, fault: Fault) -> str:
        del one, other
        if fault == "disagree":
            copied = "if the one of the lower number is only a copy with a new time, move it away"
            return f"{copied}; if the numbers have begun anew, declare {_BY_TIME}"
        return "use a template in which they differ, or a pattern for `files` that matches one of them"


class _OrderByNameAndTime(_OrderByTime):
    def __init__(self, files: Iterable[Dated], now: datetime) -> None:
        self._names = DatesAndNumbersInNames([TimedName(file.name, file.modified_epoch_s) for file in files], now)
        self._extended = set(pairs_of_base_and_versioned_names(self._names))

    def sort_key(self, file: Dated) -> Any:
        return file.modified_epoch_s, self._names.shape(file.name), self._names.position_in_first_reading(file.name)

    def why_not_newer(self, first: Dated, second: Dated, *, taken: bool = False) -> Fault | None:
        later = _compare_modification_times(first, second)
        if first.name == second.name:
            return "older" if later < 0 else None
        turns = (
            self._names.compare_in_each_reading(first.name, second.name)
            if self._names.have_same_shape(first.name, second.name)
            else {0}
        )
        if turns == {0} and (second.name, first.name) in self._extended:
            turns = {-1} if later else {0}
        elif turns == {0} and taken and not later:
            return None  # the order of arrival
        if turns == {1}:
            return None if later >= 0 else "disagree"
        if turns == {-1}:
            return "disagree" if later > 0 else "older"
        return (None, "tie", "older")[1 - later]

    def is_other_later_by_name(self, one: str, other: str) -> bool:
        if (one, other) in self._extended:
            return True
        return self._names.have_same_shape(one, other) and self._names.compare_in_each_reading(one, other) == {1}

    def are_names_comparable(self, one: str, other: str) -> bool:
        return self._names.have_same_shape(one, other)

    def pairs_to_compare(self, files: Sequence[F]) -> Iterator[tuple[F, F]]:
        yield from pairwise(files)
        alike = dict[Shape, F]()
        for file in files:
            shape = self._names.shape(file.name)
            if shape in alike:
                yield alike[shape], file
            alike[shape] = file
        places = {file.name: place for place, file in enumerate(files)}
        for base, other in self._extended:
            if base in places and other in places:
                first, second = sorted((places[base], places[other]))
                yield files[first], files[second]

    def predecessors_by_name(self, known: Sequence[FileFacts]) -> Callable[[str], Iterable[FileFacts]]:
        newest = super().predecessors_by_name(known)
        alike, extending = dict[Shape, FileFacts](), defaultdict[str, list[FileFacts]](list)
        for facts in sorted(known, key=lambda facts: self._names.position_in_first_reading(facts.name)):
            alike[self._names.shape(facts.name)] = facts
        by_name = {facts.name: facts for facts in known}
        for base, other in self._extended:
            if other in by_name:
                extending[base].append(by_name[other])

        def last_of(name: str) -> Iterator[FileFacts]:
            yield from newest(name)
            yield from filter(None, [alike.get(self._names.shape(name))])
            yield from extending[name]

        return last_of

    def advice(self, one: str, other: str, fault: Fault) -> str:
        if self._names.have_same_shape(one, other) and (templates := self._names.suggested_templates(one)):
            shown = " or ".join(f'order: {{name: "{template}"}}' for template in templates)
            if fault == "tie":
                return f"declare what decides: {shown}"
            return f"declare {shown} if a file that is written again keeps its place, or {_BY_TIME}"
        base, later = (other, one) if (other, one) in self._extended else (one, other)
        forms = [template for name in (base, later) for template in self._names.suggested_templates(name)[:1]]
        if (base, later) in self._extended and len(forms) > 1:
            shown = ", ".join(f'"{template}"' for template in forms)
            return f"if {later!r} is the newer one, declare order: {{name: [{shown}]}}; else order: modified"
        by_time = "" if fault == "tie" else f"; or {_BY_TIME}"
        return f"use a pattern that matches one of them, or declare the order, {_EXAMPLE}{by_time}"
