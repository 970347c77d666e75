"""The first record to claim each value, in 24 to 48 bytes for each value."""

from __future__ import annotations

import hashlib
from array import array

_HALF = (1 << 64) - 1
_FREE = 0  # no hash is 0
_SMALLEST = 1_024


class ClaimedValues:
    """A hash table with open addressing over two arrays: the hash of a value, and half of the key hash of its owner."""

    def __init__(self) -> None:
        self._values, self._owners = _free(_SMALLEST), _free(_SMALLEST)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def claim(self, value: str, key_hash: int) -> bool:
        """Return whether the record of *key_hash* is the first to claim *value*, now or earlier."""
        if 3 * self._used >= 2 * len(self._values):
            self._grow()
        hashed, owner = _hash(value), key_hash & _HALF
        place = self._place(hashed)
        if self._values[place] == _FREE:
            self._values[place], self._owners[place] = hashed, owner
            self._used += 1
        return self._owners[place] == owner

    def _place(self, hashed: int) -> int:
        size = len(self._values)
        place = hashed % size
        while self._values[place] not in {_FREE, hashed}:
            place = (place + 1) % size
        return place

    def _grow(self) -> None:
        values, owners = self._values, self._owners
        self._values, self._owners = _free(2 * len(values)), _free(2 * len(values))
        for hashed, owner in zip(values, owners, strict=True):
            if hashed != _FREE:
                place = self._place(hashed)
                self._values[place], self._owners[place] = hashed, owner


def _free(size: int) -> array[int]:
    return array("Q", bytes(8 * size))


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") or 1
