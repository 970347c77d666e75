"""Removals: which records that a snapshot no longer lists are archived or deleted now (law 4).

A record is removed if the stream is configured to, crossdock delivered it, nothing of it is open, the snapshot is
complete and hides no key, and the number of removals is within both limits or exactly these records are approved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

import polars as pl

from crossdock.delivery.operations import Operation
from crossdock.delta import fingerprint
from crossdock.delta.row_preparation import KEY_HASH
from crossdock.errors import RefusedError
from crossdock.planning.completeness import SnapshotFacts, blocker
from crossdock.project.connector_instances import BoundStream
from crossdock.records import Record
from crossdock.state import Binding, PendingApproval, RecordIdentity, State, Transaction
from crossdock.state.tables.removal_evidence import packed
from crossdock.tally import Term

LISTED = 5  # keys in a message
PART = 50_000  # keys per look-up
_STEP = "_step"


@dataclass(frozen=True, slots=True)
class Removals:
    """What happens to the records that a snapshot no longer lists.

    Attributes:
        removed: Key hashes of the records to remove in this run.
        withheld: The removals that need approval.
        refusal: Why it needs approval, or why the snapshot must not remove any record.
        warning: Why no record is removed yet, where a later snapshot will resolve it.
        source: The snapshot's file or page.
        terms: Tally of the records about which nothing else is decided.
    """

    removed: tuple[int, ...] = ()
    withheld: PendingApproval | None = None
    refusal: RefusedError | None = None
    warning: str | None = None
    source: str = ""
    terms: Counter[Term] = field(default_factory=Counter)


def decide(state: State, bound: BoundStream, gone: pl.Series, found: SnapshotFacts, *, at: datetime) -> Removals:
    """Decide about *gone*, the key hashes that the state knows and the snapshot does not list."""
    if bound.stream.on_gone == "nothing" or gone.is_empty():
        return Removals(terms=Counter({"gone": len(gone), "ignored": len(gone)}))
    with state.look() as tx:
        removable, terms = _removable(tx, bound, gone, found)
    without_key = 0
    if not removable.is_empty() and any(found.rows.rows_filtered.values()):
        filtered, without_key = found.scan.filtered(removable)  # slow, so no transaction is open
        removable = _without(removable, filtered, terms, "ignored")
    if removable.is_empty():
        return Removals(terms=terms)
    with state.begin() as tx:
        decided = _checked(tx, bound, removable, found, without_key, at)
    terms["ignored"] += 0 if decided.removed else len(removable)
    return replace(decided, source=found.source, terms=terms)


def _checked(
    tx: Transaction, bound: BoundStream, removable: pl.Series, found: SnapshotFacts, without_key: int, at: datetime
) -> Removals:
    """Remove all of *removable* or none, after the checks of the snapshot, the limits and the approval."""
    number = len(removable)
    if reason := blocker(tx, bound, found, without_key):
        message = f"{_gone(number)} and not removed: {reason.message}"
        if not reason.is_grave:
            return Removals(warning=f"{bound.name}: {found.source}: {message}")
        return Removals(refusal=RefusedError(message, where=found.source, hint=reason.hint))
    what = f"{bound.stream.on_gone} {bound.stream.resource} in {bound.namespace}"
    wanted = PendingApproval(bound.name, what, packed(removable.to_list()), at)
    excess = _excess(tx, bound, number)
    if excess is None or _is_approved(tx, bound, wanted, found):
        return Removals(removed=tuple(removable.sort().to_list()))
    return Removals(withheld=wanted, refusal=_refusal(tx, bound, wanted, excess, found))


def removal(bound: BoundStream, binding: Binding, source: str) -> Operation:
    """The operation that removes a record; an archive without changes if the record is inactive already."""
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


def verb(operation: Operation) -> str:
    """The operation's name in plans and reports: its kind, or ``archive``."""
    return "archive" if operation.kind == "update" and operation.step == "remove" else operation.kind


# ---- which records may be removed


def _removable(
    tx: Transaction, bound: BoundStream, gone: pl.Series, found: SnapshotFacts
) -> tuple[pl.Series, Counter[Term]]:
    """The records of *gone* that crossdock delivered and that have nothing open, and the tally of the others.

    Records that were archived by an earlier run are not counted again.
    """
    facts = _steps(tx, bound, gone)
    if bound.stream.on_gone == "archive":
        facts = facts.filter(pl.col(_STEP) != "remove")
    terms: Counter[Term] = Counter({"gone": facts.height})
    delivered = facts.filter(pl.col(_STEP) != "import")[KEY_HASH]
    terms["ignored"] += facts.height - len(delivered)
    rejected = [each for each in tx.dead_letters.facts(bound.name) if each.step == "remove"]
    open_keys = [w.identity.key_hash for w in found.waiting] + [i.identity.key_hash for i in found.unsettled]
    rest = _without(delivered, _keys(open_keys), terms, "ignored")
    rest = _without(rest, _keys(each.key_hash for each in rejected if each.status == "rejected"), terms, "rejected")
    rest = _without(rest, _keys(each.key_hash for each in rejected if each.status == "dropped"), terms, "dropped")
    return rest, terms


def _steps(tx: Transaction, bound: BoundStream, keys: pl.Series) -> pl.DataFrame:
    schema = {KEY_HASH: fingerprint.HASH, _STEP: pl.String}
    return pl.concat(  # in parts: tuples of a whole table would exceed the memory bound
        pl.DataFrame(list(tx.snapshots.steps(bound.scope, part[KEY_HASH].to_list())), schema=schema, orient="row")
        for part in keys.to_frame(KEY_HASH).iter_slices(PART)
    )


def _keys(hashes: Iterable[int]) -> pl.Series:
    return pl.Series(KEY_HASH, list(hashes), dtype=fingerprint.HASH)


def _without(keys: pl.Series, others: pl.Series, terms: Counter[Term], term: Term) -> pl.Series:
    """*keys* without *others*, which are counted as *term*."""
    rest = keys.to_frame(KEY_HASH).join(others.to_frame(KEY_HASH), on=KEY_HASH, how="anti")[KEY_HASH]
    terms[term] += len(keys) - len(rest)
    return rest


# ---- limits and approval


def _excess(tx: Transaction, bound: BoundStream, number: int) -> str | None:
    """A clause that says by which limit *number* removals are too many; None if they are within both."""
    limits, (previous, *_) = bound.stream.gone, tx.snapshots.latest(bound.name, 1)
    present = previous.present or 0  # before this snapshot, so that a repeated run has the same limit
    if number > limits.at_most:
        return f"{_gone(number)}, more than gone.at_most ({limits.at_most:,})"
    if number * 100 > limits.at_most_percent * present:
        return f"{_gone(number, present)}, more than gone.at_most_percent ({limits.at_most_percent:g})"
    return None


def _is_approved(tx: Transaction, bound: BoundStream, wanted: PendingApproval, found: SnapshotFacts) -> bool:
    """True if exactly these records are approved, or these and others that a stopped run has removed already."""
    approved = tx.snapshots.get(bound.name)
    if approved is None or approved.approved_at is None or approved.what != wanted.what:
        return False
    approved_keys, wanted_keys = set(approved.key_hashes), set(wanted.key_hashes)
    if not wanted_keys <= approved_keys:
        return False
    others = sorted(approved_keys - wanted_keys)
    present = {key_hash for key_hash, step in tx.snapshots.steps(bound.scope, others) if step != "remove"}
    unsettled = {intent.identity.key_hash for intent in found.unsettled if intent.step == "remove"}
    rejected = {each.key_hash for each in tx.dead_letters.facts(bound.name) if each.step == "remove"}
    return present <= unsettled | rejected


def _refusal(
    tx: Transaction, bound: BoundStream, wanted: PendingApproval, excess: str, found: SnapshotFacts
) -> RefusedError:
    bindings = tx.bindings.get(bound.scope, wanted.key_hashes[:LISTED]).values()
    names = ", ".join(binding.key for binding in bindings) + (", ..." if wanted.number > LISTED else "")
    return RefusedError(
        f"{excess}; none of them is removed: {names}",
        where=found.source,
        hint=f"list them: crossdock plan {bound.name} --limit {wanted.number}; to allow the removal, after a sync that"
        f" ended with this message: crossdock approve {bound.name} {wanted.number}",
    )


def _gone(number: int, present: int | None = None) -> str:
    records = "record" if number == 1 and present is None else "records"
    of = "" if present is None else f" of {present:,}"
    return f"{number:,}{of} {records} {'is' if number == 1 else 'are'} gone"
