"""Stable hashes in columns; the only importer of polars-hash.

The hash is XXH3 (xxhash.com), bit-identical to python-xxhash on the same bytes. A row's fingerprint is the sum of its
cells' hashes, with a seed for each column. So the order of columns does not matter, a value that moves to another
column is a change, and no row is concatenated. The probability of missing a change is 2**-64 per changed record with
xxh3_64 and 2**-128 with xxh3_128. Keys always have 128 bits and seed 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, Literal

import polars as pl
import polars_hash  # its import registers the namespace nchash

from crossdock.values.raw_rows_and_records import LINE, column_expression_by_exact_name

Algorithm = Literal["xxh3_64", "xxh3_128"]

HASH = pl.UInt128


def text_hashes(text: pl.Expr, algorithm: Algorithm, seed: int = 0) -> pl.Expr:
    """Hash the UTF-8 bytes of each value to an unsigned integer."""
    namespace: Any = polars_hash.NonCryptographicHashingNameSpace(text)
    hashed: pl.Expr = namespace.xxh3_64(seed=seed) if algorithm == "xxh3_64" else namespace.xxh3_128(seed=seed)
    return hashed


def seed_of_column(column: str, version: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"{version}|{column}".encode(), digest_size=8).digest(), "big")


def row_fingerprints(columns: Sequence[str], version: str, algorithm: Algorithm) -> pl.Expr:
    """Compute a fingerprint per row: the sum of its cells' hashes modulo 2**64 or 2**128. A null counts as its seed."""
    kind = pl.UInt64 if algorithm == "xxh3_64" else HASH
    seeds = {name: seed_of_column(name, version) for name in columns}
    hashes = (
        text_hashes(column_expression_by_exact_name(name), algorithm, seed).fill_null(pl.lit(seed, kind))
        for name, seed in seeds.items()
    )
    return reduce(add, hashes)


def group_fingerprints(rows: pl.DataFrame, keys: Sequence[str], fingerprint: str, algorithm: Algorithm) -> pl.DataFrame:
    """Compute a fingerprint per group as a multiset of rows, with its lowest `LINE` and the maxima of others."""
    multiset = pl.col(fingerprint).sort().cast(pl.String).str.join(",")
    others = [pl.col(name) for name in rows.columns if name not in {*keys, fingerprint, LINE}]
    grouped = rows.group_by(keys, maintain_order=True).agg(
        multiset.alias(fingerprint),
        pl.col(LINE).min(),
        pl.len().alias("rows"),
        *(pl.when(column.null_count() == 0).then(column.max()) for column in others),
    )
    return grouped.with_columns(text_hashes(pl.col(fingerprint), algorithm))


def key_hashes(keys: list[str]) -> dict[str, int]:
    """Hash record keys in text form, as `KEY_HASH` of prepared rows: with 128 bits and seed 0."""
    if not keys:
        return {}
    column = pl.Series(keys, dtype=pl.String)
    hashes = pl.select(text_hashes(pl.lit(column), "xxh3_128"))
    return dict(zip(keys, hashes.to_series().to_list(), strict=True))
