"""Recognition of unchanged rows by their position: most files list their records in the same order every time."""

from __future__ import annotations

import polars as pl

from crossdock.delta.row_preparation import FP, KEY_HASH
from crossdock.state.sidecar_files.key_index import KNOWN_FP

_AHEAD = 100  # rows in which the next common key is searched
_PATIENCE, _EARNED = 100, 1_000  # initial steps, and rows found per additional step: beyond them a join is faster
_IN_ORDER = 10_000  # if fewer than one row in this many is out of order, the key index keeps its order
_SEARCH = 10  # steps that a search of all known keys costs


class KeyOrder:
    """Walks through the known keys while rows are read.

    Args:
        known: `KEY_HASH` and `KNOWN_FP`, preferably in the order of an earlier snapshot.

    Attributes:
        known: The argument; None once too many rows are out of order, to release its memory.
        steps: Approximate number of times that the rows and the known keys were out of order.
        once: Whether no known key was matched twice.
    """

    def __init__(self, known: pl.DataFrame) -> None:
        self.known: pl.DataFrame | None = known
        self._position = self._found = 0
        self.steps, self.once = 0, True

    def same(self, rows: pl.DataFrame) -> pl.Series:
        """Return true for each of *rows* (`KEY_HASH`, `FP`) that is known to be unchanged. False is not proof of a
        change.
        """
        rows = rows.select(KEY_HASH, FP)
        found, done = [pl.Series(dtype=pl.Boolean)], 0
        while self.known is not None and done < rows.height:
            ours, theirs = rows.slice(done), self.known.slice(self._position)
            length = _common_length(ours, theirs)
            found.append(ours[FP].head(length).eq_missing(theirs[KNOWN_FP].head(length)))
            done += length
            self._position += length
            self._found += length
            if done < rows.height:
                found.append(_false(self._realign(rows.slice(done), self.known[KEY_HASH])))
                done += len(found[-1])
            if self.steps > _PATIENCE + self._found // _EARNED:
                self.known = None
        found.append(_false(rows.height - done))
        return pl.concat(found)

    def new_order(self, keys: pl.Series, known: int) -> pl.Series | None:
        """Return the *keys* in the listed order if too many of the *known* ones are out of order; None after a first
        load.
        """
        new = len(keys) - known
        return None if new > known or (self.steps + new) * _IN_ORDER <= len(keys) else keys

    def _realign(self, rows: pl.DataFrame, known: pl.Series) -> int:
        """Move to the first of *rows* that is a known key. Return how many rows precede it."""
        keys = rows[KEY_HASH].head(_AHEAD).to_list()
        near = known.slice(self._position, _AHEAD).to_list()
        offsets = {key: offset for offset, key in enumerate(near)}
        self.steps += 1
        for number, key in enumerate(keys):
            if key in offsets:
                self._position += offsets[key]
                return number
        self.steps += _SEARCH
        matches = known == rows[KEY_HASH].head(1)
        if not matches.any():
            return len(keys)
        position = matches.arg_max() or 0
        self.once = self.once and position >= self._position
        self._position = position
        return 0


def _common_length(ours: pl.DataFrame, theirs: pl.DataFrame) -> int:
    length = min(ours.height, theirs.height)
    equal = ours[KEY_HASH].head(length) == theirs[KEY_HASH].head(length)
    return length if equal.all() else (~equal).arg_max() or 0


def _false(length: int) -> pl.Series:
    return pl.Series([False]).new_from_index(0, length)
