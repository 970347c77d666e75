"""The decisions about a chunk of records, and their changes in the state."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct, field

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta.second_pass_for_changed_records import KeyedRecord
from crossdock.runs.planning.target_ids_of_references import ScopedKey
from crossdock.state import Binding, DeadLetter, NamedRecord, Transaction, WaitingRecord
from crossdock.writing.delivery.operations_and_intents import Operation
from crossdock.writing.delivery.state_writer import Settlement


class PlannedChunk(Struct):
    """Decisions about some records of one stream. Bindings in `suppressed` are as they are to be stored, and
    `acknowledged_settlements` are operations of other streams that its records acknowledge.
    """

    bound: BoundStream
    run_id: int
    at: datetime
    operations: list[Operation] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    waits: list[WaitingRecord] = field(default_factory=list)
    suppressed: list[Binding] = field(default_factory=list)
    refetched: list[NamedRecord] = field(default_factory=list)
    acknowledged_settlements: list[Settlement] = field(default_factory=list)

    @property
    def decision_count(self) -> int:
        kept = len(self.dead_letters) + len(self.waits) + len(self.suppressed) + len(self.refetched)
        return len(self.operations) + kept

    def add_waiting(self, read: KeyedRecord, missing: Sequence[ScopedKey], idle_under: str | None) -> None:
        waits_for = [{"resource": scope.resource, "namespace": scope.namespace, "key": key} for scope, key in missing]
        self.waits.append(WaitingRecord(read.identity, waits_for, read.record.raw(), idle_under=idle_under))

    def store_all_but_operations(self, tx: Transaction) -> None:
        """Store every decision except the operations, which are stored as intents."""
        stream = self.bound.name
        tx.inbox.schedule_fetch_of_records(self.refetched, at=self.at)
        tx.dead_letters.put(self.dead_letters, run_id=self.run_id, at=self.at)
        tx.waiting_records.put(self.waits, run_id=self.run_id, at=self.at)
        tx.bindings.put(self.bound.scope, self.suppressed, run_id=self.run_id, at=self.at)
        suppressed = [binding.key_hash for binding in self.suppressed]
        waiting = [record.identity.key_hash for record in self.waits]
        rejected = [dead_letter.identity.key_hash for dead_letter in self.dead_letters]
        sent = [operation.identity.key_hash for operation in self.operations if operation.step != "open"]
        tx.dead_letters.remove_records(stream, [*suppressed, *waiting])
        tx.waiting_records.remove_records(stream, [*suppressed, *rejected, *sent])
