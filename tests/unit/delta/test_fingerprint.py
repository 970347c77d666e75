"""Fingerprints are stable, unambiguous and reproducible."""

from __future__ import annotations

import hashlib

import polars as pl
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from crossdock.delta import fingerprint
from crossdock.delta.fingerprint import Algorithm
from crossdock.values.raw_rows_and_records import LINE

cell = st.none() | st.text(max_size=8)
name = st.text("AÄ é|1", min_size=1, max_size=4)


def of(rows: list[dict[str, str | None]], algorithm: Algorithm = "xxh3_64", version: str = "v") -> list[int]:
    columns = list(rows[0])
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))
    return frame.select(fingerprint.row_fingerprints(columns, version, algorithm)).to_series().to_list()


@given(st.lists(st.text(), min_size=1))
def test_columns_hash_as_python_does(texts: list[str]) -> None:
    """The columnar hashes are bit-identical to python-xxhash on the same bytes."""
    frame = pl.DataFrame({"t": texts}, schema={"t": pl.String})
    for algorithm, judge in (("xxh3_64", xxhash.xxh3_64_intdigest), ("xxh3_128", xxhash.xxh3_128_intdigest)):
        hashes = frame.select(fingerprint.text_hashes(pl.col("t"), algorithm)).to_series().to_list()  # type: ignore[arg-type]  # a literal in a loop
        assert hashes == [judge(text.encode()) for text in texts]


@pytest.mark.parametrize(("bits", "algorithm"), [(64, "xxh3_64"), (128, "xxh3_128")])
@given(
    row=st.dictionaries(name, cell, min_size=1, max_size=5),
    version=st.text(max_size=4),
)
def test_the_fingerprint_is_as_documented(
    bits: int, algorithm: Algorithm, row: dict[str, str | None], version: str
) -> None:
    """A few lines of plain Python compute the same fingerprint."""
    judge = xxhash.xxh3_64_intdigest if bits == 64 else xxhash.xxh3_128_intdigest
    total = 0
    for column, text in row.items():
        seed = int.from_bytes(hashlib.blake2b(f"{version}|{column}".encode(), digest_size=8).digest(), "big")
        total += seed if text is None else judge(text.encode(), seed=seed)
    assert of([row], algorithm, version) == [total % 2**bits]


def test_fingerprints_stay_as_they_are() -> None:
    """A release that hashed differently would make every record look changed."""
    row: dict[str, str | None] = {"SKU": "A-1", "NAME": "Haken, grün", "PRICE": "", "NOTE": None}
    assert of([row]) == [9504682449332500998]
    assert of([row], "xxh3_128") == [287413838608052120309654701939757543765]


@given(st.permutations(["A", "B", "C"]))
def test_the_order_of_columns_does_not_matter(order: list[str]) -> None:
    """A source may reorder its columns."""
    row: dict[str, str | None] = {"A": "1", "B": "2", "C": None}
    assert of([{name: row[name] for name in order}]) == of([row])


@given(st.tuples(cell, cell), st.tuples(cell, cell))
def test_different_rows_have_different_fingerprints(one: tuple[str | None, ...], other: tuple[str | None, ...]) -> None:
    """A value that moves to another cell is a change."""
    a, b = of([{"A": one[0], "B": one[1]}, {"A": other[0], "B": other[1]}])
    assert (a == b) == (one == other)


def test_the_version_of_the_mapping_is_part_of_the_fingerprint() -> None:
    """A changed mapping makes every record look changed, so that it is mapped again."""
    assert of([{"A": "x"}], version="v1") != of([{"A": "x"}], version="v2")


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6), st.randoms())
def test_a_group_is_a_multiset(lines: list[str], rng: object) -> None:
    """The order of a record's rows does not matter; the number of equal rows does."""

    def group(rows: list[str]) -> int:
        frame = pl.DataFrame({"k": ["K"] * len(rows), "t": rows}, schema={"k": pl.String, "t": pl.String})
        frame = frame.with_columns(fingerprint.text_hashes(pl.col("t"), "xxh3_64").alias("fp")).drop("t")
        frame = frame.with_row_index(LINE)
        return int(fingerprint.group_fingerprints(frame, ["k"], "fp", "xxh3_64")["fp"][0])

    shuffled = list(lines)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    assert group(lines) == group(shuffled)
    assert group(lines) != group([*lines, lines[0]])
