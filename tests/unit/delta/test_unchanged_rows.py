"""Unchanged rows recognised by position: never wrongly, and nearly all in a file that keeps its order."""

from __future__ import annotations

import random
from collections.abc import Sequence

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from crossdock.delta.fingerprint import HASH
from crossdock.delta.row_preparation import FP, KEY_HASH
from crossdock.delta.state_comparison import KnownKeysInExportOrder
from crossdock.state.sidecar_files.key_index_files import KNOWN_FP

Pair = tuple[int, int]

PAIRS = st.tuples(st.integers(0, 8) | st.just(2**127), st.integers(0, 2))


def frame(pairs: Sequence[Pair], fingerprints: str, kind: pl.DataType | type[pl.DataType]) -> pl.DataFrame:
    return pl.DataFrame(pairs, schema={KEY_HASH: HASH, fingerprints: kind}, orient="row")


def same(known: Sequence[Pair], rows: Sequence[Pair], size: int) -> list[bool]:
    """The result for *rows* in batches of *size*."""
    key_order = KnownKeysInExportOrder(frame(known, KNOWN_FP, pl.UInt64))
    parts = [rows[start : start + size] for start in range(0, len(rows), size)] or [[]]
    return [found for part in parts for found in key_order.unchanged_row_mask(frame(part, FP, HASH)).to_list()]


@given(known=st.lists(PAIRS, unique_by=lambda pair: pair[0]), rows=st.lists(PAIRS), size=st.integers(1, 5))
def test_no_changed_row_is_recognised(known: list[Pair], rows: list[Pair], size: int) -> None:
    """For any known keys and rows, in any order and number, each row has a result, true only if it is unchanged."""
    found = same(known, rows, size)
    assert len(found) == len(rows)
    assert all(pair in known for pair, is_same in zip(rows, found, strict=True) if is_same)


def test_a_file_in_the_same_order_is_recognised() -> None:
    """With new, gone and changed rows in places, exactly the unchanged rows are recognised."""
    rng = random.Random(6)
    known = [(rng.getrandbits(128), rng.getrandbits(64)) for _ in range(5_000)]
    rows: list[Pair] = []
    for number, (key, fp) in enumerate(known):
        if number % 400 == 150:
            rows += [(rng.getrandbits(128), 1) for _ in range(1 + number % 3)]
        if number % 500 not in {250, 251}:
            rows.append((key, fp + 1 if number % 100 == 7 else fp))
    whole = set(known)
    assert same(known, rows, 700) == [pair in whole for pair in rows]


PLACES = st.sets(st.integers(0, 199), max_size=3)


@given(size=st.integers(1, 40), new=PLACES, gone=PLACES)
def test_it_stays_aligned_across_batches(size: int, new: set[int], gone: set[int]) -> None:
    """Each new or gone row, also at the edge of a batch, costs at most one search; aligned rows cost none."""
    known = [(key, key) for key in range(200)]
    rows = [pair for key in range(200) for pair in [(1000 + key, 0)] * (key in new) + [(key, key)] * (key not in gone)]
    key_order = KnownKeysInExportOrder(frame(known, KNOWN_FP, pl.UInt64))
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    found = [one for part in parts for one in key_order.unchanged_row_mask(frame(part, FP, HASH)).to_list()]
    assert found == [key < 200 for key, _ in rows]
    assert key_order.steps <= 11 * (len(new) + len(gone))


def test_files_in_another_order_are_recognised() -> None:
    """After a jump all known keys are searched, so parts of a file may move or repeat."""
    known = [(key, key) for key in range(1_000)]
    assert all(same(known, [*known[600:], *known[:700]], 200))


def test_a_random_order_is_given_up() -> None:
    """If almost every row is out of order the search ends, and all rows still have a result."""
    known = [(key, key) for key in range(30_000)]
    key_order = KnownKeysInExportOrder(frame(known, KNOWN_FP, pl.UInt64))
    rows = frame(random.Random(7).sample(known, len(known)), FP, HASH)
    found = [key_order.unchanged_row_mask(part).sum() for part in rows.iter_slices(50)]
    assert sum(found) < 200
    assert key_order.steps < 200
    assert key_order.known is None
