"""Rows become records: keys, filters, groups, competition, and what changed against the state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossdock.connector import Context, Stream
from crossdock.delta import compare, record_chunks, rows_without_key
from crossdock.delta import scan as census_module
from crossdock.delta.keyed_rows import FP, KEY_HASH, SAME
from crossdock.delta.scan import KeyedRecord, Scan
from crossdock.errors import InternalError, RefusedError
from crossdock.mapping.repairs_and_filters import Filter, Repair
from crossdock.planning.references import key_hashes
from crossdock.records import LINE, RawBatch, Record
from crossdock.state import Binding, DeadLetter, RecordIdentity, Scope, State, WaitingRecord
from crossdock.state.sidecar_files.key_index import KNOWN_FP
from crossdock.tally import Tally

AT = datetime(2026, 1, 1, tzinfo=UTC)
SCOPE = Scope("platform", "product", "w")

Rows = Sequence[Mapping[str, str | None]]


class Things(Stream[Any]):
    name, resource, key = "things", "product", ("K",)

    def __init__(self, **facts: Any) -> None:
        for name, value in facts.items():
            setattr(self, name, value)

    def pull(self, ctx: Context[Any], since: str | None) -> Iterator[RawBatch]:
        raise AssertionError("batches are given")

    def to_resource(self, record: Record) -> dict[str, Any]:
        raise AssertionError("nothing is mapped here")


def batch(rows: Rows, source: str = "a.csv", first_line: int = 2) -> RawBatch:
    columns = list(rows[0])
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))
    return RawBatch(
        source, frame.with_columns(pl.int_range(first_line, first_line + len(rows), dtype=pl.UInt64).alias(LINE))
    )


def rereadable(whole: RawBatch, size: int, reads: list[Sequence[int] | None] | None = None) -> list[RawBatch]:
    """The rows of *whole* in batches of *size*, of a source that can be read again, which is noted in *reads*."""
    frame = whole.load()

    def again(lines: Sequence[int] | None) -> Iterator[pl.DataFrame]:
        if reads is not None:
            reads.append(lines)
        return (frame if lines is None else frame.filter(pl.col(LINE).is_in(lines))).iter_slices(size)

    return [RawBatch(whole.source, part, again=again) for part in frame.iter_slices(size)]


def scan(stream: Stream[Any], batches: Sequence[RawBatch], work: Path) -> tuple[Scan, Tally]:
    counted, tally = Scan(stream, "w.things", work), Tally()
    counted.take(batches, tally, lambda _rows: None)
    assert tally.rows_read == (
        sum(tally.rows_filtered.values()) + tally.rows_superseded + tally.rows_rejected + tally.rows_in_records
    )
    return counted, tally


def records(counted: Scan) -> list[Record]:
    return [read.record for read in counted.records(counted.latest)]


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    """What is kept on disk is found again under a path that polars would take for a pattern."""
    work = tmp_path / "night [1]*?"
    work.mkdir()
    rows = batch([{"K": "1", "V": "a"}, {"K": "2", "V": "b"}])
    path = work / "kept.arrow"
    rows.load().write_ipc(path)
    counted, _ = scan(Things(), [RawBatch("a.csv", path), rows], work)
    assert [record.row for record in records(counted)] == [{"K": "1", "V": "a"}, {"K": "2", "V": "b"}]


def test_the_last_row_of_a_key_wins(tmp_path: Path) -> None:
    """Without order_by file and line decide, over all files of a run; the others are superseded."""
    batches = [
        batch([{"K": "1", "V": "a"}, {"K": "2", "V": "b"}, {"K": "1", "V": "c"}]),
        batch([{"K": "2", "V": "d"}], "b"),
    ]
    counted, tally = scan(Things(), batches, tmp_path)
    assert {r.key: (r.row["V"], r.source, r.lines) for r in records(counted)} == {
        "1": ("c", "a.csv", (4,)),
        "2": ("d", "b", (2,)),
    }
    assert (tally.rows_superseded, tally.rows_in_records) == (2, 2)


def test_order_by_names_the_winner_however_files_come(tmp_path: Path) -> None:
    """The newest by its column wins, also from an older file; a tie is broken by content, not by place."""
    rows: Rows = [{"K": "1", "T": "3", "V": "new"}, {"K": "1", "T": "1", "V": "old"}, {"K": "1", "T": "3", "V": "tie"}]
    won = set()
    for number, order in enumerate(([0, 1, 2], [2, 1, 0], [1, 2, 0])):
        folder = tmp_path / str(number)
        folder.mkdir()
        batches = [batch([rows[index]], f"{place}.csv") for place, index in enumerate(order)]
        counted, _ = scan(Things(order_by=("T",), uses=("V",)), batches, folder)
        won.add(records(counted)[0].row["V"])
    assert len(won) == 1
    assert won < {"new", "tie"}


def test_rows_of_one_file_make_one_record(tmp_path: Path) -> None:
    """Lines of an invoice need not stand together; the same key in another file competes as a whole."""
    first = batch([{"K": "1", "V": "a"}, {"K": "2", "V": "b"}])
    second = batch([{"K": "1", "V": "c"}], "a.csv", 4)
    other = batch([{"K": "2", "V": "x"}, {"K": "2", "V": "y"}], "b.csv")
    counted, tally = scan(Things(group_by=("K",)), [first, second, other], tmp_path)
    assert {r.key: ([row["V"] for row in r.rows], r.lines) for r in records(counted)} == {
        "1": (["a", "c"], (2, 4)),
        "2": (["x", "y"], (2, 3)),
    }
    assert (tally.rows_superseded, tally.rows_in_records) == (1, 4)


def test_repairs_come_before_filters_and_keys(tmp_path: Path) -> None:
    """A filter and a key see the mended text; a row counts under the first filter only."""
    stream = Things(
        columns={"K": Repair(strip_suffix=".0")},
        skip={"seven": Filter(field="K", equals="7"), "empty": Filter(field="V", empty=True)},
    )
    rows = [{"K": "7.0", "V": ""}, {"K": "8.0", "V": ""}, {"K": "9.0", "V": "x"}]
    counted, tally = scan(stream, [batch(rows)], tmp_path)
    assert tally.rows_filtered == {"seven": 1, "empty": 1}
    assert [record.key for record in records(counted)] == ["9"]


def test_a_row_without_key_is_a_dead_letter(tmp_path: Path) -> None:
    """Every part of a key must be there; the letter names the empty column and keeps the row."""
    rows: Rows = [{"K": "a", "L": ""}, {"K": None, "L": "x"}, {"K": "a b", "L": "x|y"}]
    counted, tally = scan(Things(key=("K", "L")), [batch(rows)], tmp_path)
    assert [(dead_letter.code, dead_letter.pointer, dead_letter.identity.line) for dead_letter in counted.keyless] == [
        ("key_missing", "L", 2),
        ("key_missing", "K", 3),
    ]
    assert tally.rows_rejected == 2
    assert [record.key for record in records(counted)] == ["a%20b|x%7Cy"]


def test_a_key_of_any_length_names_no_record(tmp_path: Path) -> None:
    """A key goes into names, messages and tables, so one that is longer than any name is a dead letter."""
    rows: Rows = [{"K": "a" * 1000, "L": "x"}, {"K": "ä" * 501, "L": "x"}, {"K": "a", "L": "\n" * 1001}]
    counted, tally = scan(Things(key=("K", "L")), [batch(rows)], tmp_path)
    assert [(dead_letter.pointer, dead_letter.identity.line) for dead_letter in counted.keyless] == [("K", 3), ("L", 4)]
    assert {dead_letter.message for dead_letter in counted.keyless} == {
        "has more than 1,000 bytes, so the row names no record"
    }
    assert [len(record.key) for record in records(counted)] == [1002]
    assert tally.rows_rejected == 2


@pytest.mark.parametrize("columns", [1, 100])
def test_rows_without_key_are_not_kept_in_any_number(
    tmp_path: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source in which row after row has no key is refused as a whole, the sooner the wider its rows are."""
    monkeypatch.setattr(rows_without_key, "MAX_HELD_BYTES", 100_000)
    rows: Rows = [dict.fromkeys(["K", *(f"C{number}" for number in range(columns))], "")] * 10
    batches = [batch(rows, first_line=line) for line in range(2, 10_000, 10)]
    counted = Scan(Things(), "w.things", tmp_path)
    with pytest.raises(RefusedError, match=r"a.csv:\d+: row after row has no key"):
        counted.take(batches, Tally(), lambda _rows: None)
    assert 0 < len(counted.keyless) * (1_000 + 64 * (columns + 2)) <= 100_000


def test_held_rows_count_with_all_their_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that may have changed are held as long as they are few; empty cells take their room, too."""
    monkeypatch.setattr(census_module, "_HELD_BYTES", 10_000)
    wide = batch([{"K": f"{number}", **{f"C{cell}": "" for cell in range(100)}} for number in range(50)])
    reads: list[Sequence[int] | None] = []
    counted = Scan(Things(), "w.things", tmp_path)
    known = pl.DataFrame(schema={KEY_HASH: pl.UInt128, KNOWN_FP: pl.UInt128})
    counted.take(rereadable(wide, 5, reads), Tally(), lambda _rows: None, lambda: known)
    assert len(records(counted)) == 50
    assert reads, "they were held"


def test_chunks_are_small_where_records_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that are decided on together are as many as asked, unless they take much memory."""

    def chunk_sizes(cells: Mapping[str, str | None]) -> list[int]:
        reads = (
            KeyedRecord(
                Record(f"{number}", (dict(cells),), "a.csv", (2,)),
                RecordIdentity("s", f"{number}", number, 5, None, "a.csv", 2),
            )
            for number in range(100)
        )
        return [len(chunk) for chunk in record_chunks.in_chunks(reads, 30)]

    monkeypatch.setattr(record_chunks, "MAX_BYTES", 10_000)
    assert chunk_sizes({"K": "a"}) == [30, 30, 30, 10]
    assert chunk_sizes({"K": "a" * 2_500}) == [4] * 25
    assert chunk_sizes(dict.fromkeys(map(str, range(100)), "")) == [2] * 50


def test_a_missing_column_is_refused(tmp_path: Path) -> None:
    """The message names the column, the file and what is there."""
    with pytest.raises(RefusedError, match=r"a.csv:1: has no column 'PRICE'") as refused:
        scan(Things(uses=("PRICE",)), [batch([{"K": "1"}])], tmp_path)
    assert "it has K" in str(refused.value)


def _key_of_quarter(quarter: int) -> str:
    """A key whose hash lies in this quarter of the range."""
    names = [str(number) for number in range(100)]
    return next(name for name, key_hash in key_hashes(names).items() if key_hash >> 126 == quarter)


@pytest.mark.parametrize("quarter", range(4))
@pytest.mark.parametrize("algorithm", ["xxh3_64", "xxh3_128"])
def test_a_key_that_is_listed_twice_and_differently_is_refused(tmp_path: Path, quarter: int, algorithm: str) -> None:
    """Both lines are named, wherever in the range of 128 bits the key's hash lies."""
    key = _key_of_quarter(quarter)
    rows: Rows = [{"K": "x", "V": "a"}, {"K": key, "V": "b"}, {"K": key, "V": "c"}]
    with pytest.raises(RefusedError, match=r"^a.csv:4: names a record that a.csv:3 names too"):
        scan(Things(mode="snapshot", fingerprint=algorithm), [batch(rows)], tmp_path)


@settings(max_examples=60, deadline=None)
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
def test_it_does_what_a_plain_dict_would(
    files: list[list[tuple[str, str, str]]], grouped: bool, again: int, one_name: bool
) -> None:
    """Winners, their rows and all counts equal those of a few lines of plain Python."""
    model: dict[str, list[str]] = {}
    for rows in files:
        fresh: dict[str, list[str]] = {}
        for key, value, flag in rows:
            if flag == "x":
                fresh[key] = [*fresh.get(key, []), value] if grouped else [value]
        model |= fresh
    one_name = one_name and again > 0 and not grouped  # an old file and its successor
    named = [(rows, "one" if one_name else str(number)) for number, rows in enumerate(files)]
    batches = [batch([{"K": k, "V": v, "F": f} for k, v, f in rows], name) for rows, name in named]
    if again:
        batches = [part for each in batches for part in rereadable(each, again)]
    stream = Things(group_by=("K",) if grouped else (), skip={"y": Filter(field="F", equals="y")})
    with TemporaryDirectory() as work:
        counted, tally = scan(stream, batches, Path(work))
        assert {record.key: [row["V"] for row in record.rows] for record in records(counted)} == model
        assert any(Path(work).iterdir()) == (grouped or not again)
    assert tally.rows_filtered["y"] == sum(flag == "y" for rows in files for _, _, flag in rows)
    assert tally.rows_in_records == sum(len(values) for values in model.values())


def known_of(counted: Scan) -> pl.DataFrame:
    """A state that has delivered all that *counted* has read."""
    return counted.latest.select(KEY_HASH, pl.col(FP).alias(KNOWN_FP))


@pytest.mark.parametrize("again", [True, False])
def test_rows_that_may_have_changed_are_held(tmp_path: Path, again: bool) -> None:
    """The few that are not known by their place are at hand, repaired once; nothing is read again for them."""
    stream = Things(columns={"V": Repair(strip_prefix="-")})
    rows = [{"K": str(n), "V": f"--{n}"} for n in range(1_000)]
    first, _ = scan(stream, [batch(rows)], tmp_path)
    rows[10]["V"], rows[700]["V"] = "--new", "--newer"
    whole = batch([*rows, {"K": "more", "V": "--more"}])
    reads: list[Sequence[int] | None] = []
    parts = rereadable(whole, 300, reads) if again else [whole]
    counted, tally = Scan(stream, "w.things", tmp_path), Tally()
    counted.take(parts, tally, lambda _rows: None, lambda: known_of(first))
    assert counted.latest[SAME].sum() == 998
    found = compare.compare(counted.latest, known_of(first), waiting=[], unsettled=[], snapshot=True)
    assert (found.unchanged, found.changed.height, found.gone.len()) == (998, 3, 0)
    held = {read.record.key: (read.record.row["V"], read.record.lines) for read in counted.records(found.changed)}
    assert held == {"10": ("-new", (12,)), "700": ("-newer", (702,)), "more": ("-more", (1002,))}
    assert not reads


def test_more_than_is_held_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where much has changed rows are not held, and come from their lines."""
    monkeypatch.setattr("crossdock.delta.scan._HELD_BYTES", 2_000)
    first, _ = scan(Things(), [batch([{"K": str(n), "V": "a"} for n in range(100)])], tmp_path)
    changed = batch([{"K": str(n), "V": "a" if n < 20 else "b"} for n in range(100)])
    reads: list[Sequence[int] | None] = []
    counted, tally = Scan(Things(), "w.things", tmp_path), Tally()
    counted.take(rereadable(changed, 30, reads), tally, lambda _rows: None, lambda: known_of(first))
    found = compare.compare(counted.latest, known_of(first), waiting=[], unsettled=[], snapshot=True)
    assert [read.record.row["V"] for read in counted.records(found.changed)] == ["b"] * 80
    assert reads == [list(range(22, 102))]


def test_held_and_other_rows_are_the_same_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some rows held and others not, in any order of lines: each key has its own row, repaired once, and its hashes."""
    monkeypatch.setattr("crossdock.delta.scan._HELD_BYTES", 3_000)
    stream = Things(columns={"V": Repair(strip_prefix="-")}, order_by=("T",))
    rows = [[{"K": f"{part}{n}", "V": f"--{n}", "T": f"{n:03}"} for n in range(60)] for part in "abc"]
    first, _ = scan(stream, [batch(part, name) for part, name in zip(rows, "abc", strict=True)], tmp_path)
    for number, part in enumerate(rows):
        for row in part[5 : 10 + 20 * number]:
            row["V"] += "!"
    upside_down = RawBatch("c", batch(rows[2], "c").load().reverse())
    parts = [*rereadable(batch(rows[0], "a"), 20), *rereadable(batch(rows[1], "b"), 20), upside_down]
    counted, tally = Scan(stream, "w.things", tmp_path), Tally()
    counted.take(parts, tally, lambda _rows: None, lambda: known_of(first))
    found = compare.compare(counted.latest, known_of(first), waiting=[], unsettled=[], snapshot=True)
    expected = {
        row["K"]: (row["V"][1:], row["T"], row["T"], (number + 2,))
        for part in rows
        for number, row in enumerate(part)
        if row["V"].endswith("!")
    }
    reads = list(counted.records(found.changed))
    assert {
        read.record.key: (read.record.row["V"], read.record.row["T"], read.identity.position, read.record.lines)
        for read in reads
    } == expected
    fps = dict(counted.latest.select(KEY_HASH, FP).iter_rows())
    assert {read.identity.key_hash: read.identity.fingerprint for read in reads} == {
        key_hash: fps[key_hash] for key_hash in key_hashes(list(expected)).values()
    }


@pytest.mark.parametrize(
    ("again", "told"),
    [
        (lambda frame: frame.reverse(), "other rows"),
        (lambda frame: frame.head(1), "all lines"),
        (None, "line of its own"),
    ],
)
def test_a_source_that_gives_other_rows_is_a_defect(
    tmp_path: Path, again: Callable[[pl.DataFrame], pl.DataFrame] | None, told: str
) -> None:
    """Rows that are not those of before, too few, or of one line in common end the run: none is taken for another."""
    whole = batch([{"K": "1", "V": "a"}, {"K": "2", "V": "b"}])
    frame = whole.load()
    if again is None:
        whole = RawBatch("a.csv", frame.with_columns(pl.lit(2, pl.UInt64).alias(LINE)))
    else:
        change = again
        whole = RawBatch("a.csv", frame, again=lambda _lines: iter([change(frame)]))
    counted, _ = scan(Things(), [whole], tmp_path)
    with pytest.raises(InternalError) as caught:
        records(counted)
    assert told in f"{caught.value}"


@pytest.mark.parametrize("grouped", [True, False])
def test_what_is_gone_or_beside_is_found_though_places_tell_the_rest(tmp_path: Path, grouped: bool) -> None:
    """A row that is known by its place and is waited for, or is not there any more, has the fate it would have."""
    stream = Things(group_by=("K",) if grouped else ())
    first, _ = scan(stream, [batch([{"K": str(n), "V": "a"} for n in range(9)])], tmp_path)
    rows: Rows = [{"K": str(n), "V": "a"} for n in range(9) if n != 4]
    counted, tally = Scan(stream, "w.things", tmp_path), Tally()
    counted.take([batch(rows)], tally, lambda _rows: None, lambda: known_of(first))
    assert counted.latest[SAME].sum() == (0 if grouped else 8)
    hashes = key_hashes(["2", "4"])
    waits = WaitingRecord(RecordIdentity("w.things", "2", hashes["2"], 1, None, "f", 1), [], {})
    found = compare.compare(counted.latest, known_of(first), waiting=[waits], unsettled=[], snapshot=True)
    assert (found.unchanged, found.changed.height) == (8, 0)
    assert (found.gone.to_list(), found.replaced, found.unmoved) == ([hashes["4"]], [hashes["2"]], [hashes["2"]])


def test_a_delta_knows_every_fate(state: State, tmp_path: Path) -> None:
    """New, changed, unchanged, stale, refused again, displaced and gone are told apart, each key once."""
    keys = ["new", "changed", "same", "stale", "refused", "waits"]
    rows: Rows = [{"K": key, "T": "5", "V": "v"} for key in keys]
    counted, _ = scan(Things(order_by=("T",), uses=("V",)), [batch(rows)], tmp_path)
    hashes = key_hashes([*keys, "gone"])
    fps = dict(counted.latest.select(KEY_HASH, FP).iter_rows())

    def bound(key: str, fp: int, position: str) -> Binding:
        return Binding(hashes[key], key, f"p{key}", fp, position, "whole", {}, None, 1)

    with state.begin() as tx:
        run = tx.runs.start(business_date="2026-01-01", at=AT)
        same = bound("same", fps[hashes["same"]], "9")
        tx.bindings.put(
            SCOPE, [same, bound("changed", 1, "4"), bound("stale", 1, "6"), bound("gone", 1, "1")], run_id=run, at=AT
        )
        waits = WaitingRecord(RecordIdentity("w.things", "waits", hashes["waits"], 1, "4", "f", 1), [], {})
        old = WaitingRecord(RecordIdentity("w.things", "new", hashes["new"], 1, "7", "f", 1), [], {})
        key_hash = hashes["refused"]
        dead_letter = DeadLetter(
            RecordIdentity("w.things", "", key_hash, fps[key_hash], None, "f", 1),
            "plan",
            "rejected",
            None,
            "",
            {},
            None,
        )
        tx.dead_letters.put([dead_letter], run_id=run, at=AT)
        dead_letters = tx.dead_letters.facts("w.things")
    known = state.known(SCOPE)
    found = compare.compare(
        counted.latest, known, dead_letters=dead_letters, waiting=[waits, old], unsettled=[], snapshot=True
    )
    names = {key_hash: key for key, key_hash in hashes.items()}
    assert Counter(names[key_hash] for key_hash in found.changed[KEY_HASH]) == {"changed": 1, "waits": 1}
    assert [names[key_hash] for key_hash in found.gone] == ["gone"]
    assert [names[key_hash] for key_hash in found.replaced] == ["waits"]
    assert (found.unchanged, found.refused, found.ignored, found.blocked) == (
        1,
        1,
        2,
        0,
    )  # "new" waits in a newer form, "stale" is older
