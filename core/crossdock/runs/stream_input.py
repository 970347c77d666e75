"""Everything a stream brings to a run: what it reads, what changed of it, and what waited."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import chain

import polars as pl

from crossdock.delta import compare
from crossdock.delta.keyed_rows import FP, KEY_HASH
from crossdock.delta.scan import KeyedRecord, Scan
from crossdock.errors import CrossdockError
from crossdock.planning.completeness import Completeness, SnapshotFacts
from crossdock.planning.removals import Removals, decide
from crossdock.project.connector_errors import FailureCount, connector_code
from crossdock.project.project import BoundStream
from crossdock.records import Record
from crossdock.runs.pull import pulled
from crossdock.state import Intent, PastSnapshot, State, Transaction, WaitingRecord
from crossdock.state.sidecar_files import key_index
from crossdock.tally import Tally

_IN_LINE = 10_000  # rows for each one that is out of line with the key index, which then keeps its order


class StreamInput:
    """One stream's turn in a run.

    Args:
        digested: Whether `digest` is wanted.

    Attributes:
        digest: A hash over which records were read and what they say, under which mapping, whatever their order.
    """

    def __init__(self, bound: BoundStream, state: State, tally: Tally, run_id: int, *, digested: bool = False) -> None:
        self._bound, self._state, self._tally, self._run_id = bound, state, tally, run_id
        self._digested, self.digest = digested, ""
        self._waiting: list[WaitingRecord] = []
        self._scan = Scan(bound.stream, bound.name, bound.context.place.work)
        self._delta: compare.Delta | None = None
        self._order: pl.Series | None = None  # the keys as they were listed, if the index has them in another order
        self._completeness, self._gone = Completeness(), Removals()
        self._rows = 0
        self._left_alone: set[int] = set()  # keys that wait, while an operation of theirs is not settled

    def read(self, unsettled: list[Intent], advance: Callable[[int], None]) -> None:
        """Read the source and compare it with the state; counts all that needs no decision.

        Args:
            unsettled: Intents of this stream that stay in doubt: their keys are left alone.
            advance: Told how many rows each batch had; what it raises ends the reading.

        Raises:
            CrossdockError: If the source fails or is refused; nothing of it has entered.
        """
        bound, name = self._bound, self._bound.name
        with self._state.look() as tx:
            self._waiting = tx.waiting_records.of(name)
            since = tx.cursors.get(name, bound.stream.version)
        bound.context.place.progress.begin(f"reading {name}", None)
        counted = Tally()
        with closing(pulled(bound, since)) as batches:
            known = partial(self._state.known_in_order, bound.scope) if bound.stream.mode == "snapshot" else None
            self._scan.take(self._completeness.watched(batches), counted, advance, known)
        self.digest = self._digest() if self._digested else ""
        self.accept()
        found = self._delta = self._compared(unsettled)
        self._state.read_ahead(found.changed.height)
        self._order = self._new_order(found)
        beside = SnapshotFacts(self._scan, self._completeness, counted, self._waiting, unsettled)
        self._gone = decide(self._state, bound, found.gone, beside, at=bound.context.place.clock.now())
        self._scan.forget()
        self._rows = counted.rows_read
        self._tally.take_rows(counted)
        if self._gone.warning is not None:
            bound.context.place.progress.warn(self._gone.warning)
        self._left_alone = {w.identity.key_hash for w in self._waiting} & {
            intent.identity.key_hash for intent in unsettled
        }
        self._left_alone -= set(found.replaced)
        self._count(found)

    def _compared(self, unsettled: list[Intent]) -> compare.Delta:
        scan, snapshot = self._scan, self._is_snapshot
        nothing = not scan.latest.height and not snapshot
        known = key_index.nothing() if nothing else self._known()
        with self._state.look() as tx:
            dead_letters = tx.dead_letters.facts(self._bound.name)
        return compare.compare(
            scan.latest, known, dead_letters=dead_letters, waiting=self._waiting, unsettled=unsettled, snapshot=snapshot
        )

    def _new_order(self, found: compare.Delta) -> pl.Series | None:
        """The keys as they were listed, if so many are elsewhere in the key index that the next night would suffer.

        None after a first load, which has enough to do: the night after it puts them in order.
        """
        key_order, latest = self._scan.key_order, self._scan.latest
        new = latest.height - found.known
        if key_order is None or new > found.known or (key_order.steps + new) * _IN_LINE <= latest.height:
            return None
        return latest[KEY_HASH]

    def _known(self) -> pl.DataFrame:
        """What the state knows of the scope, unless it is held since the first row was read."""
        key_order = self._scan.key_order
        held = key_order.known if key_order else None
        return self._state.known(self._bound.scope) if held is None else held

    def accept(self) -> None:
        """Called once everything is read, before anything of it is counted; may refuse it."""

    @property
    def _is_snapshot(self) -> bool:
        """True if what was read lists everything."""
        return self._bound.stream.mode == "snapshot" and bool(self._scan.sources)

    def _digest(self) -> str:
        latest = self._scan.latest.sort(KEY_HASH)
        summed = hashlib.sha256(self._bound.stream.version.encode())
        for name in (KEY_HASH, FP):
            summed.update(b"".join(value.to_bytes(16, "big") for value in latest[name].to_list()))
        return summed.hexdigest()

    def _count(self, found: compare.Delta) -> None:
        tally = self._tally
        tally.count("carried_over", len(self._waiting))
        tally.count("unchanged", found.unchanged)
        tally.count("rejected", found.refused)
        tally.count("dropped", found.dropped)
        tally.count("ignored", found.ignored)
        tally.records.update(self._gone.terms)
        tally.count("replaced", len(found.replaced))
        tally.count("carried_on", found.blocked + len(self._left_alone))

    def give_up(self) -> None:
        """The source failed: what waited goes on waiting."""
        self._tally.count("carried_over", len(self._waiting))
        self._tally.count("carried_on", len(self._waiting))

    @property
    def expected(self) -> int:
        """How many records `records` will give."""
        return self._to_map + len(self._gone.removed)

    @property
    def _to_map(self) -> int:
        assert self._delta is not None
        return self._delta.changed.height + len(self._waiting) - len(self._delta.replaced) - len(self._left_alone)

    def failing(self) -> FailureCount:
        """Says when the mapping fails at too many of the records that are new, changed or waiting."""
        return FailureCount(self._bound, self._to_map)

    @property
    def gone(self) -> Removals:
        """What becomes of the records that are not listed any more, once all of `records` is settled."""
        return self._gone

    def records(self) -> Iterator[KeyedRecord]:
        """What must be decided on: first what waited, longest first, then what was read, in its order.

        Raises:
            CrossdockError: If the source fails when it is read again; what it does not give is carried on.
        """
        assert self._delta is not None
        given = 0
        passed_over = {*self._delta.replaced, *self._left_alone}
        waited = (
            KeyedRecord(Record.restored(w.identity.key, w.identity.source, w.raw), w.identity)
            for w in self._waiting
            if w.identity.key_hash not in passed_over
        )
        try:
            for given, read in enumerate(chain(waited, self._scan.records(self._delta.changed)), 1):  # noqa: B007
                yield read
        except CrossdockError:
            self._tally.count("carried_on", self._to_map - given)  # none of them can be counted by itself
            raise

    def finish(self) -> None:
        """Every record is settled or kept: the source need not be read again, and cured records are no dead letters."""
        assert self._delta is not None
        bound = self._bound
        with self._state.begin() as tx:
            tx.dead_letters.put(self._scan.keyless, run_id=self._run_id, at=bound.context.place.clock.now())
            tx.dead_letters.clear_keyless(bound.name, self._scan.sources, run_id=self._run_id)
            tx.dead_letters.clear(bound.name, self._delta.cured)
            tx.waiting_records.clear(bound.name, self._delta.unmoved)
            done = self._is_done(tx)
            if done and self._scan.cursor is not None:
                tx.cursors.put(bound.name, bound.stream.version, self._scan.cursor)
        self._state.publish(bound.scope, self._order)
        if done:
            with connector_code(bound, "finished"):
                bound.stream.finished(bound.context)

    def _is_done(self, tx: Transaction) -> bool:
        """Whether the source need not be read again: nothing of it is withheld or waits for a doubt to be settled."""
        assert self._delta is not None
        if self._gone.withheld is not None:
            tx.snapshots.ask(self._gone.withheld)
            return False
        if self._is_snapshot:
            tx.snapshots.forget(self._bound.name)
        if self._delta.blocked:
            return False
        if self._is_snapshot:
            self._remember(tx)
        return True

    def _remember(self, tx: Transaction) -> None:
        """Keep what later snapshots are compared with."""
        bound = self._bound
        counts = bound.stream.on_gone != "nothing"  # which takes its time where there are many
        past = PastSnapshot(self._rows, tx.snapshots.present(bound.scope) if counts else None)
        content = self._completeness.content() or f"run-{self._run_id}"
        tx.snapshots.remember(bound.name, content, past, at=bound.context.place.clock.now())
