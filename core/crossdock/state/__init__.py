"""The state: what was delivered and what is being delivered, the checkpoint of every run (law 1).

Input: facts of runs, in transactions. Output: the same facts after a kill at any point. It may import
`crossdock.pacing`, records, resources and what is below them. Others import the names of this module and of the
sub-packages; only this package imports SQLAlchemy.
"""

from crossdock.state.db.database_opening_and_errors import PinnedTenant, StateUrl, parse_database_url
from crossdock.state.open_state import State, Transaction, create_or_upgrade_state
from crossdock.state.queries.record_history import FoundRecord
from crossdock.state.state_after_planned_deliveries import ExpectedDeliveries, ExpectedDelivery
from crossdock.state.tables.audit_log import AuditEntry, AuditFilter
from crossdock.state.tables.dead_letters_and_waiting_records import (
    DeadLetter,
    DeadLetterFacts,
    RecordFilter,
    Wait,
    WaitingCount,
    WaitingRecord,
)
from crossdock.state.tables.inputs_of_streams import FileDescription, FileFacts, PackedDigests, PastSnapshot
from crossdock.state.tables.intents_and_stored_batches import (
    Attempt,
    BatchFacts,
    Intent,
    OverdueBatch,
    StoredBatch,
    Unchanged,
)
from crossdock.state.tables.pending_approvals_and_begun_undos import BegunUndo, PendingApproval
from crossdock.state.tables.record_bindings import AcceptedBinding, Binding
from crossdock.state.tables.record_identity_and_scope import RecordIdentity, Scope, Step
from crossdock.state.tables.run_history import RunConfig, RunCountOfDate, RunRecord, RunResult, RunTally
from crossdock.state.tables.scheduled_runs import DueRun, PendingNotice, Recipients, ScheduledRun, SkippedRun
from crossdock.state.tables.system_migrations import Migration, MigrationPart, MigrationRun, RunKind, WaveApproval
from crossdock.state.tables.target_addresses_and_unrecorded_references import UnrecordedReference
from crossdock.state.tables.token_buckets import SharedBucket
from crossdock.state.tables.webhooks_and_records_to_fetch import (
    FollowedRecord,
    InboxRecord,
    NamedRecord,
    ReceivedWebhook,
    StreamAndKey,
)

__all__ = [
    "AcceptedBinding",
    "Attempt",
    "AuditEntry",
    "AuditFilter",
    "BatchFacts",
    "BegunUndo",
    "Binding",
    "DeadLetter",
    "DeadLetterFacts",
    "DueRun",
    "ExpectedDeliveries",
    "ExpectedDelivery",
    "FileDescription",
    "FileFacts",
    "FollowedRecord",
    "FoundRecord",
    "InboxRecord",
    "Intent",
    "Migration",
    "MigrationPart",
    "MigrationRun",
    "NamedRecord",
    "OverdueBatch",
    "PackedDigests",
    "PastSnapshot",
    "PendingApproval",
    "PendingNotice",
    "PinnedTenant",
    "ReceivedWebhook",
    "Recipients",
    "RecordFilter",
    "RecordIdentity",
    "RunConfig",
    "RunCountOfDate",
    "RunKind",
    "RunRecord",
    "RunResult",
    "RunTally",
    "ScheduledRun",
    "Scope",
    "SharedBucket",
    "SkippedRun",
    "State",
    "StateUrl",
    "Step",
    "StoredBatch",
    "StreamAndKey",
    "Transaction",
    "Unchanged",
    "UnrecordedReference",
    "Wait",
    "WaitingCount",
    "WaitingRecord",
    "WaveApproval",
    "create_or_upgrade_state",
    "parse_database_url",
]
