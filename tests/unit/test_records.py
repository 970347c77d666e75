"""Rows and records: text keys, origin, and what the state stores of them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.test_json_paths import VALUES

from crossdock.errors import RefusedError
from crossdock.values import raw_rows_and_records
from crossdock.values.raw_rows_and_records import LINE, RawBatch, Record, with_path_columns
from crossdock.values.record_keys import key_text

PARTS = st.lists(st.text(st.characters(codec="utf-8")), min_size=2, max_size=2)


@given(one=PARTS, other=PARTS)
def test_different_keys_have_different_texts(one: list[str], other: list[str]) -> None:
    """Whatever their parts contain, delimiters included."""
    assert (key_text(one) == key_text(other)) is (one == other)


@given(PARTS)
def test_a_record_gives_the_parts_of_its_key(parts: list[str]) -> None:
    """As a reference to a record with the same key takes them."""
    assert Record(key_text(parts), (), "f", ()).key_parts == tuple(parts)


def test_a_record_from_the_state_is_the_same() -> None:
    """Rows with their nulls, and lines."""
    record = Record("1", ({"A": "x", "B": None}, {"A": "y", "B": ""}), "f.csv", (2, 7))
    assert Record.restored("1", "f.csv", record.raw()) == record
    assert Record("1", (), "f.csv", ()).raw() == {}


def test_json_keeps_numbers_and_takes_keys_as_text() -> None:
    """A key that is a number or missing is no text in the object, and the object is not rounded."""
    items: list[dict[str, Any]] = [{"id": 17, "price": Decimal("0.10")}, {"id": "0017"}, {}]
    frame = RawBatch.json(items, source="page", key=["id"]).load()
    assert frame["id"].to_list() == ["17", "0017", None]
    assert frame[LINE].to_list() == [1, 2, 3]
    (first, *_) = frame.drop(LINE).to_dicts()
    assert Record("17", (first,), "page", (1,)).json() == {"id": 17, "price": Decimal("0.1")}


def test_rows_may_be_an_arrow_file_with_an_odd_name(tmp_path: Path) -> None:
    """polars would treat its name as a pattern."""
    frame = pl.DataFrame({"A": ["x"]})
    frame.write_ipc(tmp_path / "[a]*.arrow")
    assert RawBatch("f", tmp_path / "[a]*.arrow").load().equals(frame)


@pytest.mark.parametrize("cursor", ["a\0", "\ud800"])
def test_a_cursor_that_cannot_be_stored_is_refused(cursor: str) -> None:
    """The source would be asked with another one."""
    with pytest.raises(RefusedError, match="its cursor cannot be stored") as refused:
        RawBatch("page\n1", pl.DataFrame(), cursor)
    assert refused.value.where == r"page\n1"


def test_the_rows_of_a_long_list_in_a_large_object_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row repeats the object, so a page of a megabyte could become gigabytes."""
    monkeypatch.setattr(raw_rows_and_records, "MAX_EXPLODED", 1 << 20)
    item = {"note": "x" * 10_000, "lines": list(range(1_000))}
    with pytest.raises(RefusedError, match="exceed 1 MiB"):
        RawBatch.json([item], source="page", explode="lines")
    with pytest.raises(RefusedError, match="exceed 1 MiB"):  # a row takes memory besides its text
        RawBatch.json([{"lines": [0] * 2_100}], source="page", explode="lines")
    assert RawBatch.json([item] * 200, source="page").load().height == 200


@given(st.lists(VALUES, max_size=5))
def test_any_items_become_rows(items: list[Any]) -> None:
    """Each item is one row, and the row has the same value."""
    frame = RawBatch.json(items, source="page", key="a.b").load()
    assert frame[LINE].to_list() == list(range(1, len(items) + 1))
    rows = frame.drop(LINE).to_dicts()
    assert [Record("", (row,), "page", (1,)).json() for row in rows] == items
    assert with_path_columns(frame.drop("a.b"), ["a.b"])["a.b"].equals(frame["a.b"])


@pytest.mark.parametrize("items", [{"id": 1}, "text", b"bytes"])
def test_a_page_that_is_no_list_is_a_defect(items: Any) -> None:
    """An object or a text in place of the list is not read as its members or characters."""
    with pytest.raises(TypeError, match="a list of objects"):
        RawBatch.json(items, source="page 1")
