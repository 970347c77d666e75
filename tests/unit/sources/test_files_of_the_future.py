"""Files whose times or names are in the future: after them, each later file would count as older."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sources.test_file_wait import LOTS, Bench

from crossdock.errors import RefusedError
from crossdock.reading.sources.file_order import NameOrder
from crossdock.sources import StreamId
from crossdock.testing.manual_clock import ManualClock

YEAR = timedelta(days=365)
NOW = datetime.now(UTC).replace(hour=2, minute=0) + timedelta(days=1)  # the machine's clock counts where it is ahead
BY_NAME = 'order: {name: "LOT_{date:%Y%m%d}"}'
DATED = NameOrder(name="LOT_{date:%Y%m%d}")
TAKEN = "out/LOT_20260103: counts as older than 'LOT_20260102' taken in before, but its time of change is in the future"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    made.clock.advance((NOW - made.clock.now()).total_seconds())
    return made


def put(bench: Bench, name: str, *, ahead: timedelta = timedelta(), sku: str = "P1") -> None:
    bench.depot.put(name, f"SKU\n{sku}\n".encode(), age_s=60 - int(ahead.total_seconds()))


def read_while_our_clock_is_ahead(bench: Bench, name: str, **more: Any) -> None:
    """Take in a file whose time is a year ahead, as versions without this check did."""
    put(bench, name, ahead=YEAR)
    bench.clock = ManualClock(NOW + YEAR)
    assert bench.read(bench.source(**more)) == [name]
    bench.clock = ManualClock(NOW)


def refusal(bench: Bench, stream_id: StreamId = LOTS, **more: Any) -> RefusedError:
    with pytest.raises(RefusedError) as refused:
        bench.read(bench.source(**more), stream_id)
    assert refused.value.code == "file_order_unclear"
    return refused.value


@pytest.mark.parametrize("order", [None, "modified"])
@pytest.mark.parametrize("snapshot", [False, True])
def test_a_file_of_the_future_is_not_taken_in(bench: Bench, order: Any, *, snapshot: bool) -> None:
    """The error has its time and the present, and what it advises helps: another time, or the order of the names."""
    put(bench, "LOT_20260102", ahead=YEAR)
    told = refusal(bench, snapshot=snapshot, order=order)
    assert told.where == ("out/LOT_20260102" if snapshot else "LOT_20260102")
    written = NOW + YEAR - timedelta(minutes=1)
    assert told.message == (
        f"its time of change is in the future: {written:%Y-%m-%d %H:%MZ}; now it is {NOW:%Y-%m-%d %H:%MZ}"
    )
    assert BY_NAME in str(told.hint)
    assert "touch" in str(told.hint)
    put(bench, "LOT_20260103", sku="P2")
    assert refusal(bench, snapshot=snapshot, order=order).message == told.message, "also beside a later file"
    both = ["LOT_20260102", "LOT_20260103"]
    assert bench.read(bench.source(snapshot=snapshot, order=DATED), finish=False) == both[snapshot:]
    bench.intake.rows.clear()
    put(bench, "LOT_20260102", ahead=-timedelta(hours=1))
    assert bench.read(bench.source(snapshot=snapshot, order=order)) == both[snapshot:]


def test_another_time_zone_is_no_future(bench: Bench) -> None:
    """A local time that was taken for UTC, and a clock that is wrong by hours, are read as ever."""
    put(bench, "LOT_20260102", ahead=timedelta(hours=26))
    assert bench.read(bench.source()) == ["LOT_20260102"]


def test_where_times_decide_nothing_they_may_be_in_the_future(bench: Bench) -> None:
    """No record is in two files, or the rows say which is the newest."""
    put(bench, "LOT_1", ahead=YEAR)
    assert bench.read(bench.source(order="any"), finish=False) == ["LOT_1"]
    bench.intake.rows.clear()
    assert bench.read(bench.source(ordered_by_rows=[LOTS])) == ["LOT_1"]


@pytest.mark.parametrize("order", [None, "modified"])
@pytest.mark.parametrize("snapshot", [False, True])
def test_a_file_of_the_future_that_was_taken_in_is_named_with_the_way_out(
    bench: Bench, order: Any, *, snapshot: bool
) -> None:
    """A fresh file of the sender, or one with the rows once more, would be refused too; the order of names helps."""
    read_while_our_clock_is_ahead(bench, "LOT_20260102", snapshot=snapshot, order=order)
    if snapshot:
        assert "its time of change is in the future" in refusal(bench, snapshot=True, order=order).message
    else:
        assert bench.read(bench.source(order=order)) == [], "without a later file, nothing is older than it"
    del bench.depot.files["LOT_20260102"]
    put(bench, "LOT_20260103", sku="P2")
    told = refusal(bench, snapshot=snapshot, order=order)
    assert f"out/{told.where}: {told.message}".startswith(TAKEN)
    assert BY_NAME in str(told.hint)
    assert "sender" not in str(told.hint)
    assert bench.read(bench.source(snapshot=snapshot, order=DATED)) == ["LOT_20260103"]


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_file_that_replaces_one_of_the_future_is_newer(bench: Bench, *, snapshot: bool) -> None:
    """Its name has nothing to order by, and it is there in place of the other."""
    read_while_our_clock_is_ahead(bench, "LOT_", snapshot=snapshot)
    put(bench, "LOT_", sku="P2")
    assert bench.read(bench.source(snapshot=snapshot)) == ["LOT_"]


def test_a_simulated_clock_of_the_past_reads_files_of_today(bench: Bench) -> None:
    """Tests of connectors have one, and write their files with the times of the machine."""
    bench.clock = ManualClock(NOW - 3 * YEAR)
    put(bench, "LOT_20260102", ahead=-timedelta(days=1))
    assert bench.read(bench.source()) == ["LOT_20260102"]


def test_names_without_a_date_are_told_to_need_one(bench: Bench) -> None:
    """An order of such names would be a guess."""
    put(bench, "LOT_7f3a", ahead=YEAR)
    assert "order files by their names: ask the sender for names with a date" in str(refusal(bench).hint)


def test_a_kept_snapshot_of_the_future_hides_no_fresh_one(bench: Bench) -> None:
    """A look-up keeps its newest file, which would be read in place of each later one without a word."""
    kept: dict[str, Any] = {"snapshot": True, "kept": timedelta()}
    read_while_our_clock_is_ahead(bench, "LOT_20260102", **kept)
    del bench.depot.files["LOT_20260102"]
    put(bench, "LOT_20260103", sku="P2")
    told = refusal(bench, **kept)
    assert f"out/{told.where}: {told.message}".startswith(TAKEN)
    assert bench.read(bench.source(**kept, order=DATED)) == ["LOT_20260103"]


def test_parts_of_a_snapshot_of_the_future_are_refused(bench: Bench) -> None:
    """Those of a day belong together, and names or times say which are the newest."""
    for part in (1, 2):
        put(bench, f"LOT_20260102_{part}", ahead=YEAR, sku=f"P{part}")
    told = refusal(bench, snapshot=True, parts=True)
    assert (told.where, "its time of change is in the future" in told.message) == ("out/LOT_20260102_1", True)
    order = NameOrder(name="LOT_{date:%Y%m%d}_{number}")
    assert bench.read(bench.source(snapshot=True, parts=True, order=order)) == ["LOT_20260102_1", "LOT_20260102_2"]
    put(bench, "LOT_20991231_1", sku="P3", ahead=-YEAR)
    told = refusal(bench, snapshot=True, parts=True, order=order)
    assert (told.where, "its date in the name is in the future" in told.message) == ("out/LOT_20991231_1", True)


@pytest.mark.parametrize(
    ("day", "is_refused"),
    [(NOW + 80 * YEAR, True), (NOW + timedelta(days=402), True), (NOW + timedelta(days=398), False)],
)
@pytest.mark.parametrize("snapshot", [False, True])
def test_a_name_may_have_a_day_of_the_next_year(
    bench: Bench, day: datetime, *, is_refused: bool, snapshot: bool
) -> None:
    """Prices may be valid from then on; after a name of a far future, no other file would be read."""
    name = f"LOT_{day:%Y%m%d}"
    put(bench, name)
    if not is_refused:
        assert bench.read(bench.source(snapshot=snapshot, order=DATED)) == [name]
        return
    told = refusal(bench, snapshot=snapshot, order=DATED)
    assert "its date in the name is in the future: 2" in told.message
    assert "correct its name" in str(told.hint)
    assert bench.read(bench.source(snapshot=snapshot, order="modified")) == [name]


def test_a_name_of_the_future_that_was_taken_in_is_named_with_the_way_out(bench: Bench) -> None:
    """The times then say what the names do not."""
    put(bench, "LOT_20991231")
    bench.clock = ManualClock(datetime(2099, 12, 31, tzinfo=UTC))
    assert bench.read(bench.source(order=DATED)) == ["LOT_20991231"]
    bench.clock = ManualClock(NOW)
    put(bench, "LOT_20260103", sku="P2")
    told = refusal(bench, order=DATED)
    assert "'LOT_20991231' taken in before, but its date in the name is in the future: 2099-12-31" in told.message
    assert "declare order: modified" in str(told.hint)
