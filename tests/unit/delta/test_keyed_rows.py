"""Rows with their names and positions."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.delta.test_scan import Things, batch

from crossdock.delta.keyed_rows import POSITION, prepare
from crossdock.printable import is_storable

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]) | st.just("\0")), min_size=1, max_size=5)


@given(TEXTS)
def test_any_position_can_be_kept(texts: list[str]) -> None:
    """A position has no NUL, which PostgreSQL refuses, and text without one is ordered as it was."""
    rows = [{"K": "1", "AT": text} for text in texts]
    positions = prepare(Things(order_by=("AT",)), "a", batch(rows).load())[POSITION].to_list()
    assert all(is_storable(position) for position in positions)
    assert pl.Series(positions).to_list() == [text.replace("\0", "\x01") for text in texts]
