"""Rows with keys, filters and positions, in columns."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hashes import HASHES
from tests.unit.delta.things import Rows, Things, batch, scanned
from tests.unit.test_json_paths import VALUES

from crossdock.delta import row_preparation
from crossdock.delta.row_preparation import (
    DELETED,
    FP,
    KEY,
    KEY_HASH,
    POSITION,
    SKIP,
    add_key_filter_and_fingerprint_columns,
    filter_rows_in_slices,
    repair_and_add_key_columns,
    rows_with_given_keys,
    split_into_parts_by_key,
)
from crossdock.errors import RefusedError
from crossdock.mapping.stream_declaration import Filter, Repair
from crossdock.printable import BLANKS, is_storable
from crossdock.values.exact_json import loads_replacing_invalid_values
from crossdock.values.json_paths import json_value_as_column_text, value_at_path_or_missing
from crossdock.values.raw_rows_and_records import JSON, RawBatch
from crossdock.values.record_keys import MAX_KEY_BYTES, key_text

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]) | st.just("\0")), min_size=1, max_size=5)
CELL = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.just("a" * (MAX_KEY_BYTES + 1))


@given(TEXTS)
def test_any_position_can_be_stored(texts: list[str]) -> None:
    """A position has no NUL, which PostgreSQL refuses; text without one is unchanged."""
    rows = [{"K": "1", "AT": text} for text in texts]
    positions = add_key_filter_and_fingerprint_columns(Things(order_by=("AT",)), "a", batch(rows).load())[
        POSITION
    ].to_list()
    assert all(is_storable(position) for position in positions)
    assert positions == [text.replace("\0", "\x01") for text in texts]


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5))
def test_keys_equal_their_text_form(cells: list[tuple[str | None, str | None]]) -> None:
    """A key in columns is `key_text` of its parts; it is null if a part is empty or too long."""
    rows: Rows = [{"K": first, "L": second} for first, second in cells]
    keys = add_key_filter_and_fingerprint_columns(Things(key=("K", "L")), "a", batch(rows).load())[KEY].to_list()
    for parts, key in zip(cells, keys, strict=True):
        trimmed = [(part or "").strip(BLANKS) for part in parts]
        valid = all(part and len(part.encode()) <= MAX_KEY_BYTES for part in trimmed)
        assert key == (key_text(trimmed) if valid else None)


BLANK = st.text(st.sampled_from(BLANKS), max_size=3)


@given(st.lists(st.tuples(BLANK, st.text("01ab /\u00a0", min_size=1, max_size=5), BLANK), min_size=1, max_size=4))
def test_white_space_around_a_key_changes_neither_key_nor_fingerprint(cells: list[tuple[str, str, str]]) -> None:
    """Of any kind, and characters without a width; the rows are counted, and trim_keys: false keeps what is there."""
    plain = [text.strip(BLANKS) for _, text, _ in cells]
    padded = ["".join(parts) for parts in cells]
    counted: list[int] = []
    found = add_key_filter_and_fingerprint_columns(
        Things(), "a", batch([{"K": key} for key in padded]).load(), counted.append
    )
    expected = add_key_filter_and_fingerprint_columns(Things(), "a", batch([{"K": key} for key in plain]).load())
    assert found.equals(expected)
    assert sum(counted) == sum(one != other for one, other in zip(plain, padded, strict=True))
    written = add_key_filter_and_fingerprint_columns(
        Things(trim_keys=False), "a", batch([{"K": key} for key in padded]).load()
    )
    assert written[KEY].to_list() == [key_text([key]) for key in padded]


def test_isspace_and_blanks_agree() -> None:
    """Every white space character of Python is one that is removed."""
    assert set(BLANKS) >= {character for character in map(chr, range(sys.maxunicode + 1)) if character.isspace()}


def test_records_of_before_keep_their_names() -> None:
    """A record that is stored with white space around its key is the same when that is gone."""
    rows = batch([{"K": "0017"}, {"K": " 0017"}, {"K": "0018"}]).load()
    assert add_key_filter_and_fingerprint_columns(Things(earlier_keys={"0017": "%200017"}), "a", rows)[
        KEY
    ].to_list() == ["%200017", "%200017", "0018"]


def test_named_gives_the_keys_of_prepare() -> None:
    """Rows that are read a second time get the same keys, from repaired text."""
    stream = Things(columns={"K": Repair(strip_suffix=".0")}, skip={"x": Filter(field="V", equals="x")})
    frame = batch([{"K": "7.0", "V": "x"}, {"K": "8.0", "V": ""}]).load()
    prepared, again = (
        add_key_filter_and_fingerprint_columns(stream, "a", frame),
        repair_and_add_key_columns(stream, frame),
    )
    assert prepared[SKIP].to_list() == ["x", None]
    assert again[KEY].to_list() == ["7", "8"]
    assert again.select(KEY, KEY_HASH, "K").equals(prepared.select(KEY, KEY_HASH, "K"))


def test_a_missing_column_is_refused(tmp_path: Path) -> None:
    """The message names the missing column, the file and its columns."""
    with pytest.raises(RefusedError, match=r"a.csv:1: missing column 'PRICE', which stream 'things' uses") as refused:
        scanned(Things(uses=("PRICE",)), [batch([{"K": "1"}])], tmp_path)
    assert "its columns: K" in str(refused.value)


def test_cells_of_a_file_without_header_are_not_shown(tmp_path: Path) -> None:
    """If all used columns are missing, the first line may be a record, whose cells must not appear."""
    with pytest.raises(RefusedError, match="first line is a header") as refused:
        scanned(Things(), [batch([{"Ada Lovelace": "1"}])], tmp_path)
    assert "Ada" not in str(refused.value)


@given(keys=st.lists(HASHES, min_size=1, unique=True), at_once=st.integers(1, 5))
def test_parts_are_a_partition(keys: list[int], at_once: int) -> None:
    """Each key is in exactly one part; filtering by slices equals filtering the whole frame."""
    frame = pl.DataFrame({KEY_HASH: keys}, schema={KEY_HASH: pl.UInt128})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_preparation, "_AT_ONCE", at_once)
        assert sorted(key for (part,) in split_into_parts_by_key(frame) for key in part[KEY_HASH]) == sorted(keys)
        assert rows_with_given_keys(frame, frame[KEY_HASH].head(2))[KEY_HASH].to_list() == keys[:2]
        assert filter_rows_in_slices(frame, pl.lit(value=False)).is_empty()


# ---- rows of JSON

PATHS = st.lists(st.sampled_from(["a", "a.b", "a.0", "b.a.b", "0"]), min_size=1, max_size=3, unique=True)


@given(items=st.lists(VALUES, min_size=2, max_size=4), uses=PATHS)
def test_json_records_differ_where_a_used_path_differs(items: list[object], uses: list[str]) -> None:
    """Whatever else they contain; the key counts too, and without ``uses`` the whole object."""
    frame = RawBatch.json(items, source="page").load()
    texts = [
        tuple(json_value_as_column_text(value_at_path_or_missing(item, path)) for path in (*uses, "K"))
        for item in items
    ]
    for stream, values in ((Things(uses=uses), texts), (Things(), frame[JSON].to_list())):
        fingerprints = add_key_filter_and_fingerprint_columns(stream, "page", frame)[FP].to_list()
        for number in range(1, len(items)):
            assert (fingerprints[0] == fingerprints[number]) is (values[0] == values[number])


def test_the_key_of_json_records_may_be_made_before() -> None:
    """A connector that names its key in each batch has the same keys and fingerprints."""
    items = [{"a": {"b": 1}, "c": "x"}]
    stream = Things(key=("a.b",), uses=("c",))
    early, late = (
        add_key_filter_and_fingerprint_columns(stream, "page", RawBatch.json(items, source="page", key=key).load())
        for key in ("a.b", ())
    )
    assert early.select(sorted(early.columns)).equals(late.select(sorted(late.columns)))
    assert repair_and_add_key_columns(stream, RawBatch.json(items, source="page").load())[KEY].to_list() == ["1"]


def test_a_json_pointer_is_a_path() -> None:
    """It names members that have dots, too; a member with the name of the whole pointer comes first."""
    frame = RawBatch.json([{"a": {"b.c": 1}}], source="page").load()
    assert add_key_filter_and_fingerprint_columns(Things(key=("/a/b.c",)), "page", frame)[KEY].to_list() == ["1"]
    odd = RawBatch.json([{"/a": 1}], source="page").load()
    assert add_key_filter_and_fingerprint_columns(Things(key=("/a",)), "page", odd)[KEY].to_list() == ["1"]


def test_a_value_that_is_no_exact_json_is_no_key_and_matches_no_filter() -> None:
    """Two records are not one because both have NaN, and none is left out or deleted for what nobody can read."""
    items = loads_replacing_invalid_values(b'[{"a": NaN, "b": 1}, {"a": 1, "b": 2, "d": NaN}, {"a": "x y", "b": 2}]')
    stream = Things(
        key=("a",), skip={"other": Filter(field="c", empty=True)}, deleted=Filter(field="b", one_of=("1", "2"))
    )
    found = add_key_filter_and_fingerprint_columns(stream, "page", RawBatch.json(items, source="page").load())
    assert found[KEY].to_list() == [None, "1", "x%20y"]
    assert found[SKIP].to_list() == [None, None, "other"]
    assert found[DELETED].to_list() == [False, False, True]


@pytest.mark.parametrize("text", ["{", "NaN", '{"a": 1, "a": 2}'])
def test_rows_that_claim_to_be_json_are_checked(text: str) -> None:
    """A connector that makes them itself may be wrong."""
    frame = batch([{JSON: text}]).load()
    with pytest.raises(RefusedError, match="contains text that is not JSON"):
        add_key_filter_and_fingerprint_columns(Things(), "page", frame)
