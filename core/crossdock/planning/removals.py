"""Records that a snapshot no longer lists: which of them are removed now, and why the others are not (law 4).

Removing needs all of this: the stream asks for it; we delivered the record; nothing of it is under way; the snapshot
proves that it is whole, and hides no key; and both limits hold, or a person has approved exactly these records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

import polars as pl

from crossdock.delivery.operations import Operation
from crossdock.delta import fingerprint
from crossdock.delta.keyed_rows import KEY_HASH
from crossdock.errors import RefusedError
from crossdock.planning.completeness import SnapshotFacts, blocker
from crossdock.project.project import BoundStream
from crossdock.records import Record
from crossdock.state import Binding, PendingRemoval, RecordIdentity, State, Transaction
from crossdock.state.tables.snapshot_history import packed
from crossdock.tally import Term

TOLD = 5  # keys that a message names
PART = 50_000  # keys looked up together
_STEP = "_step"


@dataclass(frozen=True, slots=True)
class Removals:
    """What becomes of the records that a snapshot no longer lists.

    Attributes:
        removed: Key hashes of those that are removed now.
        withheld: The removal that waits for a person's approval.
        refusal: Why it waits, or why the snapshot must not remove anything.
        warning: Why nothing is removed yet, where that will pass by itself.
        source: The snapshot, for provenance.
        terms: How those are counted of which nothing more needs to be decided.
    """

    removed: tuple[int, ...] = ()
    withheld: PendingRemoval | None = None
    refusal: RefusedError | None = None
    warning: str | None = None
    source: str = ""
    terms: Counter[Term] = field(default_factory=Counter)


def decide(state: State, bound: BoundStream, lost: pl.Series, found: SnapshotFacts, *, at: datetime) -> Removals:
    """Decide about *lost*, the key hashes of records that the state knows and the snapshot does not list.

    Args:
        at: Now.
    """
    if bound.stream.on_gone == "nothing" or lost.is_empty():
        return Removals(terms=Counter({"gone": len(lost), "ignored": len(lost)}))
    with state.look() as tx:
        removable, terms = _removable(tx, bound, lost, found)
    nameless = 0
    if not removable.is_empty() and any(found.rows.rows_filtered.values()):
        hidden, nameless = found.scan.filtered(removable)  # takes its time, and holds no transaction open
        removable = _without(removable, hidden, terms, "ignored")
    if removable.is_empty():
        return Removals(terms=terms)
    with state.begin() as tx:
        return _judged(tx, bound, removable, terms, found, nameless, at)


def _judged(
    tx: Transaction,
    bound: BoundStream,
    removable: pl.Series,
    terms: Counter[Term],
    found: SnapshotFacts,
    nameless: int,
    at: datetime,
) -> Removals:
    number = len(removable)
    reason = blocker(tx, bound, found, nameless)
    if reason is not None:
        terms["ignored"] += number
        told = f"{_are_gone(number)} and not removed: {reason.message}"
        if not reason.is_grave:
            return Removals(warning=f"{bound.name}: {found.source}: {told}", source=found.source, terms=terms)
        refusal = RefusedError(told, where=found.source, hint=reason.hint)
        return Removals(refusal=refusal, source=found.source, terms=terms)
    wanted = _wanted(bound, removable, at)
    exceeded = _exceeded(tx, bound, number)
    if exceeded is None or _is_approved(tx, bound, wanted, found):
        return Removals(removed=tuple(removable.sort().to_list()), source=found.source, terms=terms)
    terms["ignored"] += number
    refusal = _stopped(tx, bound, wanted, exceeded, found)
    return Removals(withheld=wanted, refusal=refusal, source=found.source, terms=terms)


def removal(bound: BoundStream, binding: Binding, source: str) -> Operation:
    """What removes the record of *binding*; an archive without changes where it is inactive already."""
    archives = bound.stream.on_gone == "archive"
    after = {**binding.payload, "active": False} if archives else {}
    return Operation(
        kind="update" if archives else "delete",
        identity=RecordIdentity(bound.name, binding.key, binding.key_hash, None, binding.position, source, 0),
        scope=bound.scope,
        record=Record(binding.key, (), source, (0,)),
        after=after,
        changes={"active": False} if archives and binding.payload.get("active") is not False else {},
        binding=binding,
        step="remove",
    )


def verb(operation: Operation) -> str:
    """What *operation* is called where people read it: its kind, or ``archive``."""
    return "archive" if operation.kind == "update" and operation.step == "remove" else operation.kind


# ---- which records may be removed


def _removable(
    tx: Transaction, bound: BoundStream, lost: pl.Series, found: SnapshotFacts
) -> tuple[pl.Series, Counter[Term]]:
    """Those of *lost* that we delivered and of which nothing is open, and how all others are counted.

    What was archived when it went is gone no more than what was deleted: it is not counted again.
    """
    facts = _facts(tx, bound, lost)
    if bound.stream.on_gone == "archive":
        facts = facts.filter(pl.col(_STEP) != "remove")
    terms: Counter[Term] = Counter({"gone": facts.height})
    ours = facts.filter(pl.col(_STEP) != "import")[KEY_HASH]
    terms["ignored"] += facts.height - len(ours)
    rejected = [each for each in tx.dead_letters.facts(bound.name) if each.step == "remove"]
    under_way = [w.identity.key_hash for w in found.waiting] + [i.identity.key_hash for i in found.unsettled]
    ours = _without(ours, _keys(under_way), terms, "ignored")
    ours = _without(ours, _keys(each.key_hash for each in rejected if each.status == "rejected"), terms, "rejected")
    ours = _without(ours, _keys(each.key_hash for each in rejected if each.status == "dropped"), terms, "dropped")
    return ours, terms


def _facts(tx: Transaction, bound: BoundStream, keys: pl.Series) -> pl.DataFrame:
    schema = {KEY_HASH: fingerprint.HASH, _STEP: pl.String}
    return pl.concat(  # in parts: as many Python tuples as a whole table has records would not fit
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


# ---- whether they are too many


def _exceeded(tx: Transaction, bound: BoundStream, number: int) -> str | None:
    """The limit that *number* exceeds."""
    limits, (before, *_) = bound.stream.gone, tx.snapshots.latest(bound.name, 1)
    present = before.present or 0  # as it was before tonight, however often tonight is read
    if number > limits.at_most:
        return f"more than gone.at_most ({limits.at_most:,})"
    if number * 100 > limits.at_most_percent * present:
        return f"of {present:,}, more than gone.at_most_percent ({limits.at_most_percent:g})"
    return None


def _wanted(bound: BoundStream, keys: pl.Series, at: datetime) -> PendingRemoval:
    what = f"{bound.stream.on_gone} {bound.stream.resource} in {bound.namespace}"
    return PendingRemoval(bound.name, what, packed(keys.to_list()), at)


def _is_approved(tx: Transaction, bound: BoundStream, wanted: PendingRemoval, found: SnapshotFacts) -> bool:
    """True if a person has approved exactly this, or more of which the rest has been done by a run that was stopped."""
    approved = tx.snapshots.get(bound.name)
    if approved is None or approved.approved_at is None or approved.what != wanted.what:
        return False
    all_of_it, rest = set(approved.key_hashes), set(wanted.key_hashes)
    if not rest <= all_of_it:
        return False
    steps = tx.snapshots.steps(bound.scope, sorted(all_of_it - rest))
    still_there = {key_hash for key_hash, step in steps if step != "remove"}
    under_way = {intent.identity.key_hash for intent in found.unsettled if intent.step == "remove"}
    rejected = {each.key_hash for each in tx.dead_letters.facts(bound.name) if each.step == "remove"}
    return still_there <= under_way | rejected


def _stopped(
    tx: Transaction, bound: BoundStream, wanted: PendingRemoval, exceeded: str, found: SnapshotFacts
) -> RefusedError:
    some = wanted.key_hashes[:TOLD]
    names = ", ".join(binding.key for binding in tx.bindings.get(bound.scope, some).values())
    more = ", ..." if wanted.number > TOLD else ""
    return RefusedError(
        f"{_are_gone(wanted.number)}, {exceeded}, and none of them is removed: {names}{more}",
        where=found.source,
        hint=f"see them: crossdock plan {bound.name} --limit {wanted.number}; if they may go, once a sync has said so:"
        f" crossdock approve {bound.name} {wanted.number}",
    )


def _are_gone(number: int) -> str:
    return "1 record is gone" if number == 1 else f"{number:,} records are gone"
