"""Look-ups and joins of a declared stream, and errors in joined records."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field

from crossdock.errors import RecordError
from crossdock.mapping.stream_declaration import Filter
from crossdock.values.config_base_types import ConfigModel, duration_schema, is_duration, parse_duration
from crossdock.values.raw_rows_and_records import Reason, Record

MAX_SHOWN = 3  # places of rows in a message
MAX_WITHIN = timedelta(days=90)

NO_MAIN_ROW = "no_main_row"
"""The problem of a row that represents joined rows without a row of the main source."""
_PROBLEMS: Mapping[str, tuple[Reason, str]] = {
    NO_MAIN_ROW: ("unmatched", "has rows, but the record itself is missing"),
    "several_files": (
        "rows_disagree", "has rows in several files; set key to tell repeated rows from additional ones",
    ),
    "contradiction": ("rows_disagree", "has two different rows with the same key in one file"),
    "empty_key": ("rows_disagree", "has a row with an empty key"),
}  # fmt: skip


def _check_duration_of_within(value: str) -> str:
    if not is_duration(value, "hd") or parse_duration(value) > MAX_WITHIN:
        raise ValueError(f"must be a duration such as 12h or 7d, at most {MAX_WITHIN.days}d")
    return value


class Lookup(ConfigModel):
    """Columns of the one row of another source that has the same text in its columns ``on``."""

    source: str
    """A source of the connection; its newest file is used."""
    on: Annotated[tuple[str, ...], Field(min_length=1)] | Annotated[Mapping[str, str], Field(min_length=1)]
    """Columns that have the same text in both; or columns of the stream, each with a column of the source. Those of a
    join are the columns of the stream's ``key``."""
    optional: bool = False
    """Whether records are accepted that name a row which does not exist; otherwise they are rejected."""

    @property
    def columns(self) -> dict[str, str]:
        """Map the columns of the stream to those of the source."""
        return dict(self.on) if isinstance(self.on, Mapping) else {name: name for name in self.on}


class Join(Lookup):
    """The rows of another source that belong to a record, such as the lines of an order."""

    source: str
    """A source of the connection."""
    key: tuple[str, ...] = ()
    """What identifies a row within its record. Of rows with the same key, the one of the newest file counts."""
    optional: bool = False
    """Whether records without rows are accepted; otherwise they are rejected."""
    within: Annotated[str, AfterValidator(_check_duration_of_within), duration_schema("hd")] = "7d"
    """How much earlier or later than their record rows may arrive, up to 90d. Copies of the files are kept for up to
    twice as long."""

    @property
    def kept_for(self) -> timedelta:
        """How long a record may be completed after its own arrival."""
        return parse_duration(self.within)


def main_row_missing_filter(joins: Mapping[str, Join]) -> Filter | None:
    """Return the filter for rows that represent joined rows without a row of the main source; None without joins."""
    rows = [Filter(field=f"{name}.problem", equals=NO_MAIN_ROW) for name in joins]
    return Filter(any=tuple(rows)) if rows else None


def missing_lookup_row_filter(column: str, lookups: Mapping[str, Lookup]) -> Filter | None:
    """Return the filter for rows that lack *column* because a required look-up found no row, it or one before it."""
    needed, rows = {column}, list[Filter]()
    for name, lookup in reversed([*lookups.items()]):  # a later one may use the columns of an earlier one
        if any(each.startswith(f"{name}.") for each in needed):
            needed |= lookup.columns.keys()
            rows += [] if lookup.optional else [Filter(field=name, equals="missing")]
    return Filter(any=tuple(rows)) if rows else None


def raise_if_lookup_or_join_failed(record: Record, lookups: Mapping[str, Lookup], joins: Mapping[str, Join]) -> None:
    """Raise RecordError, ``unmatched`` or ``rows_disagree``, if a look-up of a row or the join of *record* failed."""
    row = record.row  # the only one of a record with joins
    for name in joins:
        if problem := row[f"{name}.problem"]:
            reason, message = _PROBLEMS[problem]
            raise RecordError(reason, f"{message} ({_places_text(row[f'{name}.at'])})", pointer=name)
    for name, join in joins.items():
        if row[name] is None and not join.optional:
            raise RecordError("unmatched", f"has no row in source {join.source!r}", pointer=name)
    for name, lookup in lookups.items():
        for each, line in zip(record.rows, record.lines, strict=True):
            if each[name] == "missing" and not lookup.optional:
                message = f"source {lookup.source!r} has no row for {', '.join(lookup.columns)}"
                raise RecordError("unmatched", message, pointer=name).at(line)


def count_missing_and_older_rows(record: Record, lookups: Mapping[str, Lookup], joins: Mapping[str, Join]) -> None:
    """Count what a look-up or join that may lack rows has not found, and a record with joined rows of older files.

    These stay, also if they were meant to go.
    """
    row = record.row
    missing = [name for name in lookups if any(each[name] == "missing" for each in record.rows)]
    for name in [*missing, *(name for name in joins if row[name] is None)]:
        record.count(f"record without a row of {name}")
    for name in joins:
        places = (row[f"{name}.at"] or "").split("\n")
        if len({place.rpartition(":")[0] for place in places}) > 1:
            record.count(f"record with rows of {name} in several files")


def joined_row_place(record: Record, name: str, number: int) -> str:
    """Return ``FILE:LINE`` of the *number*-th row of join *name*, counted from 0."""
    return (record.row[f"{name}.at"] or "").split("\n")[number]


def _places_text(places: str | None) -> str:
    listed = (places or "").split("\n")
    more = f" and {len(listed) - MAX_SHOWN:,} more" if len(listed) > MAX_SHOWN else ""
    return ", ".join(listed[:MAX_SHOWN]) + more
