"""The classes of differences between the source, the state and the platform, with what each means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from crossdock.mapping.resource_types import RESOURCES
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.state import Binding, Scope

Class = Literal["missing", "extra", "stale", "diverged", "duplicate", "waiting", "in doubt", "rejected"]
CLASSES: tuple[Class, ...] = (
    "missing", "duplicate", "diverged", "extra", "stale", "in doubt", "waiting", "rejected",
)  # fmt: skip
"""The classes of differences, the most severe first."""
MEANINGS: Mapping[Class, str] = {
    "missing": "the platform does not have the record",
    "duplicate": "two records where there must be one",
    "diverged": "the platform holds something else than it accepted",
    "extra": "the platform has it, and the source or the state does not",
    "stale": "the source has changed since it was delivered",
    "in doubt": "known to the state, and an operation on it may or may not have been carried out",
    "waiting": "known to the state, and not delivered, because it waits for another record",
    "rejected": "known to the state, and not delivered, because it was refused",
}

UNKNOWN = "the state does not know it"


def is_compared(scope: Scope) -> bool:
    """Return whether a reconciliation compares the records of *scope*: those of the platform's resources."""
    return scope.target == PLATFORM and scope.resource in RESOURCES


class Difference(Struct, frozen=True):
    """A record that differs between source, state and platform.

    `members` is empty where the whole record differs. `place` is ``FILE:LINE`` of a row without a key.
    """

    difference: Class
    scope: Scope
    key: str
    target_id: str | None = None
    members: tuple[str, ...] = ()
    remark: str = ""
    place: str = ""


class Correction(Struct, frozen=True):
    """The corrected facts about a record. `binding` and `held` are None if the platform does not have the record."""

    scope: Scope
    key_hash: int
    key: str
    binding: Binding | None
    before: Binding | None
    held: dict[str, Any] | None
