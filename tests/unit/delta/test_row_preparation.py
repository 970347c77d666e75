"""Rows with keys, filters and positions, in columns."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hashes import HASHES
from tests.unit.delta.things import Rows, Things, batch, scanned

from crossdock.delta import row_preparation
from crossdock.delta.row_preparation import (
    KEY,
    KEY_HASH,
    MAX_KEY_BYTES,
    POSITION,
    SKIP,
    among,
    in_parts,
    named,
    prepare,
    where,
)
from crossdock.errors import RefusedError
from crossdock.mapping.repairs_and_filters import Filter, Repair
from crossdock.printable import is_storable
from crossdock.records import key_text

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]) | st.just("\0")), min_size=1, max_size=5)
CELL = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.just("a" * (MAX_KEY_BYTES + 1))


@given(TEXTS)
def test_any_position_can_be_stored(texts: list[str]) -> None:
    """A position has no NUL, which PostgreSQL refuses; text without one is unchanged."""
    rows = [{"K": "1", "AT": text} for text in texts]
    positions = prepare(Things(order_by=("AT",)), "a", batch(rows).load())[POSITION].to_list()
    assert all(is_storable(position) for position in positions)
    assert positions == [text.replace("\0", "\x01") for text in texts]


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5))
def test_keys_equal_their_text_form(cells: list[tuple[str | None, str | None]]) -> None:
    """A key in columns is `key_text` of its parts; it is null if a part is empty or too long."""
    rows: Rows = [{"K": first, "L": second} for first, second in cells]
    keys = prepare(Things(key=("K", "L")), "a", batch(rows).load())[KEY].to_list()
    for parts, key in zip(cells, keys, strict=True):
        valid = all(part and len(part.encode()) <= MAX_KEY_BYTES for part in parts)
        assert key == (key_text([part or "" for part in parts]) if valid else None)


def test_named_gives_the_keys_of_prepare() -> None:
    """Rows that are read a second time get the same keys, from repaired text."""
    stream = Things(columns={"K": Repair(strip_suffix=".0")}, skip={"x": Filter(field="V", equals="x")})
    frame = batch([{"K": "7.0", "V": "x"}, {"K": "8.0", "V": ""}]).load()
    prepared, again = prepare(stream, "a", frame), named(stream, frame)
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
        assert sorted(key for (part,) in in_parts(frame) for key in part[KEY_HASH]) == sorted(keys)
        assert among(frame, frame[KEY_HASH].head(2))[KEY_HASH].to_list() == keys[:2]
        assert where(frame, pl.lit(value=False)).is_empty()
