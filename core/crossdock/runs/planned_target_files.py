"""The files that a plan would give to targets, each with its number of records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct, field

from crossdock.state import Intent, Scope, Transaction
from crossdock.writing.delivery.operations_and_intents import Operation, batch_item_of_intent
from crossdock.writing.delivery.send_queue_and_threads import batch_group_of_payload
from crossdock.writing.targets.target import BatchProfile, Target


class PlannedFile(Struct, frozen=True):
    """A file that *target* would be given, with the number of its records."""

    target: str
    name: str
    records: int


class _FileSize(Struct):
    """The records of one file, and the bytes that they take. Files are in the order of their *first* records."""

    first: int
    number: int = 0
    size: int = 0


class PlannedFiles(Struct):
    """The operations of stored batches, counted as the delivery puts them together.

    Each stream has files of its own, as have the operations that earlier runs left. Deletes come last.
    """

    targets: Mapping[str, Target]
    _left: Counter[tuple[str, int]] = field(default_factory=Counter)
    _new: dict[tuple[str, str, str, str, str], list[_FileSize]] = field(default_factory=dict)
    _added: int = 0

    def is_sent_in_files(self, target: str, resource: str) -> bool:
        """Return whether a target takes records of this resource in files."""
        profile = self._batch_profile(target, resource)
        return profile is not None and profile.stored

    def add_operation(self, scope: Scope, operation: Intent | Operation) -> None:
        target, resource = scope.target, scope.resource
        profile, known = self._batch_profile(target, resource), self.targets.get(target)
        if profile is None or known is None:
            return
        item = (
            batch_item_of_intent(operation, known) if isinstance(operation, Intent) else operation.as_batch_item(known)
        )
        last = "delete" if item.operation == "delete" else ""
        stream = "" if isinstance(operation, Intent) else operation.identity.stream
        group = batch_group_of_payload(item.payload, profile.by)
        files = self._new.setdefault((target, resource, last, stream, group), [])
        size = 0 if profile.most_bytes is None else known.stored_size(resource, item)
        most = math.inf if profile.most_bytes is None else profile.most_bytes
        if not files or files[-1].number == profile.size or files[-1].size + size > most:
            files.append(_FileSize(self._added))
        self._added += 1
        files[-1].number += 1
        files[-1].size += size

    def add_operation_of_stored_file(self, intent: Intent) -> None:
        """Add an operation of a file that an earlier run made, and that is not handed over yet."""
        assert intent.batch_id is not None
        self._left[intent.scope.target, intent.batch_id] += 1

    def files(self, tx: Transaction, at: datetime) -> Sequence[PlannedFile]:
        """Return the files in their order at each target."""
        known = tx.batches.facts_by_id({batch for _, batch in self._left})
        found = [PlannedFile(target, known[batch].name, number) for (target, batch), number in self._left.items()]
        numbers = {
            target: tx.batches.next_unused_number(target, self.targets[target].first_number) for target, *_ in self._new
        }
        groups = [(key, each) for key, files in self._new.items() for each in files]
        for (target, resource, *_), records in sorted(groups, key=lambda each: (each[0][2], each[1].first)):
            name = self.targets[target].batch_name(resource, numbers[target], at)
            found.append(PlannedFile(target, name, records.number))
            numbers[target] += 1
        return found

    def _batch_profile(self, target: str, resource: str) -> BatchProfile | None:
        known = self.targets[target].resources.get(resource)  # a connection may have lost it
        return None if known is None else known.batch
