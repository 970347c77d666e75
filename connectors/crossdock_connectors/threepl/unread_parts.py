"""Parts of a 3PL's records that could not be read. Such a record is set aside, and the others are delivered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from crossdock import RecordError, RefusedError
from crossdock.errors import RemoteError, UnauthorizedError
from crossdock.reading.sources.list_evidence import DoubtfulListError
from crossdock.sources import UnavailableError
from crossdock.values.json_access import JsonAccess, JsonElement

_UNREAD = "\x1dunread"
"""The member of a record that says why a part of it is not there; no API has such a name."""


def objects(record: JsonAccess, pointer: str) -> list[JsonElement]:
    """Return the objects of a list. Raises RecordError if the list is missing or null, or has anything else in it."""
    return [each.part("") for each in record.each(pointer)]


def part(name: str, read: Callable[[], Any]) -> dict[str, Any]:
    """Return the member *name* of a record as *read* requests it, or the reason for `check_part` if it cannot be read.

    Raises:
        UnauthorizedError, UnavailableError: They concern all records.
    """
    try:
        return {name: read()}
    except (UnauthorizedError, UnavailableError):
        raise
    except (RefusedError, RemoteError) as error:
        return {_UNREAD: f"{error.where}: {error.message}" if error.where else error.message}


def check_part(record: JsonAccess, pointer: str) -> None:
    """Raise RecordError if the `part` at *pointer* could not be read."""
    reason = record.at(f"/{_UNREAD}", str, default=None)
    if reason is not None:
        raise RecordError("unmatched", f"could not be read: {reason}", pointer=pointer)


class SetAside:
    """Records of a list that could not be read, and of which no key is known.

    They make the list doubtful: nothing counts as gone, and its cursor stays, so that the next run reads them again.
    """

    def __init__(self) -> None:
        self._reasons: list[str] = []

    def add(self, name: str, reason: str) -> None:
        self._reasons.append(f"{name}: {reason}")

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """Set the record *name* aside if a part of it is not what the 3PL documents."""
        try:
            yield
        except RecordError as error:
            self.add(name, str(error))

    def check(self, where: str) -> None:
        """Raise DoubtfulListError if a record was set aside."""
        if self._reasons:
            first, *more = self._reasons
            others = f", and {len(more):,} more" if more else ""
            hint = "the others are delivered, and the next run reads these again; if they stay so, ask the 3PL"
            raise DoubtfulListError(f"could not be read in part: {first}{others}", where=where, hint=hint)
