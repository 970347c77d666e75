"""Update limits: a source that would update too many known records needs an approval first.

A shifted column or a changed template updates almost all records of a stream, and a normal night few. So the updates
are counted before anything of the stream is sent: the records are planned once without delivery.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime

from msgspec import Struct

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta.changed_record_reading import KeyedRecord
from crossdock.errors import RefusedError
from crossdock.runs.planning.mapping_to_drafts import AuthorCodeFailureCounter
from crossdock.runs.planning.planner import PlannedChunk, Planner
from crossdock.runs.planning.references import References
from crossdock.runs.planning.removals import LISTED, Removals
from crossdock.runs.planning.waiting_records import RecordsAwaitingParents
from crossdock.state import PendingApproval, Scope, State
from crossdock.state.tables.pending_approvals_and_begun_undos import KEY_BYTES, packed_key_hashes
from crossdock.values import exact_json
from crossdock.values.run_states_and_tally import Tally
from crossdock.writing.delivery.operations_and_intents import Operation

_AT_ONCE = 1000  # records planned together: nothing is written, so no transaction waits for them


class UpdateCandidates(Struct, frozen=True):
    """The input of a stream before any of it is planned.

    Attributes:
        number: The most records that could be updated: known ones with another content, and waiting ones.
        mapping_changed: Since when the stream has a changed mapping, such as "since the last run"; empty if it has not.
    """

    number: int
    known: int
    records: Callable[[], Iterator[KeyedRecord]]
    source: str
    mapping_changed: str = ""


class WithheldUpdates(Struct, frozen=True):
    pending: PendingApproval
    refusal: RefusedError


def find_unapproved_updates_over_limits(
    state: State,
    bound: BoundStream,
    found: UpdateCandidates,
    planned: set[tuple[Scope, int]],
    *,
    at: datetime,
    before: int = 0,
) -> WithheldUpdates | None:
    """Return updates that exceed the limits and are not approved. It raises the error of a source that fails.

    *before* are the updates of earlier parts of the source in this run.
    """
    limits = bound.stream.changes
    if bound.resource_type.write_once or not limits.exceeded(before + found.number, found.known):
        return None
    digests: list[int] = []
    members: Counter[str] = Counter()
    keys: list[str] = []
    for operation in update_operations_subject_to_limits(state, bound, found, planned):
        digests.append(_hash_of_update(operation))
        members.update(operation.changes.keys())
        if len(keys) < LISTED:
            keys.append(operation.record.key)
    if not digests or not limits.exceeded(before + len(digests), found.known):
        return None
    wanted = PendingApproval(bound.name, f"update {bound.records_text}", packed_key_hashes(digests), at)
    if _is_approved(state, wanted):
        return None
    return WithheldUpdates(wanted, _updates_refused_error(bound, found, wanted, keys, members, before))


def update_operations_subject_to_limits(
    state: State, bound: BoundStream, found: UpdateCandidates, planned: set[tuple[Scope, int]]
) -> Iterator[Operation]:
    """Yield the updates that count: those of records whose content crossdock delivered before."""
    progress, known = bound.context.run.progress, set(planned)
    progress.begin(f"counting updates of {bound.name}", None)
    held = RecordsAwaitingParents(bound, state, References(bound.target.name, known), {bound.scope})
    failing = AuthorCodeFailureCounter(bound, None)
    planner = Planner(held, Tally(), None, gone=Removals(), failing=failing, at_once=_AT_ONCE)
    chunks: Iterator[PlannedChunk] | None = planner.decide_in_chunks(found.records())
    while chunks is not None:
        for chunk in chunks:
            progress.advance(chunk.decision_count)
            for operation in chunk.operations:
                if operation.binding is None:
                    known.add((operation.scope, operation.identity.key_hash))
                elif operation.counts_against_update_limits:
                    yield operation
        chunks = planner.plan_ready_cycles_or_removals()
    if planner.stopped is not None:
        raise planner.stopped


def _hash_of_update(operation: Operation) -> int:
    """Hash the record and its new content, so that an approval covers exactly this update."""
    content = exact_json.dumps([f"{operation.identity.key_hash:032x}", operation.after])
    return int.from_bytes(hashlib.sha256(content).digest()[:KEY_BYTES], "big")


def _is_approved(state: State, wanted: PendingApproval) -> bool:
    """Return whether each of these updates is approved. A stopped run has executed the others."""
    with state.begin_read_only() as tx:
        approved = tx.pending_approvals.get(wanted.stream)
    if approved is None or approved.approved_at is None or approved.what != wanted.what:
        return False
    return wanted.keys == approved.keys or set(wanted.key_hashes) <= set(approved.key_hashes)


def _updates_refused_error(
    bound: BoundStream,
    found: UpdateCandidates,
    wanted: PendingApproval,
    keys: list[str],
    members: Counter[str],
    before: int,
) -> RefusedError:
    limits, name, number = bound.stream.changes, bound.name, wanted.record_count
    cause = f"the mapping of {name} has changed {found.mapping_changed}: " if found.mapping_changed else ""
    earlier, nothing = (f" after {before:,} in this run", "nothing more") if before else ("", "nothing")
    changed = ", ".join(f"{member} ({count:,})" for member, count in members.most_common(LISTED))
    return RefusedError(
        f"{cause}{number:,} of {found.known:,} known records would be updated{earlier}, more than changes.at_most"
        f" ({limits.at_most:,}) and changes.at_most_percent ({limits.at_most_percent:g}); {nothing} of the stream is"
        f" imported. Members that change: {changed}; records: {', '.join(keys)}{', ...' * (number > LISTED)}",
        where=found.source or name,
        hint=f"list them: crossdock plan {name} --limit {number}; to allow the updates, after a sync that ended with"
        f" this message: crossdock approve {name} {number}",
        code="updates_refused",
    )
