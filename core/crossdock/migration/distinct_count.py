"""A count of different values in bounded memory: exact while they are few, then estimated."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

EXACT = 8192
"""Up to this many different values are counted exactly. The standard error of an estimate is ``1 / sqrt(EXACT)``, 1.1
%.
"""
_ALL = 1 << 64


def _none() -> pl.Series:
    return pl.Series(dtype=pl.UInt64)


@dataclass(slots=True)
class DistinctCount:
    """The `EXACT` smallest hashes of the values (k minimum values: Bar-Yossef et al., 2002).

    They do not depend on how the values are divided, so the count of parts added up is that of the whole.

    Attributes:
        smallest: UInt64, ascending, without repetition.
        more: Whether there are values with other hashes.
    """

    smallest: pl.Series = field(default_factory=_none)
    more: bool = False

    @classmethod
    def of(cls, hashes: pl.Series) -> DistinctCount:
        made = cls()
        made.add(cls(hashes))
        return made

    def add(self, other: DistinctCount) -> None:
        both = pl.concat([self.smallest, other.smallest]).unique().sort()
        self.more = self.more or other.more or len(both) > EXACT
        self.smallest = both.head(EXACT)

    @property
    def number(self) -> int:
        """The number; an estimate if `more`."""
        if not self.more:
            return len(self.smallest)
        return (EXACT - 1) * _ALL // (int(self.smallest[-1]) + 1)
