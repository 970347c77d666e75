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
from crossdock.delta.row_preparation import FP, KEY_HASH, POSITION, sortable_text_of_rows
from crossdock.errors import RecordError, RefusedError
from crossdock.mapping.row_order_and_cursors import OrderBy, position_prefix_from_order_hash
from crossdock.mapping.stream_declaration import Repair
from crossdock.state.sidecar_files.key_index_files import KNOWN_FP, KNOWN_POSITION

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


@pytest.mark.parametrize(
    "text",
    [
        "30.11.2026",
        "11/30/2026 8:26",
        "30-NOV-26",
        "Nov 30 2026  4:00PM",
        "Mon, 30 Nov 2026 20:16:55 +0000",
        "2026-9-1",
        "2026-11-30 9:05",
        "2026-11-30 09:05 PM",
    ],
)
def test_a_time_whose_text_does_not_sort_is_refused(text: str, tmp_path: Path) -> None:
    """01.12.2026 would be older than 30.11.2026, and what was changed in December would be ignored."""
    rows: Rows = [{"K": "1", "T": ""}, {"K": "2", "T": text}]
    with pytest.raises(RefusedError, match="column 'T' has a time that does not sort as text") as error:
        scanned(Things(order_by=("T",)), [batch(rows)], tmp_path)
    assert (error.value.where, "as: instant" in str(error.value)) == ("a.csv:3", True)


@pytest.mark.parametrize(
    ("texts", "refused"),
    [
        (["9", "10"], True),
        (["9.5", "10.25"], True),
        (["9", "10.0"], True),
        (["0", "9", "8", ""], False),
        (["0.5", "9.25", "8.125", "7"], False),
        (["R9", "A10", "r11", "R8.5"], False),
        (["20261130", "20261201", "20261130-2"], False),
        (["2026-11-30", "2026-12-01", "2026.11.30", "2026-11-30 09:05", "12-2026", "Marble 9", "12:05"], False),
    ],
)
def test_numbers_that_do_not_sort_as_text_are_refused(texts: list[str], refused: bool, tmp_path: Path) -> None:
    """10 would be older than 9, so that the tenth revision of a record would be ignored."""
    batches = [batch([{"K": str(n), "T": text}], f"{n}.csv") for n, text in enumerate(texts)]
    if not refused:
        scanned(Things(order_by=("T",)), batches, tmp_path)
        return
    with pytest.raises(RefusedError, match="numbers written as 00 and, at 0.csv:2, as 0") as error:
        scanned(Things(order_by=("T",)), batches, tmp_path)
    assert (error.value.where, "as: integer" in str(error.value)) == ("1.csv:2", True)


@pytest.mark.parametrize("prefix", ["R", "Nr."])
def test_numbers_behind_letters_are_compared_with_their_like(prefix: str, tmp_path: Path) -> None:
    """The tenth revision R10 would be older than R9; without their letters, they are numbers."""
    rows = [batch([{"K": "1", "T": text}], f"{n}.csv") for n, text in enumerate([f"{prefix}9", f"{prefix}10"])]
    with pytest.raises(RefusedError, match=f"numbers written as {prefix}00 and, at 0.csv:2, as {prefix}0") as error:
        scanned(Things(order_by=("T",)), rows, tmp_path)
    assert "strip_prefix" in str(error.value)
    by_number = Things(order_by=(OrderBy(column="T", as_="integer"),), columns={"T": Repair(strip_prefix=prefix)})
    scan, _ = scanned(by_number, rows, tmp_path)
    assert [record.row["T"] for record in records(scan)] == ["10"]


def test_a_number_of_another_length_than_the_stored_one_is_found(tmp_path: Path) -> None:
    """Alone in its file, too; the record is neither ignored nor delivered."""
    for text, differing, others in (
        ("10", ["9\x1fx", "9.5\x1fx"], ["09\x1fx", "99\x1fx", "", "v9\x1fx"]),
        ("v10", ["v9\x1fx", "v9"], ["v09\x1fx", "9\x1fx", "w9", "v", "v9-1"]),
    ):
        scan, _ = scanned(Things(order_by=("T", "V")), [batch([{"K": "1", "T": text, "V": "x"}])], tmp_path)
        for stored in (*differing, *others):
            known = _known(scan, stored)
            found = state_comparison.compare_latest_records_with_state(
                scan.latest, known, waiting=[], unsettled=[], snapshot=False
            )
            assert found.incomparable.height == (stored in differing), stored


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
    found = state_comparison.compare_latest_records_with_state(
        scan.latest, _known(scan, SUMMER), waiting=[], unsettled=[], snapshot=False
    )
    assert found.incomparable.height == 9
    same = state_comparison.compare_latest_records_with_state(
        scan.latest, _known(scan, WINTER), waiting=[], unsettled=[], snapshot=False
    )
    assert (same.incomparable.height, same.changed.height) == (0, 9)


def test_positions_of_another_declaration_are_not_compared(tmp_path: Path) -> None:
    """After ``as: instant`` is declared, a record is not older than what was stored as text."""
    scan, _ = scanned(Things(order_by=(INSTANT,)), [batch([{"K": "1", "T": WINTER}])], tmp_path)
    for stored in (SUMMER, "~", ""):
        found = state_comparison.compare_latest_records_with_state(
            scan.latest, _known(scan, stored), waiting=[], unsettled=[], snapshot=False
        )
        assert (found.changed.height, found.ignored, found.incomparable.height) == (1, 0, 0)
    newer = position_prefix_from_order_hash([INSTANT]) + INSTANT.position({"T": "2027-01-01T00:00:00Z"})
    assert (
        state_comparison.compare_latest_records_with_state(
            scan.latest, _known(scan, newer), waiting=[], unsettled=[], snapshot=False
        ).ignored
        == 1
    )
    assert scan.latest[POSITION].to_list() == [
        position_prefix_from_order_hash([INSTANT]) + "2026-10-25T01:10:00.000000000Z"
    ]
