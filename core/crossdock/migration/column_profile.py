"""The profile of a column of a source: counts and places, in memory that does not depend on the number of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from crossdock.delta.fingerprint import digest
from crossdock.migration import cell_findings as cells
from crossdock.migration.cell_findings import COUNT, PLACE, VALUE, Finding

EXACT = 8192
"""Up to this many different values are counted exactly. The standard error of an estimate is ``1 / sqrt(EXACT)``, 1.1
%.
"""
_ALL = 1 << 64


def _no_hashes() -> pl.Series:
    return pl.Series(dtype=pl.UInt64)


@dataclass(slots=True)
class DistinctCount:
    """The `EXACT` smallest hashes of the values (k minimum values: Bar-Yossef et al., 2002).

    They do not depend on how the values are divided, so the count of parts added up is that of the whole. *smallest* is
    ascending, without repetition.
    """

    smallest: pl.Series = field(default_factory=_no_hashes)
    more: bool = False

    @classmethod
    def of_hashes(cls, hashes: pl.Series) -> DistinctCount:
        made = cls()
        made.add(cls(hashes))
        return made

    def add(self, other: DistinctCount) -> None:
        both = pl.concat([self.smallest, other.smallest]).unique().sort()
        self.more = self.more or other.more or len(both) > EXACT
        self.smallest = both.head(EXACT)

    @property
    def estimate(self) -> int:
        if not self.more:
            return len(self.smallest)
        return (EXACT - 1) * _ALL // (int(self.smallest[-1]) + 1)


EXAMPLES = 3  # places of each finding
SHOWN = 60
"""The characters of a value that are kept."""
_HASH, _LINE_BITS = "hash", 40


@dataclass(frozen=True, slots=True)
class Cell:
    """An example. *value* is data of a record, shown only on request and cut after `SHOWN` characters."""

    source: str
    line: int
    value: str


@dataclass(slots=True)
class FindingExamples:
    cells: int = 0
    examples: list[Cell] = field(default_factory=list)

    def add(self, other: FindingExamples) -> None:
        self.cells += other.cells
        known = {each.value for each in self.examples}
        self.examples = [*self.examples, *(each for each in other.examples if each.value not in known)][:EXAMPLES]


@dataclass(slots=True)
class ColumnProfile:
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

    def add(self, other: ColumnProfile) -> None:
        self.distinct.add(other.distinct)
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
            self.findings.setdefault(name, FindingExamples()).add(found)


def profile_columns(rows: pl.DataFrame, places: pl.Series, sources: Sequence[str]) -> dict[str, ColumnProfile]:
    """Return the profile of each text column by name. *places* has the `packed_place` of each row, ascending."""
    frames = [_distinct_values(rows[name], places) for name in rows.columns]
    return {name: _profile(values, sources) for name, values in zip(rows.columns, pl.collect_all(frames), strict=True)}


def packed_place(source: int, line: pl.Expr) -> pl.Expr:
    return line.cast(pl.UInt64) + (source << _LINE_BITS)


def _distinct_values(column: pl.Series, places: pl.Series) -> pl.LazyFrame:
    rows = pl.LazyFrame({VALUE: column, PLACE: places})
    values = rows.group_by(VALUE).agg(pl.len().alias(COUNT), pl.col(PLACE).min())
    filled = values.filter(pl.col(VALUE).str.contains(r"\S"))
    return cells.with_cell_classes(filled).with_columns(digest(pl.col(VALUE), "xxh3_64").alias(_HASH))


def _profile(values: pl.DataFrame, sources: Sequence[str]) -> ColumnProfile:
    if not values.height:
        return ColumnProfile()
    lengths = values.group_by(cells.CHARACTERS).agg(pl.col(COUNT).sum()).rows()
    classes: Counter[int] = Counter()
    for length, number in lengths:
        classes[1 << (length - 1).bit_length()] += number
    return ColumnProfile(
        filled=_cell_count(values),
        distinct=DistinctCount.of_hashes(values[_HASH]),
        whole=_cell_count(values.filter(cells.WHOLE)),
        decimal=_cell_count(values.filter(cells.DECIMAL)),
        dates=_cell_count(cells.dates(values)),
        lengths=classes,
        shortest=min(length for length, _ in lengths),
        longest=max(length for length, _ in lengths),
        smallest=str(values[VALUE].min())[:SHOWN],
        largest=str(values[VALUE].max())[:SHOWN],
        findings={
            name: _finding_examples(rows, sources) for name, rows in cells.findings(values).items() if rows.height
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
