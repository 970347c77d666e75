"""The ids of many records in 8 bytes each."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence

import polars as pl

_RECENT = 65_536  # ids that are not merged yet; more, up to a quarter of all, if there are many


class IdSet:
    """Ids that were added, by a hash of 64 bits: one of ten million others is mistaken for one of a million with a
    probability of 1 in 1,800,000.
    """

    def __init__(self) -> None:
        self._sorted = pl.Series([], dtype=pl.UInt64)
        self._recent = array("Q")

    def add(self, ids: Sequence[str]) -> None:
        self._recent.extend(map(_hash, ids))
        if len(self._recent) >= max(_RECENT, len(self._sorted) // 4):
            self._merge()

    def among(self, ids: Sequence[str]) -> set[str]:
        """Those of *ids* that were added; ask for many at once."""
        self._merge()
        asked = pl.Series([_hash(each) for each in ids], dtype=pl.UInt64)
        places = self._sorted.search_sorted(asked, "left")
        inside = places < len(self._sorted)
        found = (
            self._sorted.gather(places.clip(upper_bound=max(0, len(self._sorted) - 1))) if len(self._sorted) else asked
        )
        held = (found == asked) & inside
        return {each for each, is_held in zip(ids, held.to_list(), strict=True) if is_held}

    def _merge(self) -> None:
        if self._recent:
            merged = pl.concat([self._sorted, pl.Series(self._recent, dtype=pl.UInt64)]).sort(in_place=True)
            is_first = merged.ne_missing(merged.shift(1))  # `unique` would need several times the memory
            self._sorted = merged if is_first.all() else merged.filter(is_first)
            self._recent = array("Q")


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
