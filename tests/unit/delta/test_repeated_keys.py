"""Keys that are listed several times are told with their places."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from crossdock.delta.latest_records import EXAMPLES, RepeatedKey, RepeatedKeys, RowsOfRepeatedKeys
from crossdock.delta.row_preparation import DELETED, KEY_HASH, UNIT
from crossdock.values.raw_rows_and_records import LINE

BIG = 1 << 127  # key hashes have no sign


def rows(*cells: tuple[int, int, int], deleted: int = -1) -> pl.DataFrame:
    schema = {KEY_HASH: pl.UInt128, UNIT: pl.UInt32, LINE: pl.UInt32}
    frame = pl.DataFrame(cells, schema=schema, orient="row")
    return frame.with_columns((pl.col(KEY_HASH) == deleted).alias(DELETED)) if deleted >= 0 else frame


def read(chosen: pl.DataFrame) -> Iterator[Any]:
    for key_hash in chosen[KEY_HASH].to_list():
        yield SimpleNamespace(identity=SimpleNamespace(key=f"K{key_hash % BIG}", key_hash=key_hash))


def found(repeated: RowsOfRepeatedKeys, *, with_examples: bool = True) -> RepeatedKeys:
    return repeated.repeated_keys(read, lambda unit, line: f"{unit}.csv:{line}", with_examples=with_examples)


def test_a_key_has_its_places() -> None:
    """In the order of files and lines; of many, the first and the last, which counts."""
    listed = rows((BIG + 1, 0, 2), (2, 0, 3), (2, 1, 4), (2, 1, 5), (2, 2, 1), (BIG + 1, 1, 7))
    repeated = RowsOfRepeatedKeys(rows((BIG + 1, 1, 7), (2, 2, 1)), listed)
    examples = RepeatedKey("K1", ("0.csv:2", "1.csv:7")), RepeatedKey("K2", ("0.csv:3", "1.csv:4", "2.csv:1"))
    assert found(repeated) == RepeatedKeys(2, examples)
    assert found(repeated, with_examples=False) == RepeatedKeys(2)


def test_few_are_told() -> None:
    """All are counted."""
    last = rows(*((number, 0, number + 1) for number in range(9)))
    made = found(RowsOfRepeatedKeys(last, last))
    assert (made.number, len(made.examples)) == (9, EXAMPLES)


@pytest.mark.parametrize(
    ("repeated", "number"),
    [(RowsOfRepeatedKeys(), 0), (RowsOfRepeatedKeys(rows((1, 0, 0), deleted=1), rows((1, 0, 0))), 1)],
)
def test_what_no_row_shows_has_no_example(repeated: RowsOfRepeatedKeys, number: int) -> None:
    """Nothing was repeated, or the key was named as deleted last."""
    assert found(repeated) == (number, ())
