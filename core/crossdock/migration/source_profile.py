"""The profile of a stream's reading: counts, places and findings of its columns, or the members of its JSON records.

The memory does not depend on the number of rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal, get_args

import polars as pl
from msgspec import Struct, field

from crossdock.delta.fingerprint import text_hashes
from crossdock.mapping.lookup_and_join_settings import NO_MAIN_ROW
from crossdock.reading.formats.suspicious_cells import SPREADSHEET_DAMAGE_PATTERN, WRONG_ENCODING_PATTERN
from crossdock.values import exact_json
from crossdock.values.field_types import MAX_DIGITS_AFTER_POINT, MAX_DIGITS_BEFORE_POINT
from crossdock.values.json_paths import json_value_as_column_text
from crossdock.values.raw_rows_and_records import (
    ELEMENT,
    JSON,
    LINE,
    RawBatch,
    column_expressions_by_exact_names,
    internal_column_name,
    is_internal_column,
)

Finding = Literal[
    "outer_blanks",  # blanks or tabs before or after the text
    "control",  # control characters, such as line breaks
    "damaged",  # U+FFFD, or UTF-8 that was read as Windows-1252 or Latin-1
    "spreadsheet",  # what a spreadsheet made of a number or text: 4.00638E+12, 1-Mar, #REF!
    "invisible",  # no-break or zero-width blanks, soft hyphens, marks of direction
    "not_nfc",  # accents as characters of their own, so that equal texts differ
    "number_out_of_range",  # more digits than the platform takes
    "date_out_of_range",  # before 1900 or after 2100
    "date_impossible",  # 0000-00-00, 31 February
]
FINDINGS: tuple[Finding, ...] = get_args(Finding)

_BEFORE, _AFTER = MAX_DIGITS_BEFORE_POINT, MAX_DIGITS_AFTER_POINT
_FIRST_YEAR, _LAST_YEAR = 1900, 2100
_WHOLE = r"^[+-]?[0-9]+$"
_DECIMAL = r"^[+-]?[0-9]*[.,][0-9]+$"
_TOO_LONG = rf"^[+-]?0*[1-9][0-9]{{{_BEFORE},}}(?:[.,]|$)|[.,][0-9]{{{_AFTER}}}[0-9]*[1-9]"
_DAY = r"^([0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4})(?:[ T].*)?$"
_DAY_PARTS = r"^([0-9]+)[-/.]([0-9]+)[-/.]([0-9]+)$"
_CONTROL = r"[\x00-\x1f\x7f-\x9f]"
_INVISIBLE = r"[\u00a0\u00ad\u061c\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"

VALUE, COUNT, PLACE, STRIPPED, CHARACTERS = "value", "count", "place", "stripped", "characters"
"""The columns of a frame with one row for each different value: its text, the number of cells with it, the place of the
first, the text without outer blanks, and the number of characters.
"""
WHOLE, DECIMAL, DAY, ASCII = "whole", "decimal", "day", "ascii"


def with_cell_classes(values: pl.LazyFrame) -> pl.LazyFrame:
    """Add the columns `STRIPPED`, `CHARACTERS`, `WHOLE`, `DECIMAL`, `DAY` and `ASCII`, and some findings."""
    value, stripped = pl.col(VALUE), pl.col(STRIPPED)
    characters = value.str.len_chars().alias(CHARACTERS)
    return values.with_columns(value.str.strip_chars().alias(STRIPPED)).with_columns(
        characters,
        stripped.str.contains(_WHOLE).alias(WHOLE),
        stripped.str.contains(_DECIMAL).alias(DECIMAL),
        stripped.str.extract(_DAY).alias(DAY),
        (value.str.len_bytes() == characters).alias(ASCII),
        (value.str.len_bytes() != stripped.str.len_bytes()).alias("outer_blanks"),
        value.str.contains(_CONTROL).alias("control"),
    )


def rows_by_finding(values: pl.DataFrame) -> dict[Finding, pl.DataFrame]:
    """Return the rows of *values*, which `with_cell_classes` has made, by finding; for dates, one row for each day."""
    numbers = values.filter((pl.col(WHOLE) | pl.col(DECIMAL)) & (pl.col(CHARACTERS) > _AFTER))
    special, days = values.filter(~pl.col(ASCII)), _day_texts_with_parsed_dates(values)
    value, possible = pl.col(VALUE), pl.col("date").is_not_null()
    return {
        "outer_blanks": values.filter("outer_blanks"),
        "control": values.filter("control"),
        "damaged": special.filter(value.str.contains(WRONG_ENCODING_PATTERN)),
        "spreadsheet": values.filter(pl.col(STRIPPED).str.contains(SPREADSHEET_DAMAGE_PATTERN)),
        "invisible": special.filter(value.str.contains(_INVISIBLE)),
        "not_nfc": special.filter(value != value.str.normalize("NFC")),
        "number_out_of_range": numbers.filter(pl.col(STRIPPED).str.contains(_TOO_LONG)),
        "date_out_of_range": days.filter(~pl.col("date").dt.year().is_between(_FIRST_YEAR, _LAST_YEAR)),
        "date_impossible": days.filter(~possible),
    }


def _day_texts_with_parsed_dates(values: pl.DataFrame) -> pl.DataFrame:
    """Return the days in *values*: `VALUE`, `COUNT`, `PLACE`, and ``date``, null if the calendar has no such day.

    A day is ``2027-03-01``, ``01.03.2027`` or with slashes, with or without a time. If day and month could be swapped,
    it is possible if one of the two dates is.
    """
    days = (
        values.filter(pl.col(DAY).is_not_null())
        .group_by(pl.col(DAY).alias(VALUE))
        .agg(pl.col(COUNT).sum(), pl.col(PLACE).min())
    )
    parts = pl.col(VALUE).str.extract_groups(_DAY_PARTS)
    first, second, third = (parts.struct.field(str(number)) for number in (1, 2, 3))
    year_first, year_last = first.str.len_chars() == 4, third.str.len_chars() == 4
    in_order = _date_from_year_month_day(first, second, third)
    turned = pl.coalesce(
        _date_from_year_month_day(third, second, first), _date_from_year_month_day(third, first, second)
    )
    day = pl.when(year_first).then(in_order).when(year_last).then(turned)
    return days.filter(year_first != year_last).with_columns(day.alias("date"))


def _date_from_year_month_day(year: pl.Expr, month: pl.Expr, day: pl.Expr) -> pl.Expr:
    return pl.concat_str([year, month.str.zfill(2), day.str.zfill(2)], separator="-").str.to_date(
        "%Y-%m-%d", strict=False
    )


EXACT = 8192
"""Up to this many different values are counted exactly. The standard error of an estimate is ``1 / sqrt(EXACT)``, 1.1
%.
"""
_ALL = 1 << 64


def _empty_hash_series() -> pl.Series:
    return pl.Series(dtype=pl.UInt64)


class DistinctCount(Struct):
    """The `EXACT` smallest hashes of the values (k minimum values: Bar-Yossef et al., 2002).

    They do not depend on how the values are divided, so the count of parts added up is that of the whole. *smallest* is
    ascending, without repetition.
    """

    smallest: pl.Series = field(default_factory=_empty_hash_series)
    exceeds_exact_limit: bool = False

    @classmethod
    def from_hashes(cls, hashes: pl.Series) -> DistinctCount:
        made = cls()
        made.merge(cls(hashes))
        return made

    def merge(self, other: DistinctCount) -> None:
        both = pl.concat([self.smallest, other.smallest]).unique().sort()
        self.exceeds_exact_limit = self.exceeds_exact_limit or other.exceeds_exact_limit or len(both) > EXACT
        self.smallest = both.head(EXACT)

    @property
    def estimate(self) -> int:
        if not self.exceeds_exact_limit:
            return len(self.smallest)
        return (EXACT - 1) * _ALL // (int(self.smallest[-1]) + 1)


EXAMPLES = 3  # places of each finding
SHOWN = 60
"""The characters of a value that are kept."""
_HASH, _LINE_BITS = "hash", 40


class Cell(Struct, frozen=True):
    """An example. *value* is data of a record, shown only on request and cut after `SHOWN` characters."""

    source: str
    line: int
    value: str


class FindingExamples(Struct):
    cells: int = 0
    examples: list[Cell] = field(default_factory=list)

    def merge(self, other: FindingExamples) -> None:
        self.cells += other.cells
        known = {each.value for each in self.examples}
        self.examples = [*self.examples, *(each for each in other.examples if each.value not in known)][:EXAMPLES]


class ColumnProfile(Struct):
    """The cells of one column in numbers. Parts added up in reading order give the profile of the whole.

    Attributes:
        filled: Cells that hold more than blanks. All other attributes are about them.
        lengths: Number of cells by length; the key is the largest length of a class: 1, 2, 4, 8, 16 and so on.
        smallest: The first value in the order of Unicode, cut after `SHOWN` characters. It is data of a record.
    """

    filled: int = 0
    distinct: DistinctCount = field(default_factory=DistinctCount)
    whole: int = 0
    decimal: int = 0
    dates: int = 0
    lengths: Counter[int] = field(default_factory=Counter)
    shortest: int = 0
    longest: int = 0
    smallest: str = ""
    largest: str = ""
    findings: dict[Finding, FindingExamples] = field(default_factory=dict)

    def merge(self, other: ColumnProfile) -> None:
        self.distinct.merge(other.distinct)
        self.whole += other.whole
        self.decimal += other.decimal
        self.dates += other.dates
        self.lengths.update(other.lengths)
        if other.filled and not self.filled:
            self.shortest, self.longest = other.shortest, other.longest
            self.smallest, self.largest = other.smallest, other.largest
        elif other.filled:
            self.shortest, self.longest = min(self.shortest, other.shortest), max(self.longest, other.longest)
            self.smallest, self.largest = min(self.smallest, other.smallest), max(self.largest, other.largest)
        self.filled += other.filled
        for name, found in other.findings.items():
            self.findings.setdefault(name, FindingExamples()).merge(found)


def profile_columns(rows: pl.DataFrame, places: pl.Series, sources: Sequence[str]) -> dict[str, ColumnProfile]:
    """Return the profile of each text column by name. *places* has the `pack_source_and_line` of each row,
    ascending.
    """
    frames = [_distinct_values_with_counts(rows[name], places) for name in rows.columns]
    return {name: _profile(values, sources) for name, values in zip(rows.columns, pl.collect_all(frames), strict=True)}


def pack_source_and_line(source: int, line: pl.Expr) -> pl.Expr:
    return line.cast(pl.UInt64) + (source << _LINE_BITS)


def _distinct_values_with_counts(column: pl.Series, places: pl.Series) -> pl.LazyFrame:
    rows = pl.LazyFrame({VALUE: column, PLACE: places})
    values = rows.group_by(VALUE).agg(pl.len().alias(COUNT), pl.col(PLACE).min())
    filled = values.filter(pl.col(VALUE).str.contains(r"\S"))
    return with_cell_classes(filled).with_columns(text_hashes(pl.col(VALUE), "xxh3_64").alias(_HASH))


def _profile(values: pl.DataFrame, sources: Sequence[str]) -> ColumnProfile:
    if not values.height:
        return ColumnProfile()
    lengths = values.group_by(CHARACTERS).agg(pl.col(COUNT).sum()).rows()
    classes: Counter[int] = Counter()
    for length, number in lengths:
        classes[1 << (length - 1).bit_length()] += number
    return ColumnProfile(
        filled=_cell_count(values),
        distinct=DistinctCount.from_hashes(values[_HASH]),
        whole=_cell_count(values.filter(WHOLE)),
        decimal=_cell_count(values.filter(DECIMAL)),
        dates=_cell_count(_day_texts_with_parsed_dates(values)),
        lengths=classes,
        shortest=min(length for length, _ in lengths),
        longest=max(length for length, _ in lengths),
        smallest=str(values[VALUE].min())[:SHOWN],
        largest=str(values[VALUE].max())[:SHOWN],
        findings={
            name: _finding_examples(rows, sources) for name, rows in rows_by_finding(values).items() if rows.height
        },
    )


def _cell_count(values: pl.DataFrame) -> int:
    return int(values[COUNT].sum())


def _finding_examples(rows: pl.DataFrame, sources: Sequence[str]) -> FindingExamples:
    shown = rows.select(pl.col(VALUE).str.head(SHOWN), PLACE).group_by(VALUE).agg(pl.col(PLACE).min())
    examples = [
        Cell(sources[at >> _LINE_BITS], at & ((1 << _LINE_BITS) - 1), value)
        for value, at in shown.sort(PLACE, VALUE).head(EXAMPLES).rows()
    ]
    return FindingExamples(_cell_count(rows), examples)


MAX_COLUMNS = 500
"""The most profiled columns of a stream; for JSON records, those that come first."""
_PLACE = internal_column_name("place")
_ROWS, _BYTES = 100_000, 32 << 20  # held until they are profiled together, which many small batches need


class SourceProfile:
    """The reading of one stream. Memory is bounded by some rows and `MAX_COLUMNS` columns.

    *columns* are in the order of the source. A list of JSON records is ``NAME[]``: the number of its elements.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.columns: dict[str, ColumnProfile] = {}
        self.has_more = False
        self._held: list[pl.DataFrame] = []
        self._sources: list[str] = []
        self._bytes = 0

    def add_batch(self, batch: RawBatch, joined: Collection[str] = ()) -> None:
        rows = _without_joined_rows_and_columns(batch.load(), joined)
        if LINE not in rows.columns:  # a defect of a connector, which is reported when the rows are used
            return
        columns = (
            _columns_from_json_records(rows[JSON].to_list()) if JSON in rows.columns else rows.select(pl.col(pl.String))
        )
        kept = [name for name in columns.columns if name in self.columns or self._add_column_if_room(name)]
        columns = columns.select(column_expressions_by_exact_names(kept))
        if not self._sources or self._sources[-1] != batch.source:
            self._sources.append(batch.source)
        self.rows += rows.height
        self._bytes += int(columns.estimated_size())
        self._held.append(
            columns.with_columns(rows.select(pack_source_and_line(len(self._sources) - 1, pl.col(LINE)).alias(_PLACE)))
        )
        if sum(frame.height for frame in self._held) >= _ROWS or self._bytes >= _BYTES:
            self.profile_buffered_rows()

    def profile_buffered_rows(self) -> None:
        if not self._held:
            return
        rows = pl.concat(self._held, how="diagonal")
        found = profile_columns(rows.drop(_PLACE), rows[_PLACE], self._sources)
        for name, profile in found.items():
            self.columns[name].merge(profile)
        self._held, self._sources, self._bytes = [], [], 0

    def _add_column_if_room(self, name: str) -> bool:
        if len(self.columns) == MAX_COLUMNS:
            self.has_more = True
            return False
        self.columns[name] = ColumnProfile()
        return True


def _without_joined_rows_and_columns(rows: pl.DataFrame, joined: Collection[str]) -> pl.DataFrame:
    for name in joined:
        if (problem := f"{name}.problem") in rows.columns:
            rows = rows.filter(pl.col(problem).ne_missing(pl.lit(NO_MAIN_ROW)))
    present = [each for each in rows.columns if each != ELEMENT and not is_internal_column(each)]
    own = [each for each in present if each not in joined and each.partition(".")[0] not in joined]
    return rows.select(column_expressions_by_exact_names(own))


def _columns_from_json_records(texts: Sequence[str | None]) -> pl.DataFrame:
    items = [dict(_flatten(exact_json.loads(text or "null"), "")) for text in texts]
    names = dict.fromkeys(name for item in items for name in item)
    cells = {name: [item.get(name) for item in items] for name in names}
    return pl.DataFrame(cells, schema=dict.fromkeys(names, pl.String), height=len(items))


def _flatten(value: Any, path: str) -> Iterator[tuple[str, str | None]]:
    """Yield the scalar members in *value* by dotted path, and the length of lists."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _flatten(member, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        yield f"{path}[]", str(len(value))
    elif path:
        yield path, json_value_as_column_text(value)
