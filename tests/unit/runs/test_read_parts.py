"""Reading in parts that end at checkpoints."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.errors import RefusedError
from crossdock.mapping.row_order_and_cursors import Checkpoint, Cursor, format_iso_instant_cursor, format_stored_instant
from crossdock.runs import parts_between_checkpoints
from crossdock.runs.parts_between_checkpoints import CheckpointedReading, UnsortedError
from crossdock.testing.manual_clock import ManualClock
from crossdock.values import exact_json
from crossdock.values.raw_rows_and_records import RawBatch

NOW = datetime(2026, 3, 1, 13, tzinfo=UTC)
CURSOR = Cursor(column="change.at", as_="instant")
ZERO, TIME = "0000-00-00 00:00:00", "2026-03-01T11:00:01Z"
EARLY, LATE = Checkpoint("2026-02-28T00:00:00Z"), Checkpoint("2026-03-01T00:00:00Z")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_between_checkpoints, "PART_ROWS", 3)


def page(number: int, *seconds: int | None) -> RawBatch:
    items = [
        {"id": f"{number}-{place}", "change": {"at": None if second is None else f"2026-03-01T12:00:{second:02}+01:00"}}
        for place, second in enumerate(seconds)
    ]
    return RawBatch.json(items, source=f"page {number}", key=["id"])


def parts(
    items: Iterable[RawBatch | Checkpoint], declared: Cursor | None = None, *, whole: bool = False
) -> CheckpointedReading:
    def pull() -> Generator[RawBatch | Checkpoint, None, None]:
        yield from items

    return CheckpointedReading(pull(), declared, ManualClock(NOW), whole=whole)


def read(found: CheckpointedReading) -> list[tuple[list[str], str | None]]:
    """The pages of each part, and the cursor after it."""
    seen = []
    while not found.ended:
        seen.append(([batch.source for batch in found.batches_of_next_part()], found.cursor))
    return seen


def test_a_part_ends_at_a_checkpoint() -> None:
    """At the first one after enough rows."""
    items: list[RawBatch | Checkpoint] = [
        page(1, 0, 0),
        Checkpoint("a"),
        page(2, 0, 0),
        Checkpoint("b"),
        page(3, 0),
        Checkpoint("c"),
        page(4, 0),
    ]
    assert read(parts(items)) == [(["page 1", "page 2"], "b"), (["page 3", "page 4"], "c")]
    assert read(parts(items, whole=True)) == [(["page 1", "page 2", "page 3", "page 4"], "c")]


def test_no_part_ends_among_rows_that_are_read_again() -> None:
    """The first part reaches as far as the earlier run: otherwise a record's replaced version would be sent again."""
    declared = Cursor(column="seq", as_="integer", overlap=8)
    assert (declared.pull_since("10"), CURSOR.reread_to("2026-03-01T12:00:00.000000000Z")) == ("2", "")
    numbers = [(2, 3, 4), (5, 6, 7), (8, 9, 10), (11, 12, 13), (14, 15, 16)]
    pages = (RawBatch.json([{"id": each, "seq": each} for each in page], source=str(page[0])) for page in numbers)
    found = CheckpointedReading(pages, declared, ManualClock(NOW), whole=False, reread_to=declared.reread_to("10"))
    assert read(found) == [(["2", "5", "8"], "10"), (["11"], "13"), (["14"], "16"), ([], "16")]


@pytest.mark.parametrize(
    ("items", "cursor"),
    [
        ([Checkpoint("2026-03-01T13:00:00Z")], None),
        ([page(1), Checkpoint("2026-02-22T13:00:01Z")], None),
        ([page(1), Checkpoint("2026-02-22T13:00:00Z")], "2026-02-22T13:00:00Z"),
        ([page(1), Checkpoint("7")], "7"),
        ([page(1, 0), EARLY, page(2)], EARLY.cursor),
        ([page(1, 0), EARLY, page(2), LATE], EARLY.cursor),
        ([page(1), EARLY, page(2, 0), LATE], LATE.cursor),
        ([RawBatch.json([], source="page", deleted=["1"]), LATE], LATE.cursor),
    ],
)
def test_a_time_before_which_nothing_was_listed_is_read_again(
    items: list[RawBatch | Checkpoint], cursor: str | None
) -> None:
    """For seven days: the source may be out of order; other cursors, such as numbers, are taken as they are."""
    found = parts(items, whole=True)
    read(found)
    assert found.cursor == cursor


def test_a_sorted_source_has_a_checkpoint_after_each_page() -> None:
    """The overlap before the value of its last row; equal values and rows without one are passed by."""
    found = read(parts([page(1, 1, 1, 2), page(2), page(3, 2, None, 5), page(4, 5)], CURSOR))
    assert found == [
        (["page 1"], "2026-03-01T10:50:02.000000000Z"),
        (["page 2", "page 3"], "2026-03-01T10:50:05.000000000Z"),
        (["page 4"], "2026-03-01T10:50:05.000000000Z"),
    ]


def cursors_after_pages(*minutes: int, page_takes: int = 0) -> list[str]:
    """The cursor after each page, whose records have a time so many minutes after `NOW`, and at the end of the list."""
    clock = ManualClock(NOW)

    def pull() -> Generator[RawBatch | Checkpoint, None, None]:
        for number, minute in enumerate(minutes):
            clock.advance(page_takes * 60)
            at = (NOW + timedelta(minutes=minute)).isoformat()
            yield RawBatch.json([{"id": f"{number}-{each}", "at": at} for each in range(3)], source="page", key=["id"])

    found = CheckpointedReading(pull(), Cursor(column="at", as_="instant"), clock, whole=False)
    return [f"{cursor}"[5:16] for _, cursor in read(found)]


def test_young_values_are_read_again() -> None:
    """So are those of ten minutes before the first page that may lack a record which the source shows late."""
    assert cursors_after_pages(-60, -30, -5, -3) == [
        f"03-01T{at}" for at in ("11:50", "12:20", "12:45", "12:47", "12:47")
    ]
    assert cursors_after_pages(-8, 4, page_takes=5) == ["03-01T12:42", "03-01T12:49", "03-01T12:49"]
    assert cursors_after_pages(-3, -2, 57, page_takes=60) == ["03-01T12:47"] * 4
    assert cursors_after_pages(8, 68, page_takes=60) == ["03-01T12:50"] * 3


def test_values_hours_behind_the_clock_are_read_again() -> None:
    """So are local times that an API writes as UTC: the latest page shows how far they lie behind at most."""
    assert cursors_after_pages(-300, -240, -180, page_takes=60) == ["03-01T07:50"] * 4


YEARS = 73 * 365 * 24 * 60


@pytest.mark.parametrize(
    ("pages", "cursors"),
    [
        ([(-300, YEARS)], ["07:50", "07:50"]),
        ([(-300,), (-240, YEARS), (YEARS,)], ["07:50", "08:50", "08:50", "08:50"]),
        ([(-300, 60)], ["07:50", "07:50"]),
        ([(YEARS,)], ["10:50", "10:50"]),
    ],
)
def test_a_time_in_the_future_does_not_tell_how_far_the_clock_is_behind(
    pages: list[tuple[int, ...]], cursors: list[str]
) -> None:
    """The next run begins as without that record; if there is no other, as far back as any time zone may be."""

    def pull() -> Generator[RawBatch | Checkpoint, None, None]:
        for number, minutes in enumerate(pages):
            items = [{"id": f"{number}-{at}", "at": (NOW + timedelta(minutes=at)).isoformat()} for at in minutes]
            yield RawBatch.json([items[0], items[0], *items], source="page", key=["id"])

    found = CheckpointedReading(pull(), Cursor(column="at", as_="instant"), ManualClock(NOW), whole=False)
    assert [f"{cursor}"[11:16] for _, cursor in read(found)] == cursors
    assert found.future == "the cursor 'at' has dates in the future; the next run begins before them"
    unsorted = CheckpointedReading(
        pull(), Cursor(column="at", as_="instant", sorted=False), ManualClock(NOW), whole=False
    )
    read(unsorted)
    assert format_stored_instant(unsorted.late.missing_from(unsorted.reading_start_time))[11:16] == cursors[-1]
    assert unsorted.future == found.future


def test_a_clock_that_is_ahead_by_less_than_the_overlap_is_not_in_the_future() -> None:
    """A declared overlap counts for clocks that differ more."""
    rows = RawBatch.json([{"id": "1", "at": "2026-03-01T14:00:00Z"}], source="page", key=["id"])
    found = parts([rows], Cursor(column="at", as_="instant", overlap_s=3_600))
    assert read(found) == [(["page"], "2026-03-01T12:00:00.000000000Z")]
    assert not found.future


def test_only_the_end_of_an_old_list_is_read_again() -> None:
    """A load that is stopped continues where it was: in no time zone can the source still show such a record late."""
    day = 24 * 60
    assert cursors_after_pages(-3 * day, -2 * day) == ["02-26T13:00", "02-27T13:00", "02-27T12:50"]


class LateSource:
    """Shows records late, and writes times that lie behind its clock.

    Args:
        records: For each one when it was changed, and after how many seconds more it is shown.
        behind: How many seconds the times lie behind.
    """

    def __init__(self, records: Sequence[tuple[int, int]], *, behind: int, page_takes: int) -> None:
        self._records, self._behind, self._page_takes = records, behind, page_takes
        self.clock = ManualClock(NOW)
        self.read = set[int]()

    def run(self, stored: str | None, declared: Cursor, stops_after: int) -> str | None:
        """Read the list from a cursor on until its end, or as many parts, and return the next cursor."""
        found = CheckpointedReading(self._pull(declared.pull_since(stored)), declared, self.clock, whole=False)
        while not found.ended and stops_after:
            self.read |= {int(each) for batch in found.batches_of_next_part() for each in batch.load()["id"]}
            stops_after -= 1
        if declared.sorted:
            return found.cursor or stored
        is_read = found.ended and found.has_rows
        return (
            max(stored or "", format_stored_instant(found.late.missing_from(found.reading_start_time)))
            if is_read
            else stored
        )

    def _pull(self, since: str | None) -> Generator[RawBatch | Checkpoint, None, None]:
        place = (since or "", -1)
        while True:
            now = (self.clock.now() - NOW).total_seconds()
            shown = [(self._time(at), number) for number, (at, late) in enumerate(self._records) if at + late <= now]
            page = sorted(each for each in shown if each > place)[:2]
            if not page:
                return
            place = page[-1]
            self.clock.advance(self._page_takes)
            yield RawBatch.json([{"id": f"{number}", "at": at} for at, number in page], source="page", key=["id"])

    def _time(self, at: int) -> str:
        return format_iso_instant_cursor(NOW + timedelta(seconds=at - self._behind))


@given(
    records=st.lists(st.tuples(st.integers(0, 7_200), st.integers(0, 600)), min_size=1, max_size=12),
    behind=st.sampled_from([0, 30, 3_600, 18_000, 93_600]),
    page_takes=st.sampled_from([0, 1, 200, 1_000]),
    waits=st.lists(st.tuples(st.integers(0, 3_600), st.integers(1, 4)), max_size=6),
    is_sorted=st.booleans(),
)
def test_no_record_is_missed_that_a_source_shows_late(
    records: list[tuple[int, int]], behind: int, page_takes: int, waits: list[tuple[int, int]], is_sorted: bool
) -> None:
    """Whatever its times mean, how slow its pages are, when runs begin, and wherever they are stopped."""
    source = LateSource(records, behind=behind, page_takes=page_takes)
    declared = Cursor(column="at", as_="instant", sorted=is_sorted)
    cursor: str | None = None
    for seconds, parts_until_stop in waits:
        source.clock.advance(seconds)
        cursor = source.run(cursor, declared, parts_until_stop)
    source.clock.advance(8_000)
    source.run(cursor, declared, -1)
    assert source.read == {*range(len(records))}


def test_an_unsorted_source_is_one_part() -> None:
    """Only its end shows that everything was read."""
    unsorted = Cursor(column="change.at", as_="instant", sorted=False)
    assert read(parts([page(1, 9, 1, 2), page(2, 0, 3, 4)], unsorted)) == [(["page 1", "page 2"], None)]


@pytest.mark.parametrize(
    ("cells", "latest"),
    [(["2026-03-01T12:00:00+01:00", "2026-03-01T10:59:00Z"], "2026-03-01T11:00:00.000000000Z"), ([None, "soon"], "")],
)
def test_the_latest_cursor_of_an_unsorted_source_is_known(cells: Sequence[str | None], latest: str) -> None:
    """By the instant; one that cannot be read is none."""
    batch = RawBatch.json([{"id": f"{n}", "at": cell} for n, cell in enumerate(cells)], source="page", key=["id"])
    unsorted = Cursor(column="at", as_="instant", sorted=False)
    found = CheckpointedReading((each for each in [batch]), unsorted, ManualClock(NOW), whole=False)
    read(found)
    assert found.latest == latest


def test_an_unsorted_list_is_continued_before_its_beginning() -> None:
    """By ten minutes more, and by what its times lie behind the clock: the first page may lack what changed since."""
    clock = ManualClock(NOW)

    def pull() -> Generator[RawBatch | Checkpoint, None, None]:
        for hours in (-5, -3):
            clock.advance(3_600)
            item = {"id": f"{hours}", "at": (NOW + timedelta(hours=hours)).isoformat()}
            yield RawBatch.json([item], source="page", key=["id"])

    found = CheckpointedReading(pull(), Cursor(column="at", as_="instant", sorted=False), clock, whole=False)
    assert read(found) == [(["page", "page"], None)]
    assert found.late.missing_from(found.reading_start_time) == NOW.replace(hour=8, minute=50)


@pytest.mark.parametrize("pages", [[page(1, 1, 3, 2)], [page(1, 1, 3, 3), page(2, 2)]])
def test_a_source_that_does_not_sort_is_refused(pages: list[RawBatch]) -> None:
    """Within a page and from page to page, with its place."""
    with pytest.raises(UnsortedError, match=r"page [12]:[13]: is not sorted by 'change.at', as the stream declares"):
        read(parts(pages, CURSOR))


def test_a_cursor_that_cannot_be_read_is_refused() -> None:
    """If no record has a readable one, the declaration is wrong, and the list would be read again each time."""
    items = [{"id": each, "change": {"at": each or None}} for each in ("", "yesterday", "today")]
    with pytest.raises(RefusedError, match="page:2: the cursor 'change.at' is not a time") as refused:
        read(parts([RawBatch.json(items, source="page", key=["id"])], CURSOR))
    assert "correct the format of the cursor" in (refused.value.hint or "")
    counts = (RawBatch.json([{"id": "1", "at": "n/a"}], source=f"page {n}", key=["id"]) for n in range(2))
    with pytest.raises(RefusedError, match="page 0:1: the cursor 'at' is not a number") as refused:
        read(parts(counts, Cursor(column="at", as_="integer")))
    assert "a time needs as: instant" in (refused.value.hint or "")
    with pytest.raises(RefusedError, match="missing column 'at'"):
        rows = RawBatch.json([{"id": "1"}], source="page", key=["id"])
        read(parts([RawBatch("page", rows.rows.drop("_json"))], Cursor(column="at")))  # type: ignore[union-attr]  # a frame


@pytest.mark.parametrize("as_", ["text", "integer"])
def test_half_of_a_character_is_no_cursor(as_: Literal["text", "integer"]) -> None:
    """Its record is a dead letter, and does not move the cursor or end the reading."""
    items = exact_json.loads_replacing_invalid_values(b'[{"at": "1"}, {"at": "2"}, {"at": "3\\ud83d"}]')
    found = parts([RawBatch.json(items, source="page")], Cursor(column="at", as_=as_))
    assert read(found)[-1][1] == "2"


def of_times(number: int, *times: str) -> RawBatch:
    items = [{"id": f"{number}-{place}", "change": {"at": at}} for place, at in enumerate(times)]
    return RawBatch.json(items, source=f"page {number}", key=["id"])


@pytest.mark.parametrize(
    ("pages", "cursor", "remark"),
    [
        (
            [of_times(1, ZERO, ZERO, TIME), page(2, 5), of_times(3, ZERO)],
            "2026-03-01T10:50:05.000000000Z",
            "rows without the cursor 'change.at': 3 (3 cannot be read: page 1:1 the cursor 'change.at' is not a time",
        ),
        (
            [of_times(1, ZERO), page(2, None)],
            None,
            "no record has the cursor 'change.at' (1 cannot be read: page 1:1 the cursor 'change.at' is not a time",
        ),
    ],
)
def test_one_cursor_that_cannot_be_read_is_like_none(pages: list[RawBatch], cursor: str | None, remark: str) -> None:
    """Its record is given and counted, moves no cursor, and stops no other."""
    found = parts(pages, CURSOR)
    assert [source for sources, _ in read(found) for source in sources] == [each.source for each in pages]
    assert found.cursor == cursor
    assert found.rows_without_cursor_remark.startswith(remark)


@pytest.mark.parametrize("cell", [None, ZERO])
def test_an_unsorted_list_without_a_readable_cursor_is_continued_before_all_time_zones(cell: str | None) -> None:
    """Nothing in it shows how far its times are behind the clock."""
    rows = RawBatch.json([{"id": "1", "at": cell}], source="page", key=["id"])
    found = parts([rows], Cursor(column="at", as_="instant", sorted=False))
    read(found)
    assert found.late.missing_from(found.reading_start_time) == datetime(2026, 2, 28, 10, 50, tzinfo=UTC)


@pytest.mark.parametrize(
    ("pages", "remark"),
    [
        ([page(1, None, None), page(2, None)], "no record has the cursor 'change.at'"),
        ([page(1, None, None), page(2, 1)], "rows without the cursor 'change.at'"),
        ([page(1)], ""),
    ],
)
def test_a_cursor_that_no_record_has_is_told(pages: list[RawBatch], remark: str) -> None:
    """Without a value to continue from, each run reads everything again; some may not be listed as changes."""
    found = parts(pages, CURSOR)
    read(found)
    assert found.rows_without_cursor_remark.partition(":")[0] == remark


@pytest.mark.parametrize(
    ("value", "declared", "remedy"),
    [
        (1772364600900, {"as": "integer"}, "declare it with as: instant, and format: unix or unix_ms"),
        (1772364600900, {"as": "integer", "overlap": 600_000}, ""),
        (1772364600, {"as": "integer"}, ""),
        (1772364600, {"as": "integer", "overlap": 10}, "and format: unix or unix_ms"),
        ("1772364600", {}, "and format: unix or unix_ms"),
        ("2026-03-01T12:00:00Z", {}, "declare it with as: instant"),
        ("2026-03-01", {}, ""),
        (177236, {"as": "integer"}, ""),
        (1772364600900, {"as": "instant", "format": "unix_ms"}, ""),
    ],
)
def test_a_cursor_of_times_without_an_overlap_is_told(
    value: int | str, declared: dict[str, object], remedy: str
) -> None:
    """Records that the source shows late are read only if the next run begins some minutes earlier."""
    rows = RawBatch.json([{"id": "1", "at": value}], source="page", key=["id"])
    found = parts([rows], Cursor.model_validate({"column": "at", **declared}))
    read(found)
    assert found.cursor_without_overlap_remark.endswith(remedy)
    assert bool(found.cursor_without_overlap_remark) is bool(remedy)


def by_a_clock_behind(items: Iterable[RawBatch | Checkpoint], declared: Cursor | None = None) -> list[str | None]:
    """The cursors after each part, of a source whose clock is an hour behind ours."""

    def pull() -> Generator[RawBatch | Checkpoint, None, None]:
        yield from items

    def hour_before(moment: datetime) -> datetime:
        return moment - timedelta(hours=1)

    found = CheckpointedReading(pull(), declared, ManualClock(NOW), whole=False, by_its_clock=hour_before)
    return [cursor for _, cursor in read(found)]


def test_a_cursor_is_no_time_that_the_clock_of_the_source_has_not_shown() -> None:
    """The next changes will have earlier times: a connector's checkpoint, and young values, count by that clock."""
    began = "2026-03-01T12:00:00Z"
    for later in ("2026-03-01T13:00:00Z", "2026-03-01T14:00:00+01:00"):
        assert by_a_clock_behind([page(1, 0), Checkpoint(later)]) == [began]
    for kept in ("2026-03-01T11:59:00Z", "2026-03-01", '{"open": []}', "4711"):
        assert by_a_clock_behind([page(1, 0), Checkpoint(kept)]) == [kept]
    rows = [{"id": "1", "change": {"at": "2026-03-01T11:58:00Z"}}]
    assert by_a_clock_behind([RawBatch.json(rows, source="page", key=["id"])], CURSOR) == [
        "2026-03-01T11:48:00.000000000Z"
    ]


@pytest.mark.parametrize(
    ("kind", "values", "reached"),
    [
        ("integer", ["1764288000", "1764288060", "4102444800"], "1764288060"),
        ("integer", ["1764288000000", "4102444800000"], "1764288000000"),
        ("decimal", ["1764288000.5", "4102444800.25"], "1764288000.5"),
        ("text", ["20251128", "99991231"], "20251128"),
        ("text", ["20251128101500", "99991231235959"], "20251128101500"),
        ("text", ["2025-11-28", "9999-12-31"], "2025-11-28"),
        ("integer", ["41", "4102444800"], "4102444800"),
        ("integer", ["4102444799", "4102444800"], "4102444800"),
        ("text", ["20399901", "99991231"], "99991231"),
    ],
)
def test_a_cursor_does_not_pass_to_a_date_in_the_future(kind: str, values: list[str], reached: str) -> None:
    """All later changes would come before it. Numbers that are no times are left alone."""
    cursor = Cursor.model_validate({"column": "at", "as": kind})
    items = [{"id": str(number), "at": value} for number, value in enumerate(values)]
    found = parts([RawBatch.json(items, source="page", key=["id"])], cursor)
    read(found)
    assert found.cursor == reached
    assert ("in the future" in found.future) is (reached != values[-1])


def test_a_list_in_doubt_moves_no_cursor_that_needs_all_of_it() -> None:
    """The cursor stays at the end of the window before; what is read afterwards is given nevertheless."""
    doubts: list[str | None] = [None, "the list may be cut", "the list may be cut"]

    def pull() -> Generator[RawBatch | Checkpoint, None, None]:
        for number, doubt in enumerate(doubts):
            doubts[0] = doubt
            yield page(number, 0, 1, 2)
            yield Checkpoint(f"2026-01-0{number + 1}T00:00:00Z", needs_whole_list=True)

    found = CheckpointedReading(pull(), None, ManualClock(NOW), whole=False, doubt_of_list=lambda: doubts[0])
    first = "2026-01-01T00:00:00Z"
    assert read(found) == [(["page 0"], first), (["page 1"], first), (["page 2"], first), ([], first)]
    assert found.doubt is None
    assert "the list may be cut" in str(found.held)


@pytest.mark.parametrize(("is_sorted", "is_held"), [(True, False), (False, True)])
def test_a_sorted_list_in_doubt_is_continued(is_sorted: bool, is_held: bool) -> None:
    """What it lacks comes after its last record, and so after its cursor."""
    cursor = CURSOR.model_copy(update={"sorted": is_sorted})

    def pull() -> Generator[RawBatch | Checkpoint, None, None]:
        yield page(1, 0, 1)

    found = CheckpointedReading(
        pull(), cursor, ManualClock(NOW), whole=False, doubt_of_list=lambda: "the list may be cut"
    )
    read(found)
    assert (found.held is not None) is is_held
