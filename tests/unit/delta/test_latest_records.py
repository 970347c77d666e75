"""Rows become records: filters, groups, and the latest version of each key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.delta.things import Rows, Things, batch, known_of, records, rereadable, scanned

from crossdock.delta import changed_record_reading, state_comparison
from crossdock.delta import latest_records as scan_module
from crossdock.delta.fingerprint import key_hashes
from crossdock.delta.latest_records import LatestRecords
from crossdock.delta.row_preparation import DELETED, FP, KEY_HASH, SAME, add_key_filter_and_fingerprint_columns
from crossdock.errors import ConnectorError, RefusedError
from crossdock.mapping.row_order_and_cursors import Cursor
from crossdock.mapping.stream_declaration import Filter, Repair, SuspiciousLimit
from crossdock.state.sidecar_files.key_index_files import KNOWN_FP
from crossdock.values.raw_rows_and_records import LINE, RawBatch, read_arrow_file
from crossdock.values.run_states_and_tally import Tally


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    """Stored rows are found again under a path that polars would expand as a pattern."""
    work = tmp_path / "run [1]*?"
    work.mkdir()
    rows = batch([{"K": "1", "V": "a"}, {"K": "2", "V": "b"}])
    path = work / "stored.arrow"
    rows.load().write_ipc(path)
    scan, _ = scanned(Things(), [RawBatch("a.csv", path), rows], work)
    assert [record.row for record in records(scan)] == [{"K": "1", "V": "a"}, {"K": "2", "V": "b"}]


NAMING: dict[str, Callable[[str], dict[str, Any]]] = {
    "key": lambda name: {"key": ("K", name)},
    "uses": lambda name: {"uses": (name,)},
    "columns": lambda name: {"uses": ("V",), "columns": {name: Repair(strip="both", zfill=3)}},
    "skip": lambda name: {"uses": ("V",), "skip": {"odd": Filter(field=name, one_of=("1", " 3"))}},
    "deleted": lambda name: {"uses": ("V",), "mode": "append", "deleted": Filter(field=name, equals="2")},
    "order_by": lambda name: {"uses": ("V",), "order_by": (name,)},
    "suspicious": lambda name: {"uses": None, "suspicious": SuspiciousLimit(at_most=1)},
}


NAMES = [
    *("*", "^.*$", "^V$"),
    *("_key", "_key_hash", "_skip", "_fp", "_position", "_same", "_deleted", "_unit", "_rows", "_before:V", "_id"),
]


@pytest.mark.parametrize("as_json", [False, True], ids=["columns", "members"])
@pytest.mark.parametrize("fact", NAMING)
def test_a_column_may_have_any_name(fact: str, as_json: bool, tmp_path: Path) -> None:
    """Also one that polars reads as a pattern, or that begins with _: the same rows make the same records."""
    cells = [("1", "a", "1"), ("2", "b", "2"), ("1", "c", " 3"), ("3", "MÃ¼", "MÃ¼"), ("2", "e", "1")]

    def found(name: str) -> tuple[Any, ...]:
        stream = Things(**{"mode": "append", **NAMING[fact](name)})
        items = [dict(zip(("K", "V", name), row, strict=True)) for row in cells]
        rows = RawBatch.json(items, source="a.csv") if as_json else batch(items)
        try:
            scan, tally = scanned(stream, [rows], tmp_path)
        except RefusedError as refused:
            return (str(refused).replace(name, "X"),)
        fps = add_key_filter_and_fingerprint_columns(stream, "a", rows.load())[FP].to_list()
        return (
            [fps.index(each) for each in fps],
            tally,
            [(record.row["K"], record.row.get(name), record.lines) for record in records(scan)],
        )

    expected = found("X")
    for name in NAMES:
        assert (name, *found(name)) == (name, *expected)


def test_the_last_row_of_a_key_wins(tmp_path: Path) -> None:
    """Without order_by the last file and line win, over all files of a run; the others are superseded."""
    batches = [
        batch([{"K": "1", "V": "a"}, {"K": "2", "V": "b"}, {"K": "1", "V": "c"}]),
        batch([{"K": "2", "V": "d"}], "b"),
    ]
    scan, tally = scanned(Things(), batches, tmp_path)
    assert {r.key: (r.row["V"], r.source, r.lines) for r in records(scan)} == {
        "1": ("c", "a.csv", (4,)),
        "2": ("d", "b", (2,)),
    }
    assert (tally.rows_superseded, tally.rows_in_records) == (2, 2)


NEW, OLD = {"id": 1, "at": "2026-01-02T00:00:00Z"}, {"id": 1, "at": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("stream", "new", "old", "expected"),
    [
        pytest.param({}, {"v": "new"}, {"v": "old"}, "new", id="records"),
        pytest.param({"group_by": ("id",)}, {"v": [{"v": "new"}]}, {"v": [{"v": "old"}]}, "new", id="groups"),
        pytest.param({"deleted": Filter(field="v", equals="gone")}, {"v": "gone"}, {"v": "old"}, None, id="deleted"),
    ],
)
def test_the_cursor_of_an_unsorted_list_tells_which_row_of_a_key_is_the_newest(
    stream: dict[str, Any], new: dict[str, Any], old: dict[str, Any], expected: str | None, tmp_path: Path
) -> None:
    """As of a list of events, the newest first: the last row read is the oldest."""
    cursor = Cursor(column="at", as_="instant", sorted=False)
    events = Things(key=("id",), mode="incremental", cursor=cursor, **stream)
    explode = "v" if "group_by" in stream else None
    pages = [NEW | new], [OLD | old]
    batches = [RawBatch.json(page, source=f"p{number}", explode=explode) for number, page in enumerate(pages)]
    scan, _ = scanned(events, batches, tmp_path)
    if expected is None:
        assert scan.latest[DELETED].to_list() == [True]
    else:
        assert expected in str(records(scan)[0].json())


def test_order_by_selects_the_latest_row_in_any_order_of_files(tmp_path: Path) -> None:
    """The greatest value of the column wins, also in an earlier file; of equal ones that of the row read last."""
    rows: Rows = [{"K": "1", "T": "3", "V": "new"}, {"K": "1", "T": "1", "V": "old"}, {"K": "1", "T": "3", "V": "tie"}]
    won = []
    for number, order in enumerate(([0, 1, 2], [2, 1, 0], [1, 2, 0])):
        folder = tmp_path / str(number)
        folder.mkdir()
        batches = [batch([rows[index]], f"{place}.csv") for place, index in enumerate(order)]
        scan, _ = scanned(Things(order_by=("T",), uses=("V",)), batches, folder)
        won.append(records(scan)[0].row["V"])
    assert won == ["tie", "new", "new"]


def test_rows_of_one_file_make_one_record(tmp_path: Path) -> None:
    """Rows of a group need not be adjacent; a group in a later file replaces the whole group."""
    first = batch([{"K": "1", "V": "a"}, {"K": "2", "V": "b"}])
    second = batch([{"K": "1", "V": "c"}], "a.csv", 4)
    other = batch([{"K": "2", "V": "x"}, {"K": "2", "V": "y"}], "b.csv")
    scan, tally = scanned(Things(group_by=("K",)), [first, second, other], tmp_path)
    assert {r.key: ([row["V"] for row in r.rows], r.lines) for r in records(scan)} == {
        "1": (["a", "c"], (2, 4)),
        "2": (["x", "y"], (2, 3)),
    }
    assert (tally.rows_superseded, tally.rows_in_records) == (1, 4)


def test_a_record_is_made_as_soon_as_all_of_its_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large file, only the rows of records are held that it divides, and not all of its records."""
    frames = [["1", "1", "2"], ["3", "1"], ["2", "4"]]
    rows = [[{"K": key, "V": f"{frame}{place}"} for place, key in enumerate(keys)] for frame, keys in enumerate(frames)]
    scan, _ = scanned(
        Things(mode="append", group_by=("K",)),
        [RawBatch("a.csv", batch(each).load().with_columns(pl.col(LINE) + 10 * at)) for at, each in enumerate(rows)],
        tmp_path,
    )
    read = list[Path]()

    def counted(path: Path) -> pl.DataFrame:
        read.append(path)
        return read_arrow_file(path)

    monkeypatch.setattr(changed_record_reading, "read_arrow_file", counted)
    made = ((each.record, len(read)) for each in scan.read_chosen_records(scan.latest))
    found = [(record.key, [row["V"] for row in record.rows], number) for record, number in made]
    assert found == [("3", ["10"], 2), ("1", ["00", "01", "11"], 2), ("2", ["02", "20"], 3), ("4", ["21"], 3)]


def test_repairs_come_before_filters_and_keys(tmp_path: Path) -> None:
    """Filters and keys use the repaired text; a row counts under the first matching filter only."""
    stream = Things(
        columns={"K": Repair(strip_suffix=".0")},
        skip={"seven": Filter(field="K", equals="7"), "empty": Filter(field="V", empty=True)},
    )
    rows = [{"K": "7.0", "V": ""}, {"K": "8.0", "V": ""}, {"K": "9.0", "V": "x"}]
    scan, tally = scanned(stream, [batch(rows)], tmp_path)
    assert tally.rows_filtered == {"seven": 1, "empty": 1}
    assert [record.key for record in records(scan)] == ["9"]


def test_held_rows_count_with_all_their_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that may have changed are held within a bound in memory, to which empty cells count."""
    monkeypatch.setattr(scan_module, "_HELD_BYTES", 10_000)
    wide = batch([{"K": f"{number}", **{f"C{cell}": "" for cell in range(100)}} for number in range(50)])
    reads: list[Sequence[int] | None] = []
    scan = LatestRecords(Things(), "w.things", tmp_path)
    known = pl.DataFrame(schema={KEY_HASH: pl.UInt128, KNOWN_FP: pl.UInt128})
    scan.find_latest_of_each_key(rereadable(wide, 5, reads), Tally(), lambda _rows: None, lambda: known)
    assert len(records(scan)) == 50
    assert reads, "too large to be held"


def _key_of_quarter(quarter: int) -> str:
    """A key whose hash is in this quarter of the range."""
    names = [str(number) for number in range(100)]
    return next(name for name, key_hash in key_hashes(names).items() if key_hash >> 126 == quarter)


@pytest.mark.parametrize("quarter", range(4))
@pytest.mark.parametrize("algorithm", ["xxh3_64", "xxh3_128"])
def test_contradicting_duplicates_in_a_snapshot_are_refused(tmp_path: Path, quarter: int, algorithm: str) -> None:
    """The message has both lines, for hashes over the whole range of 128 bits."""
    key = _key_of_quarter(quarter)
    rows: Rows = [{"K": "x", "V": "a"}, {"K": key, "V": "b"}, {"K": key, "V": "c"}]
    with pytest.raises(RefusedError, match=r"^a.csv:4: duplicate of the record at a.csv:3, with different content"):
        scanned(Things(mode="snapshot", fingerprint=algorithm), [batch(rows)], tmp_path)


def test_advice_about_duplicates_names_keys_that_the_stream_has(tmp_path: Path) -> None:
    """A config cannot set ``order_by`` and ``duplicates`` of a stream that a connector declares."""
    stream, rows = Things(mode="snapshot"), batch([{"K": "1", "V": "a"}, {"K": "1", "V": "b"}])
    for is_in_config in (False, True):
        stream.is_declared_in_config = is_in_config
        with pytest.raises(RefusedError) as caught:
            scanned(stream, [rows], tmp_path)
        assert ("order_by" in str(caught.value.hint)) is is_in_config


def scanned_answers(stream: Things, batches: Sequence[RawBatch], work: Path) -> LatestRecords:
    scan = LatestRecords(stream, "w.things", work, are_answers=lambda: True)
    scan.find_latest_of_each_key(batches, Tally(), lambda _rows: None)
    return scan


@pytest.mark.parametrize("group_by", [(), ("K",)])
def test_of_answers_to_several_requests_the_later_one_counts(tmp_path: Path, group_by: tuple[str, ...]) -> None:
    """A record that changes while a list is read may be listed again; in files, nothing tells which row is right."""
    stream = Things(mode="snapshot", group_by=group_by)
    first: Rows = [{"K": "1", "V": "a"}, {"K": "2", "V": "a"}, {"K": "3", "V": "a"}]
    later: Rows = [{"K": "1", "V": "b"}, {"K": "2", "V": "a"}, {"K": "3", "V": "c"}]
    pages = [batch(first, "page 1"), batch(later, "page 2")]
    scan = scanned_answers(stream, pages, tmp_path)
    assert {record.key: record.row["V"] for record in records(scan)} == {"1": "b", "2": "a", "3": "c"}
    assert scan.replaced is not None
    assert scan.replaced.number == 2
    assert scan.replaced.place.startswith("page 2:")
    with pytest.raises(RefusedError, match=r"^page 2:[24]: duplicate of the record at page 1:[24], with different"):
        scanned(stream, pages, tmp_path)


@pytest.mark.parametrize(("group_by", "sources"), [((), ["page 1", "page 1"]), (("K",), ["page 1", "page 1#2"])])
def test_one_answer_that_contradicts_itself_is_refused(
    tmp_path: Path, group_by: tuple[str, ...], sources: Sequence[str]
) -> None:
    """Also one that is read in parts, and one of which another answer has a later version."""
    stream, versions = Things(mode="snapshot", group_by=group_by), zip("abc", [*sources, "page 2"], strict=True)
    pages = [batch([{"K": "1", "V": value}], source, line) for line, (value, source) in enumerate(versions, 1)]
    with pytest.raises(RefusedError, match=r"^page 1(#2)?:2: duplicate of the record at page 1:1, with different"):
        scanned_answers(stream, pages, tmp_path)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from("123"), st.sampled_from("abc"), st.sampled_from("xy")), min_size=1, max_size=8
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
    st.integers(0, 3),
    st.booleans(),
)
def test_the_scan_equals_a_plain_dict(
    files: list[list[tuple[str, str, str]]], grouped: bool, again: int, one_name: bool
) -> None:
    """Latest records, their rows and all counts equal those of a few lines of plain Python."""
    model: dict[str, list[str]] = {}
    for rows in files:
        fresh: dict[str, list[str]] = {}
        for key, value, flag in rows:
            if flag == "x":
                fresh[key] = [*fresh.get(key, []), value] if grouped else [value]
        model |= fresh
    one_name = one_name and again > 0 and not grouped  # a file that was replaced under its name
    named = [(rows, "one" if one_name else str(number)) for number, rows in enumerate(files)]
    batches = [batch([{"K": k, "V": v, "F": f} for k, v, f in rows], name) for rows, name in named]
    if again:
        batches = [part for each in batches for part in rereadable(each, again)]
    stream = Things(group_by=("K",) if grouped else (), skip={"y": Filter(field="F", equals="y")})
    with TemporaryDirectory() as work:
        scan, tally = scanned(stream, batches, Path(work))
        assert {record.key: [row["V"] for row in record.rows] for record in records(scan)} == model
        assert any(Path(work).iterdir()) == (grouped or not again)
    assert tally.rows_filtered["y"] == sum(flag == "y" for rows in files for _, _, flag in rows)
    assert tally.rows_in_records == sum(len(values) for values in model.values())


@pytest.mark.parametrize("again", [True, False])
def test_rows_that_may_have_changed_are_held(tmp_path: Path, again: bool) -> None:
    """Rows that are not recognised by position are held, repaired once, and not read again."""
    stream = Things(columns={"V": Repair(strip_prefix="-")})
    rows = [{"K": str(n), "V": f"--{n}"} for n in range(1_000)]
    first, _ = scanned(stream, [batch(rows)], tmp_path)
    rows[10]["V"], rows[700]["V"] = "--new", "--newer"
    whole = batch([*rows, {"K": "more", "V": "--more"}])
    reads: list[Sequence[int] | None] = []
    parts = rereadable(whole, 300, reads) if again else [whole]
    scan, tally = LatestRecords(stream, "w.things", tmp_path), Tally()
    scan.find_latest_of_each_key(parts, tally, lambda _rows: None, lambda: known_of(first))
    assert scan.latest[SAME].sum() == 998
    found = state_comparison.compare_latest_records_with_state(
        scan.latest, known_of(first), waiting=[], unsettled=[], snapshot=True
    )
    assert (found.unchanged, found.changed.height, found.gone.len()) == (998, 3, 0)
    held = {
        read.record.key: (read.record.row["V"], read.record.lines) for read in scan.read_chosen_records(found.changed)
    }
    assert held == {"10": ("-new", (12,)), "700": ("-newer", (702,)), "more": ("-more", (1002,))}
    assert not reads


def test_rows_beyond_the_bound_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If too many rows have changed they are not held, and are read again by line."""
    monkeypatch.setattr("crossdock.delta.latest_records._HELD_BYTES", 2_000)
    first, _ = scanned(Things(), [batch([{"K": str(n), "V": "a"} for n in range(100)])], tmp_path)
    changed = batch([{"K": str(n), "V": "a" if n < 20 else "b"} for n in range(100)])
    reads: list[Sequence[int] | None] = []
    scan, tally = LatestRecords(Things(), "w.things", tmp_path), Tally()
    scan.find_latest_of_each_key(rereadable(changed, 30, reads), tally, lambda _rows: None, lambda: known_of(first))
    found = state_comparison.compare_latest_records_with_state(
        scan.latest, known_of(first), waiting=[], unsettled=[], snapshot=True
    )
    assert [read.record.row["V"] for read in scan.read_chosen_records(found.changed)] == ["b"] * 80
    assert reads == [list(range(22, 102))]


def test_held_and_other_rows_are_the_same_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With some rows held and others not, in any order of lines, each key has its row, repaired once."""
    monkeypatch.setattr("crossdock.delta.latest_records._HELD_BYTES", 3_000)
    stream = Things(columns={"V": Repair(strip_prefix="-")}, order_by=("T",))
    rows = [[{"K": f"{part}{n}", "V": f"--{n}", "T": f"{n:03}"} for n in range(60)] for part in "abc"]
    first, _ = scanned(stream, [batch(part, name) for part, name in zip(rows, "abc", strict=True)], tmp_path)
    for number, part in enumerate(rows):
        for row in part[5 : 10 + 20 * number]:
            row["V"] += "!"
    reversed_part = RawBatch("c", batch(rows[2], "c").load().reverse())
    parts = [*rereadable(batch(rows[0], "a"), 20), *rereadable(batch(rows[1], "b"), 20), reversed_part]
    scan, tally = LatestRecords(stream, "w.things", tmp_path), Tally()
    scan.find_latest_of_each_key(parts, tally, lambda _rows: None, lambda: known_of(first))
    found = state_comparison.compare_latest_records_with_state(
        scan.latest, known_of(first), waiting=[], unsettled=[], snapshot=True
    )
    expected = {
        row["K"]: (row["V"][1:], row["T"], row["T"], (number + 2,))
        for part in rows
        for number, row in enumerate(part)
        if row["V"].endswith("!")
    }
    reads = list(scan.read_chosen_records(found.changed))
    assert {
        read.record.key: (read.record.row["V"], read.record.row["T"], read.identity.position, read.record.lines)
        for read in reads
    } == expected
    fps = dict(scan.latest.select(KEY_HASH, FP).iter_rows())
    assert {read.identity.key_hash: read.identity.fingerprint for read in reads} == {
        key_hash: fps[key_hash] for key_hash in key_hashes(list(expected)).values()
    }


@pytest.mark.parametrize(
    ("again", "message"),
    [
        (lambda frame: frame.reverse(), "a.csv returned different rows when it was read again"),
        (lambda frame: frame.head(1), "every requested line"),
        (None, "its own line number"),
    ],
)
def test_a_source_that_returns_other_rows_is_a_defect(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    again: Callable[[pl.DataFrame], pl.DataFrame] | None,
    message: str,
) -> None:
    """Different rows, too few rows, or rows with the same line number end the stream: none is mistaken for another."""
    monkeypatch.setattr("crossdock.delta.changed_record_reading.SMALL", 0)
    whole = batch([{"K": "1", "V": "a"}, {"K": "2", "V": "b"}])
    frame = whole.load()
    if again is None:
        whole = RawBatch("a.csv", frame.with_columns(pl.lit(2, pl.UInt64).alias(LINE)))
    else:
        change = again
        whole = RawBatch("a.csv", frame, again=lambda _lines: iter([change(frame)]))
    scan, _ = scanned(Things(), [whole], tmp_path)
    with pytest.raises(ConnectorError) as caught:
        records(scan)
    assert message in f"{caught.value}"


MARK = Filter(field="D", equals="1")


def named(*keys: str, rows: Rows = (), source: str = "page") -> RawBatch:
    """Rows and keys that are named as deleted."""
    frame = batch(rows or [{"K": "", "V": ""}], source)
    return RawBatch(source, frame.load().head(len(rows)), deleted=tuple((key,) for key in keys))


def existing(stream: Things, batches: Sequence[RawBatch], work: Path) -> dict[str, bool]:
    """Whether each record exists, by its number of letters."""
    scan, _ = scanned(stream, batches, work)
    by_hash = {digest: key for key in "abc" for digest in _hashes(stream, key, work)}
    return {by_hash[row[KEY_HASH]]: not row[DELETED] for row in scan.latest.iter_rows(named=True)}


def _hashes(stream: Things, key: str, work: Path) -> list[int]:
    return scanned(stream, [named(key)], work)[0].latest[KEY_HASH].to_list()


@pytest.mark.parametrize("order_by", [None, ("V",)])
@pytest.mark.parametrize("group_by", [None, ("K",)])
def test_a_row_shows_that_a_record_exists_again(
    tmp_path: Path, order_by: tuple[str, ...] | None, group_by: tuple[str, ...] | None
) -> None:
    """A row of the same batch or a later one; a key that a later batch names is deleted, whatever the order of rows."""
    stream = Things(yields_deleted=True, order_by=order_by, group_by=group_by)
    rows = [{"K": "a", "V": "9"}]
    for source in ("page", "another"):
        second = named("b", rows=rows, source=source)
        assert existing(stream, [named("a", rows=[{"K": "b", "V": "9"}]), second], tmp_path) == {"a": True, "b": False}
    assert existing(stream, [named("a", rows=rows)], tmp_path) == {"a": True}
    assert existing(stream, [named(rows=rows), named("a", "a")], tmp_path) == {"a": False}
    assert existing(stream, [named("a"), named(rows=rows), named("a", "c")], tmp_path) == {"a": False, "c": False}


@pytest.mark.parametrize("group_by", [None, ("K",)])
def test_the_last_mark_or_row_of_a_key_counts(tmp_path: Path, group_by: tuple[str, ...] | None) -> None:
    """By line, or by ``order_by`` wherever the rows are; marked rows are no part of a group."""
    stream = Things(deleted=MARK, group_by=group_by)
    first, second = {"K": "a", "V": "1", "D": ""}, {"K": "a", "V": "2", "D": "1"}
    assert [row[DELETED] for row in scanned(stream, [batch([first, second])], tmp_path)[0].latest.to_dicts()] == [True]
    ordered = Things(deleted=MARK, order_by=("V",), group_by=group_by)
    for files in (("1.csv", "2.csv"), ("2.csv", "1.csv")):
        found = scanned(ordered, [batch([second], files[0]), batch([first], files[1])], tmp_path)[0]
        assert found.latest[DELETED].to_list() == [True]
    back = scanned(stream, [batch([second]), batch([first], "b.csv")], tmp_path)[0]
    assert back.latest[DELETED].to_list() == [False]
    assert [record.row["V"] for record in records(back)] == ["1"]


def test_a_named_key_has_as_many_parts_as_the_stream(tmp_path: Path) -> None:
    """Repairs of key columns apply to it; an empty one is a row without a key."""
    stream = Things(yields_deleted=True, columns={"K": Repair(strip="both")})
    assert existing(stream, [named(" a ")], tmp_path) == {"a": False}
    scan, tally = scanned(stream, [named("", rows=[])], tmp_path)
    assert (tally.rows_rejected, [each.message for each in scan.dead_letters_without_key]) == (1, ["the key is empty"])
    wrong = RawBatch("page", named().load(), deleted=(("a", "b"),))
    with pytest.raises(RefusedError, match="a deleted record has a key of 2 parts instead of 1"):
        scanned(stream, [wrong], tmp_path)


def test_a_deleted_record_of_several_files_is_not_divided(tmp_path: Path) -> None:
    """A mark is no version with other rows; two files without a common row are named."""
    stream = Things(
        mode="append", group_by=("K",), uses=("V",), deleted=Filter(field="V", equals="D"), reads_files=True
    )
    first = batch([{"K": "1", "V": "a"}, {"K": "1", "V": "b"}, {"K": "2", "V": "a"}])
    for rows, said in ((["D"], None), (["a", "c"], None), (["c", "d"], "a.csv:2 and b.csv:3")):
        later = batch([{"K": "3", "V": "a"}, *({"K": "1", "V": each} for each in rows)], "b.csv")
        assert scanned(stream, [first, later], tmp_path)[0].disjoint_versions == said
