"""Stable hashes in columns; the only door to polars-hash.

XXH3 (xxhash.com) with seed 0, bit-identical to python-xxhash on the same bytes. What is hashed is unambiguous: every
cell is preceded by its column's name and its own length in bytes, and null differs from empty. Odds of missing a
change: 2**-64 for each changed record with xxh3_64, 2**-128 with xxh3_128. Keys always have 128 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import polars as pl
import polars_hash  # its import gives expressions the namespace nchash

from crossdock.records import LINE

Algorithm = Literal["xxh3_64", "xxh3_128"]

HASH = pl.UInt128


def digest(text: pl.Expr, algorithm: Algorithm) -> pl.Expr:
    """The hash of the UTF-8 bytes of each value, as an unsigned 128 bit number."""
    namespace: Any = polars_hash.NonCryptographicHashingNameSpace(text)
    hashed: pl.Expr = namespace.xxh3_64() if algorithm == "xxh3_64" else namespace.xxh3_128()
    return hashed.cast(HASH)


def cells(columns: Sequence[str], version: str) -> pl.Expr:
    """One text for all *columns* of a row, whatever order they stand in; *version* is part of it."""
    parts: list[pl.Expr] = [pl.lit(version)]
    for name in sorted(columns):
        cell, label = pl.col(name), f"|{len(name.encode())}:{name}="
        told = pl.concat_str([pl.lit(label), cell.str.len_bytes(), pl.lit(":"), cell])
        parts.append(told.fill_null(f"{label}null"))  # a text of a part that is null is null
    return pl.concat_str(parts)


def of_rows(columns: Sequence[str], version: str, algorithm: Algorithm) -> pl.Expr:
    """A fingerprint for each row."""
    return digest(cells(columns, version), algorithm)


def of_groups(rows: pl.DataFrame, key: str, fingerprint: str, algorithm: Algorithm) -> pl.DataFrame:
    """A fingerprint for each group of rows as a multiset: the order of rows is no change, their number is.

    Args:
        rows: With columns *key* and *fingerprint*, the row's own, and others that are kept as lists.
    """
    multiset = pl.col(fingerprint).sort().cast(pl.String).str.join(",")
    others = [pl.col(name) for name in rows.columns if name not in {key, fingerprint, LINE}]
    grouped = rows.group_by(key, maintain_order=True).agg(
        multiset.alias(fingerprint), pl.col(LINE).min(), pl.len().alias("rows"), *(column.max() for column in others)
    )
    return grouped.with_columns(digest(pl.col(fingerprint), algorithm))
