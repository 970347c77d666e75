"""Rows that are as they are known, found by their place: most files list their records in one order every night."""

from __future__ import annotations

import polars as pl

from crossdock.delta.keyed_rows import FP, KEY_HASH
from crossdock.state.sidecar_files.key_index import KNOWN_FP

_AHEAD = 100  # rows that are searched for the next one in common
_PATIENCE, _EARNED = 100, 1_000  # steps at first, and rows found for each one more: beyond them looking up is faster
_SEARCH = 10  # steps that looking through all that is known counts for


class KeyOrder:
    """Walks through what is known while rows are read.

    Args:
        known: `KEY_HASH` and `KNOWN_FP`; best in the order in which an earlier snapshot listed them.

    Attributes:
        known: As it was given; None once more is out of line than is worth searching, so that it need not be held.
        steps: How often rows and what is known were out of line, more or less.
        once: Whether no key was found to be the same more than once.
    """

    def __init__(self, known: pl.DataFrame) -> None:
        self.known: pl.DataFrame | None = known
        self._place = self._found = 0
        self.steps, self.once = 0, True

    def same(self, rows: pl.DataFrame) -> pl.Series:
        """True for each of *rows* (`KEY_HASH`, `FP`) that is found to be as it is known; others may be so, too."""
        rows = rows.select(KEY_HASH, FP)
        found, done = [pl.Series(dtype=pl.Boolean)], 0
        while self.known is not None and done < rows.height:
            ours, theirs = rows.slice(done), self.known.slice(self._place)
            length = _in_line(ours, theirs)
            found.append(ours[FP].head(length).eq_missing(theirs[KNOWN_FP].head(length)))
            done += length
            self._place += length
            self._found += length
            if done < rows.height:
                found.append(_false(self._step(rows.slice(done), self.known[KEY_HASH])))
                done += len(found[-1])
            if self.steps > _PATIENCE + self._found // _EARNED:
                self.known = None
        found.append(_false(rows.height - done))
        return pl.concat(found)

    def _step(self, rows: pl.DataFrame, known: pl.Series) -> int:
        """Go to where one of the first of *rows* is known; how many of them come before it."""
        keys = rows[KEY_HASH].head(_AHEAD).to_list()
        near = known.slice(self._place, _AHEAD).to_list()
        places = {key: place for place, key in enumerate(near)}
        self.steps += 1
        for number, key in enumerate(keys):
            if key in places:
                self._place += places[key]
                return number
        self.steps += _SEARCH
        here = known == rows[KEY_HASH].head(1)
        if not here.any():
            return len(keys)
        place = here.arg_max() or 0
        self.once = self.once and place >= self._place
        self._place = place
        return 0


def _in_line(ours: pl.DataFrame, theirs: pl.DataFrame) -> int:
    """How many keys are the same from the first one on."""
    length = min(ours.height, theirs.height)
    equal = ours[KEY_HASH].head(length) == theirs[KEY_HASH].head(length)
    return length if equal.all() else (~equal).arg_max() or 0


def _false(length: int) -> pl.Series:
    return pl.Series([False]).new_from_index(0, length)
