"""Records -> decisions: one generator that plan and sync share, in chunks, never a list in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from crossdock.delivery.operations import Operation
from crossdock.delta.record_chunks import in_chunks
from crossdock.delta.scan import KeyedRecord
from crossdock.errors import CrossdockError, RecordError
from crossdock.planning import cycles
from crossdock.planning.drafts import drafted
from crossdock.planning.references import References, found_in, key_hashes
from crossdock.planning.removals import Removals, removal
from crossdock.platform.platform_target import PlatformTarget, difference
from crossdock.project.connector_errors import FailureCount
from crossdock.project.project import BoundStream
from crossdock.resources import RESOURCES, Reference
from crossdock.state import Binding, DeadLetter, State, Step, Transaction, WaitingRecord
from crossdock.tally import Tally

CHUNK = 200  # records decided on together: their look-ups share statements, what they leave a transaction


@dataclass(slots=True)
class HeldRecord:
    """A record that waits for others of its own kind.

    Attributes:
        can_open: It may be created without what it waits for, to open a circle.
        opened: That was tried; until it has come to something the record must not be created again.
    """

    read: KeyedRecord
    members: dict[str, Any]
    missing: list[Reference]
    can_open: bool
    opened: bool = False


@dataclass(slots=True)
class PlannedChunk:
    """A chunk of decisions, and what they leave in the state besides operations."""

    bound: BoundStream
    run_id: int
    at: datetime
    operations: list[Operation] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    waits: list[WaitingRecord] = field(default_factory=list)
    suppressed: list[Binding] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many records were decided on."""
        return len(self.operations) + len(self.dead_letters) + len(self.waits) + len(self.suppressed)

    def write(self, tx: Transaction) -> None:
        tx.dead_letters.put(self.dead_letters, run_id=self.run_id, at=self.at)
        tx.waiting_records.put(self.waits, run_id=self.run_id, at=self.at)
        tx.bindings.put(self.bound.scope, self.suppressed, run_id=self.run_id, at=self.at)
        through = [binding.key_hash for binding in self.suppressed]
        tx.dead_letters.clear(self.bound.name, [*through, *(record.identity.key_hash for record in self.waits)])
        tx.waiting_records.clear(
            self.bound.name, [*through, *(dead_letter.identity.key_hash for dead_letter in self.dead_letters)]
        )
        whole = [operation.identity.key_hash for operation in self.operations if operation.step != "open"]
        tx.waiting_records.clear(self.bound.name, whole)  # from here on their intents keep them


class Planner:
    """Decides what is to be done about the records of one stream.

    Args:
        gone: Of it, what is to be removed, after everything else.
        failing: Says when the mapping fails too often.
        at_once: How many records it decides on together.

    Attributes:
        stopped: Why it decides on no further record, once that is so.
    """

    def __init__(
        self,
        bound: BoundStream,
        state: State,
        references: References,
        tally: Tally,
        *,
        run_id: int,
        target: PlatformTarget,
        gone: Removals,
        failing: FailureCount,
        at_once: int = CHUNK,
    ) -> None:
        self.stopped: CrossdockError | None = None
        self._failing = failing
        self._removed, self._listing = deque(gone.removed), gone.source
        self._bound, self._state, self._references, self._tally = bound, state, references, tally
        self._run_id, self._target, self._at_once = run_id, target, at_once
        self._clock = bound.context.run.clock
        self._held: dict[int, HeldRecord] = {}

    def decide(self, reads: Iterator[KeyedRecord]) -> Iterator[PlannedChunk]:
        """Decisions on *reads*, in their order; looks into the state as it stands when a chunk is asked for."""
        for chunk in in_chunks(self._given(reads), self._at_once):
            yield self._decide(chunk)
            if self.stopped is not None:
                return

    def _given(self, reads: Iterator[KeyedRecord]) -> Iterator[KeyedRecord]:
        """*reads* until their source fails, which has counted those that it does not give any more."""
        try:
            for read in reads:  # noqa: UP028  `yield from` closes them with this; they may yet be passed over
                yield read
        except CrossdockError as error:
            self.stopped = self.stopped or error

    def pass_over(self, reads: Iterator[KeyedRecord]) -> None:
        """Count what is left of *reads*, when it is not decided on any more: the next run reads it again."""
        for _ in self._given(reads):
            self._tally.count("carried_on")

    def next_round(self) -> Iterator[PlannedChunk] | None:
        """Decisions on records that waited for others of their own kind, now that those are delivered.

        Where such records wait for each other in a circle, one of them is created without the reference that closes
        it, and completed in a later round. The last round removes records, when nothing that was read refers to them
        any more. None when nothing is left that could go on, or it has stopped.
        """
        if self.stopped is not None:
            return None
        return self._waited() or (self._removals() if self._removed else None)

    def _waited(self) -> Iterator[PlannedChunk] | None:
        if not self._held:
            return None
        with self._state.look() as tx:
            wanted = [reference for held in self._held.values() for reference in held.missing]
            self._references.look_up(wanted, self._bound.namespace, tx)
            self._forget_refused(tx)
            opened = [key_hash for key_hash, held in self._held.items() if held.opened]
            there = tx.bindings.ids(self._bound.scope, opened)
        there |= {key_hash: "" for key_hash in opened if self._references.planned_binding(self._bound.scope, key_hash)}
        able = [key_hash for key_hash, held in self._held.items() if not held.opened or key_hash in there]
        ready = [key_hash for key_hash in able if not self._waits(self._held[key_hash])]
        if ready:
            return self.decide(self._held.pop(key_hash).read for key_hash in ready)
        waits_for = self._waits_for()
        cycle_breakers = cycles.cycle_breakers(
            waits_for, [key_hash for key_hash, held in self._held.items() if held.can_open]
        )
        return self._first_steps(cycle_breakers) if cycle_breakers else None

    def _removals(self) -> Iterator[PlannedChunk]:
        while self._removed:
            chunk = [self._removed.popleft() for _ in range(min(CHUNK, len(self._removed)))]
            with self._state.look() as tx:
                bindings = tx.bindings.get(self._bound.scope, chunk).values()
            self._tally.count("ignored", len(chunk) - len(bindings))  # a replayed letter of what is gone from there too
            decided = PlannedChunk(self._bound, self._run_id, self._clock.now())
            for binding in bindings:
                operation = removal(self._bound, binding, self._listing)
                if operation.kind == "delete" or operation.changes:
                    decided.operations.append(operation)
                else:
                    self._tally.count("suppressed")
                    decided.suppressed.append(replace(binding, fingerprint=None, step=operation.step))
            yield decided

    def finish(self) -> None:
        """What waits still is carried on, and so is what was to be removed when the run was stopped."""
        self._tally.count("carried_on", len(self._removed))
        if not self._held:
            return
        with self._state.look() as tx:
            self._forget_refused(tx)
        self._tally.count("carried_on", len(self._held))
        self._held.clear()

    def _forget_refused(self, tx: Transaction) -> None:
        """A record whose first step was refused is a dead letter now, and waits no longer."""
        opened = [key_hash for key_hash, held in self._held.items() if held.opened]
        if self._references.plans:
            return  # nothing was sent, so what is a dead letter is one of an earlier night
        for key_hash in tx.dead_letters.among(self._bound.name, opened):
            del self._held[key_hash]

    def _waits(self, held: HeldRecord) -> bool:
        return bool(self._references.unknown(held.missing, self._bound.namespace))

    def _waits_for(self) -> dict[int, list[int]]:
        """The key hashes of our own scope that each held record waits for; 0 stands for any other, in no circle."""
        places = {
            key_hash: [self._references.place(each, self._bound.namespace) for each in held.missing]
            for key_hash, held in self._held.items()
        }
        hashes = key_hashes(sorted({key for each in places.values() for _, key in each}))
        own = self._bound.scope
        return {
            key_hash: [hashes[key] if scope == own else 0 for scope, key in each] for key_hash, each in places.items()
        }

    def _first_steps(self, cycle_breakers: Sequence[int]) -> Iterator[PlannedChunk]:
        """Creations without what closes a circle; the records go on waiting until they are whole."""
        for start in range(0, len(cycle_breakers), CHUNK):
            decided = PlannedChunk(self._bound, self._run_id, self._clock.now())
            for held in (self._held[key_hash] for key_hash in cycle_breakers[start : start + CHUNK]):
                held.can_open, held.opened = False, True
                members = {name: value for name, value in held.members.items() if not self._missing(value)}
                after = self._after(held.read, members)
                decided.operations.append(self._operation(held.read, after, None, step="open"))
                self._references.plan_first_step(decided.operations[-1])
            yield decided

    def _decide(self, chunk: Sequence[KeyedRecord]) -> PlannedChunk:
        decided = PlannedChunk(self._bound, self._run_id, self._clock.now())
        drafts: list[tuple[KeyedRecord, dict[str, Any], list[Reference]]] = []
        for number, read in enumerate(chunk, 1):
            try:
                drafts.append((read, *drafted(self._bound, read.record)))
            except RecordError as error:
                self._refuse(decided, read, "mapping", error, None)
                refusal = self._failing.refusal(read.record, error)
                if refusal is not None:
                    self.stopped = self.stopped or refusal
                    self._tally.count("carried_on", len(chunk) - number)
                    break
        namespace = self._bound.namespace
        with self._state.look() as tx:
            self._references.look_up((each for *_, found in drafts for each in found), namespace, tx)
            bindings = tx.bindings.get(self._bound.scope, [read.identity.key_hash for read, *_ in drafts])
        for read, members, found in drafts:
            binding = bindings.get(read.identity.key_hash) or self._references.planned_binding(
                self._bound.scope, read.identity.key_hash
            )
            missing = self._references.missing(found, namespace) if found else []
            self._decide_one(decided, read, members, missing, binding)
        return decided

    def _decide_one(
        self,
        decided: PlannedChunk,
        read: KeyedRecord,
        members: dict[str, Any],
        missing: list[dict[str, str]],
        binding: Binding | None,
    ) -> None:
        bound = self._bound
        if missing:
            decided.waits.append(WaitingRecord(read.identity, missing, read.record.raw()))
            self._hold(read, members, missing, is_bound=binding is not None)
            return
        after, write_once = self._after(read, members), RESOURCES[bound.stream.resource].write_once
        if binding is None:
            decided.operations.append(self._operation(read, after, None))
        elif binding.payload == after or (write_once and binding.step == "import"):
            self._tally.count("suppressed")
            decided.suppressed.append(
                replace(
                    binding,
                    fingerprint=read.identity.fingerprint,
                    position=read.identity.position,
                    step="whole",
                    payload=after,
                )
            )
        elif write_once:
            error = RecordError("changed_after_delivery", "was delivered with another content, and is written once")
            self._refuse(decided, read, "plan", error, after)
        else:
            decided.operations.append(self._operation(read, after, binding))

    def _hold(
        self, read: KeyedRecord, members: dict[str, Any], missing: list[dict[str, str]], *, is_bound: bool
    ) -> None:
        """Keep a record that waits for one of its own kind until the next round; any other is carried on."""
        scope = self._bound.scope
        if all((each["resource"], each["namespace"]) != (scope.resource, scope.namespace) for each in missing):
            self._tally.count("carried_on")
            return
        references = [Reference(**each) for each in missing]  # type: ignore[arg-type]  # names that came from references
        fields = RESOURCES[scope.resource].draft.model_fields.items()
        needed = [members.get(field.alias or name) for name, field in fields if field.is_required()]
        can_open = not is_bound and not any(self._missing(value) for value in needed)
        self._held[read.identity.key_hash] = HeldRecord(read, members, references, can_open)

    def _missing(self, value: Any) -> list[dict[str, str]]:
        return self._references.missing(found_in(value), self._bound.namespace)

    def _after(self, read: KeyedRecord, members: dict[str, Any]) -> dict[str, Any]:
        bound = self._bound
        resolved = self._references.resolved(members, bound.namespace)
        return self._target.payload(bound.stream.resource, bound.namespace, read.record.key, resolved)

    def _operation(
        self, read: KeyedRecord, after: dict[str, Any], binding: Binding | None, *, step: Step = "whole"
    ) -> Operation:
        changes = after if binding is None else difference(binding.payload, after)
        return Operation(
            kind="create" if binding is None else "update",
            identity=read.identity,
            scope=self._bound.scope,
            record=read.record,
            after=after,
            changes=changes,
            binding=binding,
            step=step,
        )

    def _refuse(
        self, decided: PlannedChunk, read: KeyedRecord, stage: str, error: RecordError, mapped: dict[str, Any] | None
    ) -> None:
        self._tally.count("rejected")
        line = error.line or read.identity.line
        decided.dead_letters.append(
            DeadLetter(
                identity=read.identity._replace(line=line),
                stage=stage,
                code=error.code,
                pointer=error.pointer,
                message=error.message,
                raw=read.record.raw(),
                mapped=mapped,
            )
        )
