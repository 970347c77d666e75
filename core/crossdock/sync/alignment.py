"""Rows that are as they are known, found by their place: most files list their records in one order every night."""

from __future__ import annotations

import polars as pl

from crossdock.state.key_index import KNOWN_FP
from crossdock.sync.fingerprint import HASH
from crossdock.sync.rows import FP, KEY_HASH

_STEPS = 20  # of one batch; where more is out of step, looking everything up is faster
_AHEAD = 100  # rows that are searched for the next one in common


class Alignment:
    """Walks through what is known while rows are read.

    Args:
        known: `KEY_HASH` and `KNOWN_FP`; best in the order in which an earlier snapshot listed them.
    """

    def __init__(self, known: pl.DataFrame) -> None:
        self._known, self._place = known, 0

    def same(self, rows: pl.DataFrame) -> pl.Series:
        """True for each of *rows* (`KEY_HASH`, `FP`) that is found to be as it is known; others may be so, too."""
        rows = rows.select(KEY_HASH, FP)
        self._begin(rows)
        found, done = [pl.Series(dtype=pl.Boolean)], 0
        for _ in range(_STEPS):
            if done == rows.height:
                break
            ours, theirs = rows.slice(done), self._known.slice(self._place)
            length = _in_step(ours, theirs)
            found.append(ours[FP].head(length).cast(HASH) == theirs[KNOWN_FP].head(length).cast(HASH))
            new, gone = _step(ours.slice(length), theirs.slice(length))
            found.append(_false(new))
            done += length + new
            self._place += length + gone
        found.append(_false(rows.height - done))
        self._place += rows.height - done
        return pl.concat(found)

    def _begin(self, rows: pl.DataFrame) -> None:
        """Go to where the first of *rows* is known, unless it is known here."""
        if rows.height and not _in_step(rows.head(1), self._known.slice(self._place, 1)):
            here = self._known[KEY_HASH] == rows[KEY_HASH].head(1)
            self._place = here.arg_max() or 0 if here.any() else self._place


def _in_step(ours: pl.DataFrame, theirs: pl.DataFrame) -> int:
    """How many keys are the same from the first one on."""
    length = min(ours.height, theirs.height)
    equal = ours[KEY_HASH].head(length) == theirs[KEY_HASH].head(length)
    return length if equal.all() else (~equal).arg_max() or 0


def _step(ours: pl.DataFrame, theirs: pl.DataFrame) -> tuple[int, int]:
    """How many rows of each to pass over, to come to the next key in common."""
    places = {key: place for place, key in enumerate(theirs[KEY_HASH].head(_AHEAD).to_list())}
    keys = ours[KEY_HASH].head(_AHEAD).to_list()
    common = ((number, places[key]) for number, key in enumerate(keys) if key in places)
    return next(common, (len(keys), len(places)))


def _false(length: int) -> pl.Series:
    return pl.repeat(value=False, n=length, dtype=pl.Boolean, eager=True)
