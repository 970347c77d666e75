"""What is wrong with a joined record."""

from __future__ import annotations

from typing import get_args

import pytest

from crossdock.errors import RecordError
from crossdock.mapping.lookup_and_join_settings import (
    _PROBLEMS,
    Join,
    Lookup,
    count_missing_and_older_rows,
    joined_row_place,
    missing_lookup_row_filter,
    raise_if_lookup_or_join_failed,
)
from crossdock.reading.sources.file_lookups_and_joins import PROBLEMS, Problem
from crossdock.values.raw_rows_and_records import REASONS, Record

LOOKUPS = {"store": Lookup(source="stores", on={"STORE": "ID"})}
JOINS = {"lines": Join(source="lines", on=("NO",))}


def record(**changes: str | None) -> Record:
    row = {
        "NO": "1",
        "STORE": "S1",
        "store": "found",
        "lines": '[{"QTY":"1"}]',
        "lines.at": "l.csv:2",
        "lines.problem": None,
    }
    return Record("1", (row | changes,), "h.csv", (2,))


def test_a_complete_record_passes() -> None:
    """Also one that names no row of a look-up."""
    raise_if_lookup_or_join_failed(record(), LOOKUPS, JOINS)
    raise_if_lookup_or_join_failed(record(store=None, STORE=""), LOOKUPS, JOINS)
    assert record().joined("lines") == ({"QTY": "1"},)
    assert record(lines=None).joined("lines") == ()


def test_every_problem_has_a_reason() -> None:
    """Of the closed list."""
    assert set(_PROBLEMS) == set(PROBLEMS) == set(get_args(Problem))
    assert {reason for reason, _ in _PROBLEMS.values()} <= REASONS


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        ({"lines": None}, "unmatched", "has no row in source 'lines'"),
        ({"store": "missing"}, "unmatched", "source 'stores' has no row for STORE"),
        ({"lines.problem": "no_main_row"}, "unmatched", "the record itself is missing (l.csv:2)"),
        ({"lines.problem": "several_files"}, "rows_disagree", "set key to tell repeated rows"),
    ],
)
def test_an_incomplete_record_is_rejected(changes: dict[str, str | None], reason: str, message: str) -> None:
    """Without any cell in the message."""
    with pytest.raises(RecordError) as refused:
        raise_if_lookup_or_join_failed(record(**changes), LOOKUPS, JOINS)
    assert refused.value.code == reason
    assert message in refused.value.message


def test_each_row_of_a_record_is_looked_up() -> None:
    """A row of a group that names a missing row rejects its record at its line, or is counted if that is optional."""
    whole = record()
    grouped = Record("1", (*whole.rows, whole.row | {"store": "missing"}), "h.csv", (2, 3))
    with pytest.raises(RecordError, match="has no row for STORE") as refused:
        raise_if_lookup_or_join_failed(grouped, LOOKUPS, {})
    assert refused.value.line == 3
    lookups = {"store": LOOKUPS["store"].model_copy(update={"optional": True})}
    raise_if_lookup_or_join_failed(grouped, lookups, {})
    count_missing_and_older_rows(grouped, lookups, {})
    assert grouped.parts == {"record without a row of store": 1}


def test_rows_that_only_an_older_file_has_are_counted() -> None:
    """They stay, since files may bring the lines of a record in parts: a line that was removed looks the same."""
    for places, parts in (
        ("l.csv:2", {}),
        ("l.csv:2\nl.csv:3", {}),
        ("l.csv:2\nm.csv:2", {"record with rows of lines in several files": 1}),
    ):
        joined = record(**{"lines.at": places})
        count_missing_and_older_rows(joined, {}, JOINS)
        assert joined.parts == parts


def test_what_is_optional_and_missing_is_counted() -> None:
    """A look-up file that lacks half of its rows empties members, and the report is where that shows."""
    incomplete = record(store="missing", lines=None, **{"lines.at": None})
    count_missing_and_older_rows(incomplete, LOOKUPS, JOINS)
    assert incomplete.parts == {"record without a row of store": 1, "record without a row of lines": 1}
    complete = record()
    count_missing_and_older_rows(complete, LOOKUPS, JOINS)
    assert not complete.parts


def test_what_is_optional_may_be_missing() -> None:
    """A join without rows is an empty list."""
    joins = {"lines": Join(source="lines", on=("NO",), optional=True)}
    lookups = {"store": Lookup(source="stores", on=("STORE",), optional=True)}
    raise_if_lookup_or_join_failed(record(lines=None, store="missing"), lookups, joins)


def test_places_of_many_rows_are_counted() -> None:
    """Three are shown."""
    places = "\n".join(f"l.csv:{number}" for number in range(2, 8))
    with pytest.raises(RecordError, match=r"\(l.csv:2, l.csv:3, l.csv:4 and 3 more\)"):
        raise_if_lookup_or_join_failed(record(**{"lines.at": places, "lines.problem": "contradiction"}), LOOKUPS, JOINS)
    assert joined_row_place(record(**{"lines.at": places}), "lines", 5) == "l.csv:7"


@pytest.mark.parametrize("within", ["0h", "7", "30s", "91d", "9999d", "d"])
def test_how_long_files_are_kept_is_bounded(within: str) -> None:
    """1h to 90d."""
    with pytest.raises(ValueError, match="must be a duration such as 12h or 7d, at most 90d"):
        Join(source="lines", on=("NO",), within=within)


def test_a_column_is_unread_if_any_look_up_that_it_needs_has_no_row() -> None:
    """Of look-ups in a chain, the later ones are asked for nothing then; an optional one may have no row."""
    lookups = {
        "store": LOOKUPS["store"],
        "region": Lookup(source="regions", on={"store.REGION": "ID"}, optional=True),
        "carrier": Lookup(source="carriers", on=("CARRIER",)),
    }
    for column in ("store.CUR", "region.NAME"):
        found = missing_lookup_row_filter(column, lookups)
        assert found is not None
        meets = found.predicate()
        assert [meets({"store": each}) for each in ("missing", "found")] == [True, False]
    assert missing_lookup_row_filter("STORE", lookups) is None
