"""Positions in columns, and times that do not sort as text."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.delta.things import Rows, Things, batch, records, scanned

from crossdock.delta import row_preparation, state_comparison
from crossdock.delta.latest_records import LatestRecords
from crossdock.delta.row_preparation import FP, KEY_HASH, POSITION
from crossdock.delta.sortable_row_positions import sortable_text_of_rows
from crossdock.errors import RecordError, RefusedError
from crossdock.mapping.row_order_columns import OrderBy, position_prefix_from_order_hash
from crossdock.state.sidecar_files.known_fingerprints_by_key import KNOWN_FP, KNOWN_POSITION

INSTANT, NUMBER, TEXT = OrderBy(column="T", as_="instant"), OrderBy(column="N", as_="integer"), OrderBy(column="X")
SUMMER, WINTER = "2026-10-25T02:30:00+02:00", "2026-10-25T02:10:00+01:00"  # the second is 40 minutes later
ZONES = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
WRITTEN = st.one_of(
    st.datetimes(timezones=ZONES).map(datetime.isoformat),
    st.datetimes(timezones=ZONES).map(lambda at: f"{at:%Y-%m-%d %H:%M:%S%z}"),
    st.datetimes(datetime.fromisoformat("1990-01-01")).map(lambda at: f"{at.isoformat()}Z"),
    st.from_regex(
        r"20[0-9]{2}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-6][0-9]:[0-6][0-9]([.,][0-9]{1,10})?Z", fullmatch=True
    ),
)
CELL = WRITTEN | st.none() | st.sampled_from(["", SUMMER, WINTER, "7", "-7", "x"])


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=5))
def test_positions_in_columns_are_those_of_rows(cells: list[tuple[str | None, ...]]) -> None:
    """Null where a cell does not convert."""
    frame = pl.DataFrame(cells, schema=dict.fromkeys("TNX", pl.String), orient="row")
    columns = [INSTANT, NUMBER, TEXT]
    expected: list[str | None] = []
    for row in frame.iter_rows(named=True):
        try:
            expected.append(
                position_prefix_from_order_hash(columns) + "\x1f".join(item.position(row) for item in columns)
            )
        except RecordError:
            expected.append(None)
    assert frame.select(sortable_text_of_rows(columns, frame)).to_series().to_list() == expected


@pytest.mark.parametrize("order", [[SUMMER, WINTER], [WINTER, SUMMER]])
@pytest.mark.parametrize("files", [1, 2])
def test_the_newest_of_two_instants_wins_whatever_their_offsets(order: list[str], files: int, tmp_path: Path) -> None:
    """In one file and in two."""
    rows: Rows = [{"K": "1", "T": text} for text in order]
    batches = [batch(rows)] if files == 1 else [batch([row], f"{number}.csv") for number, row in enumerate(rows)]
    scan, tally = scanned(Things(order_by=(INSTANT,)), batches, tmp_path)
    assert [record.row["T"] for record in records(scan)] == [WINTER]
    assert tally.rows_superseded == 1


def test_a_row_whose_position_is_unknown_wins(tmp_path: Path) -> None:
    """Its record is rejected when it is mapped; were it superseded, nobody would know of it."""
    rows: Rows = [{"K": "1", "T": "x", "V": "bad"}, {"K": "1", "T": SUMMER, "V": "good"}]
    for grouped in ({}, {"group_by": ("K",)}):
        folder = tmp_path / str(len(grouped))
        folder.mkdir()
        batches = [batch([row], f"{number}.csv") for number, row in enumerate(rows)]
        scan, _ = scanned(Things(order_by=(INSTANT,), **grouped), batches, folder)
        (record,) = records(scan)
        assert record.row["V"] == "bad"
        with pytest.raises(RecordError) as refused:
            Things(order_by=(INSTANT,)).draft(record)
        assert (refused.value.code, refused.value.pointer, refused.value.line) == ("bad_value", "T", 2)


@pytest.mark.parametrize(
    ("texts", "refused"),
    [
        pytest.param([SUMMER, WINTER], True, id="two offsets"),
        pytest.param(["2026-01-01T00:00:00Z", "2026-01-01T00:00:00+00:00"], True, id="Z and an offset"),
        pytest.param(["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z"], True, id="with and without fraction"),
        pytest.param(["2026-01-01T00:00:00Z", "2026-01-01 00:00:00Z"], True, id="T and space"),
        pytest.param(["2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"], False, id="one notation"),
        pytest.param(["2026-01-01T00:00:00+01:00", "2026-01-01T00:00:00.5+01:00"], False, id="fraction and offset"),
        pytest.param(["2026-01-01T00:00:00", "2026-01-01T00:00:00.5"], False, id="no offset"),
        pytest.param(["v1", "v2", "", SUMMER], False, id="other text"),
    ],
)
@pytest.mark.parametrize("files", [1, 2])
def test_times_that_do_not_sort_as_text_are_refused(
    texts: list[str], refused: bool, files: int, tmp_path: Path
) -> None:
    """The message has both places and says how to declare instants."""
    rows: Rows = [{"K": str(number), "T": text} for number, text in enumerate(texts)]
    batches = [batch(rows)] if files == 1 else [batch([row], f"{number}.csv") for number, row in enumerate(rows)]
    if not refused:
        scanned(Things(order_by=("T",)), batches, tmp_path)
        return
    with pytest.raises(RefusedError, match=r"column 'T' has times written as 0000-00-00") as error:
        scanned(Things(order_by=("T",)), batches, tmp_path)
    assert "as: instant" in str(error.value)
    assert (error.value.where, "a.csv:2" if files == 1 else "0.csv:2") == (
        "a.csv:3" if files == 1 else "1.csv:2",
        "a.csv:2" if files == 1 else "0.csv:2",
    )
    scanned(Things(order_by=(INSTANT,)), batches, tmp_path)


def _known(scan: LatestRecords, position: str) -> pl.DataFrame:
    known = scan.latest.select(KEY_HASH, (pl.col(FP) + 1).alias(KNOWN_FP))
    return known.with_columns(pl.lit(position).alias(KNOWN_POSITION))


@pytest.mark.parametrize("parts", [2, 500_000])
def test_a_time_with_another_offset_than_the_stored_one_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    """Text of summer and winter time cannot be compared; the records are neither ignored nor delivered."""
    monkeypatch.setattr(row_preparation, "_AT_ONCE", parts)
    scan, _ = scanned(Things(order_by=("T",)), [batch([{"K": str(n), "T": WINTER} for n in range(9)])], tmp_path)
    found = state_comparison.compare(scan.latest, _known(scan, SUMMER), waiting=[], unsettled=[], snapshot=False)
    assert found.mixed_zones.height == 9
    same = state_comparison.compare(scan.latest, _known(scan, WINTER), waiting=[], unsettled=[], snapshot=False)
    assert (same.mixed_zones.height, same.changed.height) == (0, 9)


def test_positions_of_another_declaration_are_not_compared(tmp_path: Path) -> None:
    """After ``as: instant`` is declared, a record is not older than what was stored as text."""
    scan, _ = scanned(Things(order_by=(INSTANT,)), [batch([{"K": "1", "T": WINTER}])], tmp_path)
    for stored in (SUMMER, "~", ""):
        found = state_comparison.compare(scan.latest, _known(scan, stored), waiting=[], unsettled=[], snapshot=False)
        assert (found.changed.height, found.ignored, found.mixed_zones.height) == (1, 0, 0)
    newer = position_prefix_from_order_hash([INSTANT]) + INSTANT.position({"T": "2027-01-01T00:00:00Z"})
    assert (
        state_comparison.compare(scan.latest, _known(scan, newer), waiting=[], unsettled=[], snapshot=False).ignored
        == 1
    )
    assert scan.latest[POSITION].to_list() == [
        position_prefix_from_order_hash([INSTANT]) + "2026-10-25T01:10:00.000000000Z"
    ]
