"""Records that the target has under other names and that a stream takes over instead of creating them."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Sequence

import polars as pl
from msgspec import Struct

from crossdock.errors import RecordError

_SHOWN = 5  # ids in a message
_COLUMNS = pl.Schema({"value": pl.UInt64, "id": pl.String, "taken": pl.Boolean})


class TargetMemberValue(Struct, frozen=True):
    """The value of the compared member of one record of the target, which is `taken` if this stream has it already.

    It is None if it is not text, or if the record belongs to another stream and is never taken over.
    """

    id: str
    value: str | None
    taken: bool = False


class TargetMemberValueIndex:
    """The values of one member of all records of a resource, as hashes: about 10 bytes per record, and its id.

    Delivery compares the texts before it writes, so two values with the same hash only make a record ambiguous.
    """

    def __init__(self) -> None:
        self._rows = pl.DataFrame(schema=_COLUMNS)
        self._read: list[pl.DataFrame] = []

    def add(self, page: Sequence[TargetMemberValue]) -> None:
        """Add a page of a list. A record that comes again replaces the earlier one. Call `sort` afterwards."""
        values = pl.Series([each.value for each in page], dtype=pl.String)
        hashes = pl.DataFrame({"value": values}).select(pl.when(pl.col("value").is_not_null()).then(values.hash()))
        columns = hashes.to_series().alias("value"), pl.Series("id", [each.id for each in page], dtype=pl.String)
        taken = pl.Series("taken", [each.taken for each in page], dtype=pl.Boolean)
        self._read.append(pl.DataFrame([*columns, taken]))

    def sort(self) -> None:
        if not self._read:
            return
        rows = pl.concat([self._rows, *self._read]).unique("id", keep="last", maintain_order=True)
        self._rows, self._read = rows.drop_nulls("value").sort("value"), []

    def __len__(self) -> int:
        return self._rows.height

    def find(self, value: str) -> list[tuple[str, bool]]:
        """Return the id of each record with this value, and whether it is taken."""
        (wanted,) = pl.Series([value]).hash()
        values = self._rows["value"]
        first, behind = (int(values.search_sorted(wanted, side)) for side in ("left", "right"))
        return [(name, taken) for _, name, taken in self._rows[first:behind].iter_rows()]


class AdoptionMatcher:
    """Decides for each record that a stream would create whether it takes over one that *read* has found."""

    def __init__(
        self,
        member: str,
        index: TargetMemberValueIndex,
        read: Callable[[TargetMemberValueIndex], None] = lambda _: None,
    ) -> None:
        self.member, self._index, self._read = member, index, read
        self._is_current = False
        self._claimed = ClaimedValues()  # by the record that was decided first

    def mark_outdated(self) -> None:
        self._is_current = False

    def read_unless_current(self) -> None:
        """Read the records of the target, unless that was done since `mark_outdated`. Nothing can be decided if it
        fails.
        """
        if not self._is_current:
            self._read(self._index)
            self._index.sort()
            self._is_current = True

    def match(self, key_hash: int, value: str | None) -> str | None:
        """Return the id of the record to take over; None if the target has none, so that it is created.

        Raises:
            RecordError: If several records of the target or of this stream have the value, or the only one is taken.
        """
        if value is None:
            return None
        found = self._index.find(value)
        if len(found) > 1:
            shown = ", ".join(name for name, _ in found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
            raise self._ambiguous_match_error(f"{len(found)} records of the target have its {self.member}: {shown}")
        if not self._claimed.claim(value, key_hash):
            raise self._ambiguous_match_error(f"another record of this stream has the same {self.member}")
        if found and found[0][1]:
            raise self._ambiguous_match_error(
                f"the target's {found[0][0]} has its {self.member}, and is bound to another record"
            )
        return found[0][0] if found else None

    def _ambiguous_match_error(self, message: str) -> RecordError:
        return RecordError("ambiguous_match", message, pointer=f"/{self.member}")


class AdoptionCounts(Struct, frozen=True):
    """The numbers of records that a stream would create: they take over `one`, are ambiguous (`several`), or are new.

    `conflicts` are the places of records that become dead letters, because another record has their external id.
    """

    one: int = 0
    several: int = 0
    none: int = 0
    conflicts: Sequence[int] = ()


def count_adoption_decisions(
    index: TargetMemberValueIndex,
    values: Iterable[str | None],
    member: str = "",
    decided: Callable[[int, str | None, str], None] = lambda _number, _id, _why: None,
    named: Callable[[int], str | None] = lambda _: None,
) -> AdoptionCounts:
    """Count what `AdoptionMatcher` would decide about records with these values of the member, in their order.

    *decided* is called for each record that takes over another or is ambiguous. *named* returns the id of the target's
    record with the external id of the record of this number.
    """
    matches, one, several, none = AdoptionMatcher(member, index), 0, 0, 0
    conflicts = list[int]()
    for number, value in enumerate(values):
        try:
            found = matches.match(number, value)
        except RecordError as error:
            several += 1
            decided(number, None, error.message)
            continue
        if (holder := named(number)) is not None and holder != found:
            conflicts.append(number)
        else:
            if found is not None:
                decided(number, found, "")
            one += found is not None
            none += found is None
    return AdoptionCounts(one, several, none, tuple(conflicts))


_HALF = (1 << 64) - 1
_FREE = 0  # no hash is 0
_SMALLEST = 1_024


class ClaimedValues:
    """A hash table with open addressing over two arrays: the hash of a value, and half of the key hash of its owner."""

    def __init__(self) -> None:
        self._values, self._owners = _array_of_zeros(_SMALLEST), _array_of_zeros(_SMALLEST)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def claim(self, value: str, key_hash: int) -> bool:
        """Return whether the record of *key_hash* is the first to claim *value*, now or earlier."""
        if 3 * self._used >= 2 * len(self._values):
            self._grow_hash_table()
        hashed, owner = _hash_of_text(value), key_hash & _HALF
        place = self._find_slot(hashed)
        if self._values[place] == _FREE:
            self._values[place], self._owners[place] = hashed, owner
            self._used += 1
        return self._owners[place] == owner

    def _find_slot(self, hashed: int) -> int:
        size = len(self._values)
        place = hashed % size
        while self._values[place] not in {_FREE, hashed}:
            place = (place + 1) % size
        return place

    def _grow_hash_table(self) -> None:
        values, owners = self._values, self._owners
        self._values, self._owners = _array_of_zeros(2 * len(values)), _array_of_zeros(2 * len(values))
        for hashed, owner in zip(values, owners, strict=True):
            if hashed != _FREE:
                place = self._find_slot(hashed)
                self._values[place], self._owners[place] = hashed, owner


def _array_of_zeros(size: int) -> array[int]:
    return array("Q", bytes(8 * size))


def _hash_of_text(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") or 1
