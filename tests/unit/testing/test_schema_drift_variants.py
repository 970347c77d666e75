"""Variants of records."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crossdock import Record
from crossdock.testing.record_variants import (
    all_numbers_in,
    drift_variants,
    drifted_objects,
    replaceable_numbers,
)
from crossdock.values import exact_json

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
objects = st.dictionaries(
    st.text(max_size=3),
    st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner)),
    max_size=4,
)


@given(objects)
def test_a_variant_leaves_its_original_alone(item: dict[str, Any]) -> None:
    """Variants are copies, and each names its change."""
    before = exact_json.dumps(item)
    variants = list(drifted_objects(item))
    assert exact_json.dumps(item) == before
    assert all(change for change, _ in variants)
    assert len(variants) > len(item)


def test_a_row_of_text_has_variants_of_its_cells() -> None:
    """Cells may be null, empty or another text; a column cannot be missing, since the engine refuses such a file."""
    record = Record("1", ({"K": "1", "P": "2.50"},), "f.csv", (2,))
    assert len(list(drift_variants(record))) == 6
    changed = {place: put(Decimal("7.1234")).row[place] for place, put in replaceable_numbers(record)}
    assert changed == {"K": "7.1234", "P": "7.1234"}
    assert record.row == {"K": "1", "P": "2.50"}


def test_numbers_keep_their_type() -> None:
    """A number that is a text stays one; booleans and words are no numbers."""
    record = Record("1", ({"_json": '{"a": "1.5", "b": [2], "c": true, "d": "x", "e": "NaN"}'},), "p", (1,))
    changed = {place: put(Decimal(9)).json() for place, put in replaceable_numbers(record)}
    assert set(changed) == {"/a", "/b/0"}
    assert changed["/a"]["a"] == "9"
    assert changed["/b/0"]["b"] == [9]
    assert all_numbers_in({"a": [1, {"b": Decimal("2.5")}], "c": True, "d": "3"}) == {Decimal(1), Decimal("2.5")}
