"""Which rows form a group where rows can say that their record was deleted."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from crossdock.delta.changed_record_reading import rows_after_last_deletion
from crossdock.delta.row_preparation import DELETED, KEY_HASH
from crossdock.values.raw_rows_and_records import LINE

_SCHEMA = {KEY_HASH: pl.UInt64, DELETED: pl.Boolean, LINE: pl.UInt64}


@given(st.lists(st.tuples(st.integers(1, 3), st.booleans())))
def test_a_group_has_the_rows_after_the_last_deletion_of_its_key(rows: list[tuple[int, bool]]) -> None:
    """Rows of other keys do not matter."""
    expected: list[tuple[int, int]] = []
    for line, (key, is_deleted) in enumerate(rows):
        if is_deleted:
            expected = [each for each in expected if each[0] != key]
        else:
            expected.append((key, line))
    numbered = [(key, is_deleted, line) for line, (key, is_deleted) in enumerate(rows)]
    found = rows_after_last_deletion(pl.DataFrame(numbered, schema=_SCHEMA, orient="row"))
    assert found.select(KEY_HASH, LINE).rows() == expected


def test_rows_without_marks_are_all_of_the_group() -> None:
    """A stream without `deleted` has no such column."""
    rows = pl.DataFrame({KEY_HASH: [1, 1], LINE: [1, 2]})
    assert rows_after_last_deletion(rows).equals(rows)
