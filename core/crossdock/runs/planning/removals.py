"""Removals: decides which gone records are archived or deleted now (law 4).

A record is removed if the stream is configured to, crossdock delivered it, nothing of it is open, and the number of
removals is within both limits or exactly these records are approved. It is gone if the source names it as deleted, or
if it is missing in a snapshot that is complete, new, and hides no key.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import polars as pl
from msgspec import Struct, field, structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta import fingerprint
from crossdock.delta.row_preparation import KEY_HASH
from crossdock.errors import CrossdockError, RefusedError
from crossdock.state import Binding, Intent, PastSnapshot, PendingApproval, RecordIdentity, State, Transaction, Wait
from crossdock.state.tables.inputs_of_streams import COMPARED_SNAPSHOTS
from crossdock.state.tables.pending_approvals_and_begun_undos import packed_key_hashes
from crossdock.values.raw_rows_and_records import Proof, RawBatch, Reason, Record
from crossdock.values.run_states_and_tally import Term
from crossdock.writing.delivery.operations_and_intents import Operation

FEWER_ROWS = 10  # a snapshot that lacks fewer rows is never called short, so that small sets do not warn


class SnapshotCompleteness:
    """Collects facts about the completeness of a snapshot while its batches are read.

    `doubt` is why records may be missing. `look_again` looks for such a reason at the source, which is slow, before
    records count as gone.
    """

    def __init__(self) -> None:
        self._proofs: set[Proof | None] = set()
        self.doubt: CrossdockError | None = None
        self.look_again: Callable[[pl.Series], CrossdockError | None] = lambda _: None

    def collect_proofs(self, batches: Iterable[RawBatch]) -> Iterator[RawBatch]:
        for batch in batches:
            self._proofs.add(batch.proof)
            yield batch

    def recheck_source_and_store_doubt(self, bound: BoundStream, missing: pl.Series) -> None:
        """Look at the source once more for *missing*, by their key hashes. A doubt is an error of the stream."""
        if self.doubt is None and (doubt := self.look_again(missing)) is not None:
            self.doubt = bound.context.run.failures.setdefault(bound.name, doubt)

    @property
    def has_proved_counts(self) -> bool:
        return bool(self._proofs) and all(proof is not None and proof.counted for proof in self._proofs)

    @property
    def may_be_truncated(self) -> bool:
        return any(proof is not None and proof.cut for proof in self._proofs)

    @property
    def unread(self) -> str:
        """What was not read and may belong to the snapshot; empty if there is nothing of the kind."""
        return ", ".join(sorted({proof.unread for proof in self._proofs if proof is not None and proof.unread}))

    def content_name(self) -> str | None:
        """Return the content name of the snapshot; None if its parts have none, or several."""
        names = {proof.content() if proof else None for proof in self._proofs}
        return names.pop() if len(names) == 1 else None

    def hashed_export_or_content_name(self) -> str | None:
        """Return the name of this export, or of the content if exports have no names; None as for `content_name`."""
        names = {(proof.export or proof.content()) if proof else None for proof in self._proofs}
        name = names.pop() if len(names) == 1 else None
        return None if name is None else hashlib.sha256(name.encode()).hexdigest()


class SnapshotFacts(Struct, frozen=True):
    """A snapshot that was read, and the open items of the stream.

    `filtered` returns those of given key hashes that the filtered rows have, or that exist although the list lacks
    them, and the number of filtered rows without a key. It is slow, and None if there are no such records.
    """

    source: str
    rows: int
    without_key: int
    records: int
    completeness: SnapshotCompleteness
    waiting: Sequence[Wait]
    unsettled: Sequence[Intent]
    filtered: Callable[[pl.Series], tuple[pl.Series, int]] | None = None
    name: Literal["snapshot", "full list", "list of existing records"] = "snapshot"


class SnapshotProofBlocker(Struct, frozen=True):
    """Why a snapshot does not prove that a record is gone. If it `ends_by_itself`, a later snapshot may prove it."""

    message: str
    hint: str | None = None
    ends_by_itself: bool = False
    may_be_approved: bool = True


def find_reason_snapshot_is_no_proof(
    tx: Transaction, bound: BoundStream, found: SnapshotFacts, filtered_without_key: int
) -> SnapshotProofBlocker | None:
    completeness, without_key = found.completeness, found.without_key + filtered_without_key
    if completeness.doubt is not None:
        return SnapshotProofBlocker(completeness.doubt.message, completeness.doubt.hint, ends_by_itself=True)
    is_declared = not found.rows and bound.stream.empty == "all_gone"
    if not found.records and not is_declared:
        message = f"the {found.name} lists no records"
        return SnapshotProofBlocker(message, f"an empty {found.name} never removes records", may_be_approved=False)
    if (hidden := _blocker_of_hidden_keys(found, without_key)) is not None:
        return hidden
    content = completeness.content_name()
    if content is not None and tx.snapshots.was_snapshot_read_before(bound.name, content):
        message = f"the {found.name} is identical to one that an earlier run processed"
        return SnapshotProofBlocker(message, "ask the sender whether the file is current")
    past = tx.snapshots.latest_snapshots(
        bound.name, COMPARED_SNAPSHOTS, without=completeness.hashed_export_or_content_name()
    )
    if not past or past[0].present is None:
        message = f"this is the first {found.name} that on_gone applies to, so there is none to compare it with"
        return SnapshotProofBlocker(message, ends_by_itself=True)
    return None if completeness.has_proved_counts or is_declared else _blocker_without_count(bound, found, past)


def _blocker_of_hidden_keys(found: SnapshotFacts, without_key: int) -> SnapshotProofBlocker | None:
    if without_key:
        rows = "1 row has" if without_key == 1 else f"{without_key:,} rows have"
        return SnapshotProofBlocker(
            f"{rows} no key and may belong to a missing record", "ask the sender to fix the rows"
        )
    if unread := found.completeness.unread:
        message = f"the {found.name} may have more than was read: {unread}"
        return SnapshotProofBlocker(
            message, "let the config read what belongs to it, or ask the sender for the usual names"
        )
    return None


def _blocker_without_count(
    bound: BoundStream, found: SnapshotFacts, past: Sequence[PastSnapshot]
) -> SnapshotProofBlocker | None:
    if found.completeness.may_be_truncated:
        hint = "a trailer with the number of rows proves that a file is complete"
        return SnapshotProofBlocker("the last line has no line break, so the file may be truncated", hint)
    if len(past) < COMPARED_SNAPSHOTS:
        message = f"without a stated number of rows, {COMPARED_SNAPSHOTS} earlier ones are needed to compare with"
        known = f"known: {len(past)}"
        if found.completeness.content_name() is not None:
            known += "; identical ones in which nothing was gone count once"
        return SnapshotProofBlocker(f"{message} ({known})", ends_by_itself=True)
    rows, within = found.rows, bound.stream.gone.rows_within_percent
    if any(abs(rows - earlier.rows) * 100 > within * earlier.rows for earlier in past):
        hint = (
            f"the difference exceeds gone.rows_within_percent ({within:g});"
            f" the new size is accepted once {COMPARED_SNAPSHOTS} in a row have it"
        )
        earlier_rows = ", ".join(f"{earlier.rows:,}" for earlier in past)
        return SnapshotProofBlocker(f"the {found.name} has {rows:,} rows; the previous ones had {earlier_rows}", hint)
    return None


def fewer_rows_warning(bound: BoundStream, rows: int, past: Sequence[PastSnapshot]) -> str | None:
    """Return a sentence if a snapshot of *rows* is much shorter than each of the *past* ones, or None."""
    percent = bound.stream.fewer_rows_percent
    if not past or any((earlier.rows - rows) * 100 <= percent * earlier.rows for earlier in past):
        return None
    if min(earlier.rows for earlier in past) - rows < FEWER_ROWS:
        return None
    earlier_rows = ", ".join(f"{earlier.rows:,}" for earlier in past)
    return (
        f"the snapshot has {rows:,} rows; the previous ones had {earlier_rows} (newest first), which is more than"
        f" fewer_rows_percent ({percent:g}) fewer: ask the sender whether the export is complete"
    )


def other_keys_warning(known: int, gone: int, new: int) -> str | None:
    """Return a sentence if a snapshot lists other keys than the *known* ones, or None."""
    if new < FEWER_ROWS or min(gone, new) * 2 <= known:
        return None
    return (
        f"the snapshot lists {new:,} new records, and {gone:,} of {known:,} known ones are gone: ask the sender whether"
        " the columns of the key have changed"
    )


def store_snapshot_for_later_comparisons(
    tx: Transaction, bound: BoundStream, rows: int, completeness: SnapshotCompleteness, run_id: int, *, unproved: bool
) -> None:
    """Store what later snapshots are compared with. An *unproved* one is known by its export, not by its content."""
    content, export = completeness.content_name(), completeness.hashed_export_or_content_name()
    name = (export if unproved else content) or f"run-{run_id}"
    counts = bound.stream.on_gone != "nothing"  # which is slow for many records
    past = PastSnapshot(rows, tx.snapshots.count_records_present_at_target(bound.scope) if counts else None)
    tx.snapshots.record_snapshot(bound.name, name, past, at=bound.context.run.clock.now(), instead_of=export)


def warn_if_unlike_past_snapshots(
    bound: BoundStream, state: State, completeness: SnapshotCompleteness, rows: int, known: int, gone: int, new: int
) -> None:
    with state.begin_read_only() as tx:
        past = tx.snapshots.latest_snapshots(
            bound.name, COMPARED_SNAPSHOTS, without=completeness.hashed_export_or_content_name()
        )
    for text in (fewer_rows_warning(bound, rows, past), other_keys_warning(known, gone, new)):
        if text is not None:
            bound.context.run.warn(bound.name, text, code="snapshot_differs")


LISTED = 5  # keys in a message
PART = 50_000  # keys per look-up
REFERENCED = "referenced: delete"  # the setting that deletes them nevertheless
REFERENCED_BY: Reason = "referenced_by"
_STEP = "_step"


class Removals(Struct, frozen=True):
    """The decisions about the records that are gone.

    Attributes:
        warning: Why no record is removed yet, if a later snapshot will decide.
        terms: The tally of the other records.
        unsettled: Whether operations on some of them must be settled first, so that the source must name them again.
        unproved: Whether the snapshot does not prove that they are gone. It is then read again.
    """

    removed: tuple[int, ...] = ()
    withheld: PendingApproval | None = None
    refusal: CrossdockError | None = None
    warning: str | None = None
    source: str = ""
    terms: Counter[Term] = field(default_factory=Counter)
    unsettled: bool = False
    unproved: bool = False


def decide_removals_of_unlisted_records(
    state: State, bound: BoundStream, gone: pl.Series, found: SnapshotFacts, *, at: datetime
) -> Removals:
    """Decide about *gone*, the key hashes that the state knows and the snapshot does not list."""
    if bound.stream.on_gone == "nothing" or gone.is_empty():
        return Removals(terms=Counter({"gone": len(gone), "ignored": len(gone)}))
    with state.begin_read_only() as tx:
        facts = _last_accepted_steps(tx, bound, gone)
        if bound.stream.on_gone == "archive":  # earlier archives are not counted again
            facts = facts.filter(pl.col(_STEP) != "remove")
        terms: Counter[Term] = Counter({"gone": facts.height})
        open_keys = [w.identity.key_hash for w in found.waiting] + [i.identity.key_hash for i in found.unsettled]
        candidates = _exclude_undelivered_or_rejected_removals(tx, bound, facts, terms)
        removable = _exclude_keys_and_count(candidates, _as_key_series(open_keys), terms, "ignored")
    without_key, is_open = 0, found.name == "snapshot" and len(removable) < len(candidates)
    if not removable.is_empty() and found.filtered is not None:
        filtered, without_key = found.filtered(removable)  # no transaction is open here
        removable = _exclude_keys_and_count(removable, filtered, terms, "ignored")
    if removable.is_empty():
        return Removals(terms=terms, unsettled=is_open)
    found.completeness.recheck_source_and_store_doubt(bound, removable)
    with state.begin() as tx:
        decided = _decide_by_snapshot_proof(tx, bound, removable, found, without_key, at)
    terms["ignored"] += 0 if decided.removed else len(removable)
    return structs.replace(decided, source=found.source, terms=terms, unsettled=is_open)


def find_never_sent_records_proved_gone(
    state: State, bound: BoundStream, unlisted: pl.Series, found: SnapshotFacts
) -> list[int]:
    """Return those of *unlisted*, key hashes of records that were never sent, that the snapshot proves to be gone."""
    if bound.stream.on_gone == "nothing" or unlisted.is_empty():
        return []
    without_key = 0
    if found.filtered is not None:
        filtered, without_key = found.filtered(unlisted)
        unlisted = unlisted.filter(~unlisted.is_in(filtered.implode()))
    if unlisted.is_empty():
        return []
    found.completeness.recheck_source_and_store_doubt(bound, unlisted)
    with state.begin_read_only() as tx:
        blocker = find_reason_snapshot_is_no_proof(tx, bound, found, without_key)
    return unlisted.to_list() if blocker is None else []


def decide_removals_of_records_named_deleted(
    state: State,
    bound: BoundStream,
    deleted: pl.Series,
    source: str,
    unsettled: Sequence[Intent],
    *,
    at: datetime,
    before: int = 0,
    fetched: Sequence[int] | None = None,
) -> Removals:
    """Decide about *deleted*, the key hashes of known records that the source names as deleted.

    Of a resource that is never removed, such as invoices, all of them are planned: they become dead letters.

    Args:
        before: How many records the run has deleted already, which count for the limits.
        fetched: Key hashes of the records that were fetched by key, if only these were read. Others that wait for
            approval are then asked for together with these, and count for the limits if they are to be fetched again.
    """
    is_rejected = is_resource_never_removed(bound)
    if (bound.stream.on_gone == "nothing" and not is_rejected) or deleted.is_empty():
        return Removals(terms=Counter({"ignored": len(deleted)}))
    open_keys = _as_key_series(intent.identity.key_hash for intent in unsettled)
    with state.begin() as tx:
        facts, terms = _last_accepted_steps(tx, bound, deleted), Counter[Term]()
        terms["ignored"] += len(deleted) - facts.height
        if bound.stream.on_gone == "archive":
            terms["ignored"] += facts.filter(pl.col(_STEP) == "remove").height
            facts = facts.filter(pl.col(_STEP) != "remove")
        removable = _exclude_keys_and_count(
            _exclude_undelivered_or_rejected_removals(tx, bound, facts, terms), open_keys, terms, "carried_on"
        )
        found = Removals(removed=tuple(removable.sort().to_list()) if is_rejected else ())
        if not is_rejected and not removable.is_empty():
            has_lists = bound.stream.lists_existing or bound.stream.rereads_gone
            past = tx.snapshots.latest_snapshots(bound.name, 1) if has_lists else []
            asked, waiting = ([], 0) if fetched is None else _unfetched_awaiting_approval(tx, bound, fetched)
            earlier = _EarlierRemovals(before + waiting, asked, past)
            found = _decide_by_limits(tx, bound, removable, source, unsettled, at, earlier)
    terms["ignored"] += 0 if found.removed else len(removable)
    return structs.replace(found, source=source, terms=terms, unsettled=bool(terms["carried_on"]))


def _decide_by_snapshot_proof(
    tx: Transaction, bound: BoundStream, removable: pl.Series, found: SnapshotFacts, without_key: int, at: datetime
) -> Removals:
    """Remove all of *removable* or none, after checking the snapshot, the limits and the approval."""
    reason = find_reason_snapshot_is_no_proof(tx, bound, found, without_key)
    if reason is None:
        past = tx.snapshots.latest_snapshots(bound.name, 1, without=found.completeness.hashed_export_or_content_name())
        return _decide_by_limits(tx, bound, removable, found.source, found.unsettled, at, _EarlierRemovals(past=past))
    message = f"{_gone_text(len(removable))} and not removed: {reason.message}"
    if reason.ends_by_itself:
        return Removals(warning=f"{found.source}: {message}", unproved=True)
    if not reason.may_be_approved:
        return Removals(
            refusal=RefusedError(message, where=found.source, hint=reason.hint, code="removals_refused"), unproved=True
        )
    wanted = _new_pending_approval(bound, removable.to_list(), at)
    if _is_approved(tx, bound, wanted, found.unsettled):
        return Removals(removed=tuple(removable.sort().to_list()))
    hint = f"{reason.hint}; {_approval_hint(bound, wanted)}"
    return Removals(
        withheld=wanted,
        refusal=RefusedError(message, where=found.source, hint=hint, code="removals_refused"),
        unproved=True,
    )


class _EarlierRemovals(NamedTuple):
    """What counts besides the records at hand. The *past* snapshot gives a repeated run the same limit."""

    number: int = 0
    asked: Sequence[int] = ()
    past: Sequence[PastSnapshot] = ()


def _new_pending_approval(bound: BoundStream, key_hashes: Sequence[int], at: datetime) -> PendingApproval:
    return PendingApproval(
        bound.name, f"{bound.stream.on_gone} {bound.records_text}", packed_key_hashes(key_hashes), at
    )


def _decide_by_limits(
    tx: Transaction,
    bound: BoundStream,
    removable: pl.Series,
    source: str,
    unsettled: Sequence[Intent],
    at: datetime,
    earlier: _EarlierRemovals,
) -> Removals:
    """Remove all of *removable* or none, by limits and approval. Deletes that were held back do not count again."""
    held_back = _kept_for_references(tx, bound)
    fresh = [each for each in removable.to_list() if each not in held_back]
    wanted = _new_pending_approval(bound, [*fresh, *earlier.asked], at)
    excess = _exceeded_limit_text(tx, bound, earlier.number + len(fresh), earlier.past) if fresh else None
    if excess is None or _is_approved(tx, bound, wanted, unsettled):
        return Removals(removed=tuple(removable.sort().to_list()))
    return Removals(withheld=wanted, refusal=_limit_error(tx, bound, wanted, excess, source))


def removal_operation(bound: BoundStream, binding: Binding, source: str) -> Operation:
    """Make the operation that removes a record: an archive without changes if the record is inactive already."""
    archives = bound.stream.on_gone == "archive"
    return Operation(
        kind="update" if archives else "delete",
        identity=RecordIdentity(bound.name, binding.key, binding.key_hash, None, binding.position, source, 0),
        scope=bound.scope,
        record=Record(binding.key, (), source, (0,)),
        after={**binding.payload, "active": False} if archives else {},
        changes={"active": False} if archives and binding.payload.get("active") is not False else {},
        binding=binding,
        step="remove",
    )


def is_resource_never_removed(bound: BoundStream) -> bool:
    """Return whether what was delivered stays whatever the source says, so that a person must decide about it."""
    return bound.resource_type.write_once and not bound.resource_type.deletes


def operation_kind_or_archive(operation: Operation) -> str:
    """Return the operation's name in plans and reports: its kind, or ``archive``."""
    return "archive" if operation.kind == "update" and operation.step == "remove" else operation.kind


# ---- which records may be removed


def _exclude_undelivered_or_rejected_removals(
    tx: Transaction, bound: BoundStream, facts: pl.DataFrame, terms: Counter[Term]
) -> pl.Series:
    """Return the delivered records whose removal was not rejected, except for references, and count the others."""
    delivered = facts.filter(pl.col(_STEP) != "import")[KEY_HASH]
    terms["ignored"] += facts.height - len(delivered)
    rejected = [each for each in tx.dead_letters.facts_of_all_letters_of_stream(bound.name) if each.step == "remove"]
    held_back = _kept_for_references(tx, bound)
    final = (e.key_hash for e in rejected if e.status == "rejected" and e.key_hash not in held_back)
    rest = _exclude_keys_and_count(delivered, _as_key_series(final), terms, "rejected")
    return _exclude_keys_and_count(
        rest, _as_key_series(e.key_hash for e in rejected if e.status == "dropped"), terms, "dropped"
    )


def _kept_for_references(tx: Transaction, bound: BoundStream) -> set[int]:
    rejected = (
        e
        for e in tx.dead_letters.facts_of_all_letters_of_stream(bound.name)
        if e.step == "remove" and e.status == "rejected"
    )
    codes = tx.dead_letters.reason_code_by_key_hash(bound.name, [each.key_hash for each in rejected])
    return {key_hash for key_hash, code in codes.items() if code == REFERENCED_BY}


def _last_accepted_steps(tx: Transaction, bound: BoundStream, keys: pl.Series) -> pl.DataFrame:
    schema = {KEY_HASH: fingerprint.HASH, _STEP: pl.String}
    return pl.concat(  # in parts: tuples of a whole table would exceed the memory bound
        pl.DataFrame(
            list(tx.snapshots.accepted_steps_of_live_bindings(bound.scope, part[KEY_HASH].to_list())),
            schema=schema,
            orient="row",
        )
        for part in keys.to_frame(KEY_HASH).iter_slices(PART)
    )


def _as_key_series(hashes: Iterable[int]) -> pl.Series:
    return pl.Series(KEY_HASH, list(hashes), dtype=fingerprint.HASH)


def _exclude_keys_and_count(keys: pl.Series, others: pl.Series, terms: Counter[Term], term: Term) -> pl.Series:
    rest = keys.to_frame(KEY_HASH).join(others.to_frame(KEY_HASH), on=KEY_HASH, how="anti")[KEY_HASH]
    terms[term] += len(keys) - len(rest)
    return rest


# ---- limits and approval


def _exceeded_limit_text(tx: Transaction, bound: BoundStream, number: int, past: Sequence[PastSnapshot]) -> str | None:
    """Return a clause that names the limit that *number* removals exceed; None if they are within both."""
    present = past[0].present or 0 if past else tx.snapshots.count_records_present_at_target(bound.scope)
    limits, present = bound.stream.gone, max(present, number)  # a restored state has found some again
    if number > limits.at_most:
        return f"{_gone_text(number)}, more than gone.at_most ({limits.at_most:,})"
    if number * 100 > limits.at_most_percent * present:
        return f"{_gone_text(number, present)}, more than gone.at_most_percent ({limits.at_most_percent:g})"
    return None


def _is_approved(tx: Transaction, bound: BoundStream, wanted: PendingApproval, unsettled: Sequence[Intent]) -> bool:
    """Return whether exactly these records are approved, or these and others that a stopped run has removed already."""
    approved = tx.pending_approvals.get(bound.name)
    if approved is None or approved.approved_at is None or approved.what != wanted.what:
        return False
    approved_keys, wanted_keys = set(approved.key_hashes), set(wanted.key_hashes)
    if not wanted_keys <= approved_keys:
        return False
    others = sorted(approved_keys - wanted_keys)
    present = {
        key_hash
        for key_hash, step in tx.snapshots.accepted_steps_of_live_bindings(bound.scope, others)
        if step != "remove"
    }
    removing = {intent.identity.key_hash for intent in unsettled if intent.step == "remove"}
    rejected = {
        each.key_hash for each in tx.dead_letters.facts_of_all_letters_of_stream(bound.name) if each.step == "remove"
    }
    return present <= removing | rejected


def _unfetched_awaiting_approval(tx: Transaction, bound: BoundStream, fetched: Sequence[int]) -> tuple[list[int], int]:
    """Return the records without *fetched* whose removal waits for approval, and how many count for the limits."""
    pending = tx.pending_approvals.get(bound.name)
    if pending is None or pending.what != _new_pending_approval(bound, (), pending.since).what:
        return [], 0
    others = sorted({*pending.key_hashes} - {*fetched})
    return others, 0 if pending.approved_at else len(tx.inbox.key_hashes_among(bound.name, others))


def withheld_removals_error(tx: Transaction, bound: BoundStream) -> RefusedError | None:
    """Return the error of a stream with hints for records whose removal waits for approval; None without any."""
    pending = tx.pending_approvals.get(bound.name)
    if pending is None or pending.approved_at or not tx.inbox.key_hashes_among(bound.name, pending.key_hashes):
        return None
    return RefusedError(
        f"{_gone_text(pending.record_count)} and not removed",
        hint=_approval_hint(bound, pending),
        code="removals_refused",
    )


def _limit_error(
    tx: Transaction, bound: BoundStream, wanted: PendingApproval, excess: str, source: str
) -> RefusedError:
    bindings = tx.bindings.get(bound.scope, wanted.key_hashes[:LISTED]).values()
    names = ", ".join(binding.key for binding in bindings) + (", ..." if wanted.record_count > LISTED else "")
    return RefusedError(
        f"{excess}; none of them is removed: {names}",
        where=source,
        hint=_approval_hint(bound, wanted),
        code="removals_refused",
    )


def _approval_hint(bound: BoundStream, wanted: PendingApproval) -> str:
    return (
        f"list them: crossdock plan {bound.name} --limit {wanted.record_count}; to allow the removal, after a sync that"
        f" ended with this message: crossdock approve {bound.name} {wanted.record_count}"
    )


def _gone_text(number: int, present: int | None = None) -> str:
    records = "record" if number == 1 and present is None else "records"
    of = "" if present is None else f" of {present:,}"
    return f"{number:,}{of} {records} {'is' if number == 1 else 'are'} gone"
