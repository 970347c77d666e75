"""Fingerprints: stable, unambiguous, and the same wherever they are computed."""

from __future__ import annotations

import polars as pl
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from crossdock.records import LINE
from crossdock.sync import fingerprint
from crossdock.sync.fingerprint import Algorithm

cell = st.none() | st.text(max_size=8)


def of(rows: list[dict[str, str | None]], algorithm: Algorithm = "xxh3_64", version: str = "v") -> list[int]:
    columns = list(rows[0])
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))
    return frame.select(fingerprint.of_rows(columns, version, algorithm)).to_series().to_list()


@given(st.lists(st.text(), min_size=1))
def test_columns_hash_as_python_does(texts: list[str]) -> None:
    """The columnar hashes are bit-identical to python-xxhash on the same bytes."""
    frame = pl.DataFrame({"t": texts}, schema={"t": pl.String})
    for algorithm, judge in (("xxh3_64", xxhash.xxh3_64_intdigest), ("xxh3_128", xxhash.xxh3_128_intdigest)):
        hashes = frame.select(fingerprint.digest(pl.col("t"), algorithm)).to_series().to_list()  # type: ignore[arg-type]  # a literal in a loop
        assert hashes == [judge(text.encode()) for text in texts]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        pytest.param({"A": "x", "B": "é"}, "v|1:A=1:x|1:B=2:é", id="lengths in bytes"),
        pytest.param({"B": None, "A": ""}, "v|1:A=0:|1:B=null", id="null is not empty, order of columns is nothing"),
    ],
)
def test_the_encoding_is_what_the_docs_say(row: dict[str, str | None], text: str) -> None:
    """Test vectors: anyone can compute a fingerprint with a few lines of their own."""
    assert of([row]) == [xxhash.xxh3_64_intdigest(text.encode())]
    assert of([row], "xxh3_128") == [xxhash.xxh3_128_intdigest(text.encode())]


@given(st.tuples(cell, cell), st.tuples(cell, cell))
def test_different_rows_have_different_fingerprints(one: tuple[str | None, ...], other: tuple[str | None, ...]) -> None:
    """No two rows share an encoding: nothing moves between cells unseen."""
    a, b = of([{"A": one[0], "B": one[1]}, {"A": other[0], "B": other[1]}])
    assert (a == b) == (one == other)


def test_the_version_of_the_mapping_is_part_of_it() -> None:
    """A changed mapping makes every record look new, so that it is examined again."""
    assert of([{"A": "x"}], version="v1") != of([{"A": "x"}], version="v2")


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6), st.randoms())
def test_a_group_is_a_multiset(lines: list[str], rng: object) -> None:
    """The order of a record's rows is no change; how often a row stands there is."""

    def group(rows: list[str]) -> int:
        frame = pl.DataFrame({"k": ["K"] * len(rows), "t": rows}, schema={"k": pl.String, "t": pl.String})
        frame = frame.with_columns(fingerprint.digest(pl.col("t"), "xxh3_64").alias("fp")).drop("t")
        frame = frame.with_row_index(LINE)
        return int(fingerprint.of_groups(frame, "k", "fp", "xxh3_64")["fp"][0])

    shuffled = list(lines)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    assert group(lines) == group(shuffled)
    assert group(lines) != group([*lines, lines[0]])
