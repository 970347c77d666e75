"""The files that a plan would give to targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from crossdock.state import Intent, Transaction
from crossdock.writing.delivery.send_queue import group_of_payload
from crossdock.writing.targets.target import BatchProfile, Target


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file that *target* would be given, with the number of its records."""

    target: str
    name: str
    records: int


@dataclass(slots=True)
class PlannedFiles:
    """The operations of stored batches, counted as the delivery puts them together: deletes come last."""

    targets: Mapping[str, Target]
    _left: Counter[tuple[str, int]] = field(default_factory=Counter)
    _new: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)

    def takes(self, target: str, resource: str) -> bool:
        """Return whether a target takes records of this resource in files."""
        profile = self._profile(target, resource)
        return profile is not None and profile.stored

    def add(self, target: str, resource: str, kind: str, payload: Mapping[str, Any]) -> None:
        profile = self._profile(target, resource)
        if profile is not None:
            last = "delete" if kind == "delete" else ""
            self._new[target, resource, last, group_of_payload(payload, profile.by)] += 1

    def add_left(self, intent: Intent) -> None:
        """Add an operation of a file that an earlier run made, and that is not handed over yet."""
        assert intent.batch_id is not None
        self._left[intent.scope.target, intent.batch_id] += 1

    def files(self, tx: Transaction, at: datetime) -> Sequence[PlannedFile]:
        """Return the files in their order at each target."""
        known = tx.batches.facts({batch for _, batch in self._left})
        found = [PlannedFile(target, known[batch].name, number) for (target, batch), number in self._left.items()]
        numbers = {
            target: tx.batches.next_number(target, self.targets[target].first_number) for target, *_ in self._new
        }
        for (target, resource, *_), operations in self._new.items():
            profile = self._profile(target, resource)
            assert profile is not None
            for start in range(0, operations, profile.size):
                name = self.targets[target].batch_name(resource, numbers[target], at)
                found.append(PlannedFile(target, name, min(profile.size, operations - start)))
                numbers[target] += 1
        return found

    def _profile(self, target: str, resource: str) -> BatchProfile | None:
        known = self.targets[target].resources.get(resource)  # a connection may have lost it
        return None if known is None else known.batch
