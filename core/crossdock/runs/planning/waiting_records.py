"""Records of one stream that wait for records which the same run may deliver.

Idle ones need no decision: nothing that they wait for has come, and their mapping has not changed.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from msgspec import Struct

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta.changed_record_reading import KeyedRecord, stored_records_repaired_and_filtered_again
from crossdock.delta.fingerprint import key_hashes
from crossdock.delta.row_preparation import KEY_HASH
from crossdock.delta.state_comparison import Delta
from crossdock.runs.planning.references import References, ScopedKey, collect_references_in_value
from crossdock.state import DeadLetter, Intent, RecordIdentity, Scope, State, Transaction, Wait, WaitingRecord
from crossdock.values import exact_json
from crossdock.values.config_base_types import parse_duration


class IdleWaits(NamedTuple):
    records: Collection[Wait] = ()
    version: str | None = None


class IdleWaitSeparator:
    """The waiting records of a stream in one part of its reading: all are `found`, and idle ones are `left`."""

    def __init__(self, bound: BoundStream, *, takes_up_all: bool) -> None:
        self._bound, self._is_to_ask = bound, not takes_up_all
        self._version: str | None = None
        self.reset()

    def reset(self) -> None:
        self.left: dict[int, Wait] = {}
        self.found: frozenset[int] = frozenset()

    @property
    def idle_waits(self) -> IdleWaits:
        return IdleWaits(self.left.values(), self._version)

    def separate_idle_and_return_others(
        self,
        tx: Transaction,
        unsettled: Sequence[Intent],
        *,
        among: Sequence[int] | None = None,
        seen: AbstractSet[int] = frozenset(),
    ) -> list[WaitingRecord]:
        """Return the waiting records to decide about, longest waiting first. Call it within
        `guard_author_code_of_stream`.
        """
        if self._is_to_ask:
            self._version, self._is_to_ask = hash_of_waiting_decision_inputs(self._bound), False
        found = [
            each for each in tx.waiting_records.waits_of_stream(self._bound.name, among) if _key_hash(each) not in seen
        ]
        self.found = frozenset(map(_key_hash, found))
        busy = {intent.identity.key_hash for intent in unsettled}
        idle = [
            each for each in found if self._version and each.idle_under == self._version and _key_hash(each) not in busy
        ]
        come = _with_arrived_parents(tx, self._bound.scope.target, idle)
        self.left = {_key_hash(each): each for each in idle if _key_hash(each) not in come}
        return self._load_records_to_decide(tx, [_key_hash(each) for each in found if _key_hash(each) not in self.left])

    def release_children_of_decided(
        self, tx: Transaction, found: Delta, waiting: Sequence[Wait]
    ) -> list[WaitingRecord]:
        """Return those of `left` that wait, directly or not, for a record of their own kind that is decided now."""
        for key_hash in found.replaced:
            self.left.pop(key_hash, None)
        children = self._children_by_parent()
        decided = found.changed[KEY_HASH]
        moving = set(decided.filter(decided.is_in(pl.Series(list(children), dtype=decided.dtype).implode())).to_list())
        moving |= {_key_hash(each) for each in waiting}
        taken: dict[int, None] = {}
        while moving:
            moved = [key for each in moving for key in children.get(each, ()) if key in self.left and key not in taken]
            taken |= dict.fromkeys(moved)
            moving = set(moved)
        for key_hash in taken:
            del self.left[key_hash]
        return self._load_records_to_decide(tx, list(taken))

    def _children_by_parent(self) -> dict[int, list[int]]:
        """Group the idle records by the key hashes of the records of their own kind for which they wait."""
        own = self._bound.scope.whole_record_scope
        waits = [
            (each["key"], key_hash)
            for key_hash, idle in self.left.items()
            for each in idle.waits_for
            if (each["resource"], each["namespace"]) == (own.resource, own.namespace)
        ]
        hashes, children = key_hashes(list({key for key, _ in waits})), defaultdict(list)
        for key, key_hash in waits:
            children[hashes[key]].append(key_hash)
        return children

    def _load_records_to_decide(self, tx: Transaction, wanted: list[int]) -> list[WaitingRecord]:
        found = {_key_hash(each): each for each in tx.waiting_records.records_among(self._bound.name, wanted)}
        return [found[key_hash] for key_hash in wanted if key_hash in found]


def _key_hash(each: Wait) -> int:
    return each.identity.key_hash


def _with_arrived_parents(tx: Transaction, target: str, idle: Iterable[Wait]) -> set[int]:
    keys = awaited_keys_by_waiting_record(target, idle)
    references = References(target)
    references.look_up((each for names in keys.values() for each in names), tx)
    return {key_hash for key_hash, names in keys.items() if len(references.missing(names)) < len(names)}


def awaited_keys_by_waiting_record(target: str, records: Iterable[Wait]) -> dict[int, list[ScopedKey]]:
    scope = cache(partial(Scope, target))
    return {
        _key_hash(record): [(scope(each["resource"], each["namespace"]), each["key"]) for each in record.waits_for]
        for record in records
    }


def hash_of_waiting_decision_inputs(bound: BoundStream) -> str | None:
    """Return a hash that changes whenever a waiting record could be mapped differently or wait for other records.

    None means that each run decides about the stream's waiting records. The stream's version is not sufficient: its
    mapping may use settings, and its code may change.
    """
    if bound.read_target_and_type is not None and bound.namespaces_of_target_system:
        return None  # what crossdock wrote itself counts as well
    stream = bound.stream
    modules = sorted({each.__module__ for each in type(stream).__mro__ if each is not object})
    facts = [
        installed_package_versions(),
        stream.version,
        bound.connection_namespace,
        bound.namespace,
        sorted(map(repr, bound.untrimmed_key_scopes)),
        sorted(stream.earlier_keys.items()),
        _text_without_addresses(bound.context.settings),
        bound.scope.target,
        [
            (name, _text_without_addresses(field.annotation), field.is_required())
            for name, field in bound.resource_type.draft.model_fields.items()
        ],
        [
            _hash_of_package_code(name)
            for name in modules
            if name.partition(".")[0] not in {"abc", "crossdock", "typing"}
        ],
    ]
    return hashlib.sha256(exact_json.dumps(facts)).hexdigest()


def _text_without_addresses(fact: object) -> str:
    """Return *fact* as text without the addresses of objects, which differ between processes."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(fact))


@cache
def installed_package_versions() -> str:
    """Return the names and versions of all installed packages, including crossdock, from their folder names."""
    folders = (each for place in sys.path for each in Path(place or ".").glob("*.dist-info"))
    return "".join(sorted({each.name for each in folders}))


@cache
def _hash_of_package_code(module: str) -> str:
    """Return a hash of the code that *module* may use: that of its whole package, or of its folder."""
    package = getattr(sys.modules.get(module.partition(".")[0]), "__path__", None)
    file = getattr(sys.modules.get(module), "__file__", None)
    found = hashlib.sha256()
    pattern, folders = ("*.py", [Path(file).parent] if file else []) if package is None else ("**/*.py", package)
    for folder in sorted({Path(each).resolve() for each in folders}):
        for path in sorted(folder.glob(pattern)):
            found.update(path.read_bytes())
    return found.hexdigest()


_AT_ONCE = 200  # idle records that are read together once they are ready
_SHOWN = 3  # records of those that one waits for, in a message


class HeldRecord(Struct):
    """A record that waits for others. Once its create without them is planned (`opened`), it waits for its binding."""

    read: KeyedRecord
    members: dict[str, Any]
    missing: list[ScopedKey]
    can_open: bool
    opened: bool = False


class RecordsAwaitingParents:
    """The held records of one stream. The caller removes from *coming* the scopes that bring no more records."""

    def __init__(self, bound: BoundStream, state: State, references: References, coming: AbstractSet[Scope]) -> None:
        self.bound, self.state, self.references, self._coming = bound, state, references, coming
        self._held: dict[int, HeldRecord] = {}
        self._idle: dict[int, list[ScopedKey]] = {}
        self.version: str | None = None
        self._stamps: dict[Scope, int] = {}  # of what idle records wait for, at the last look-up

    def __len__(self) -> int:
        return len(self._held) + len(self._idle)

    def __contains__(self, key_hash: object) -> bool:
        return key_hash in self._held or key_hash in self._idle

    @cached_property
    def wait_start_by_overdue_record(self) -> Mapping[int, datetime]:
        """Since when those records wait that have waited for longer than their stream permits, by key hash."""
        permitted = self.bound.stream.waits_at_most
        if permitted is None:
            return {}
        with self.state.begin_read_only() as tx:
            return tx.waiting_records.waiting_since_by_key_hash(
                self.bound.name, self.bound.context.run.clock.now() - parse_duration(permitted)
            )

    def add_idle(self, idle: IdleWaits) -> None:
        """Hold waiting records that are not decided until something that they wait for comes."""
        self.version, added = idle.version, awaited_keys_by_waiting_record(self.bound.scope.target, idle.records)
        self._idle |= added
        self._stamps = {} if added else self._stamps

    def hold_if_parents_may_come(
        self, read: KeyedRecord, members: dict[str, Any], missing: list[ScopedKey], *, is_bound: bool
    ) -> bool:
        """Hold a record until the next round. Return False if this run cannot deliver what it waits for, and it may
        wait for longer.
        """
        if (
            all(other not in self._coming for other, _ in missing)
            and read.identity.key_hash not in self.wait_start_by_overdue_record
        ):
            return False
        fields = self.bound.resource_type.draft.model_fields.items()
        required = [members.get(field.alias or name) for name, field in fields if field.is_required()]
        can_open = not is_bound and not any(self._has_missing_reference(value) for value in required)
        self._held[read.identity.key_hash] = HeldRecord(read, members, missing, can_open)
        return True

    def find_ready_key_hashes(self) -> list[int]:
        """Return the records whose references are all delivered, and idle ones that wait for a held record."""
        if not self:
            return []
        with self.state.begin_read_only() as tx:
            has_news = self._has_new_arrivals(tx)
            awaited_by = [*(held.missing for held in self._held.values()), *(self._idle.values() if has_news else ())]
            self.references.look_up((key for missing in awaited_by for key in missing), tx)
            self._drop_opened_records_if_rejected(tx)
            opened = self._keys_with_first_step()
            bound = set(tx.bindings.target_id_by_key_hash(self.bound.scope, opened))
        bound |= {each for each in opened if self.references.planned_first_step_binding(self.bound.scope, each)}
        return [
            key_hash
            for key_hash, held in self._held.items()
            if (not held.opened or key_hash in bound) and not self.references.missing(held.missing)
        ] + (self._find_ready_idle_records() if has_news or self._held else [])

    def _has_new_arrivals(self, tx: Transaction) -> bool:
        scopes = self._stamps or {scope for missing in self._idle.values() for scope, _ in missing}
        before, self._stamps = self._stamps, {scope: tx.stamps.current(scope) for scope in scopes}
        return self._stamps != before

    def _find_ready_idle_records(self) -> list[int]:
        """Return the idle records that are ready, or that may be in a cycle with a held record."""
        own, held = self.bound.scope.whole_record_scope, {each.read.identity.key for each in self._held.values()}
        return [
            key_hash
            for key_hash, missing in self._idle.items()
            if not self.references.missing(missing) or any(scope == own and key in held for scope, key in missing)
        ]

    def pop_ready(self, ready: Sequence[int]) -> Iterator[KeyedRecord]:
        for start in range(0, len(ready), _AT_ONCE):
            some = ready[start : start + _AT_ONCE]
            yield from [self._held.pop(each).read for each in some if each in self._held]
            idle = [each for each in some if self._idle.pop(each, None) is not None]
            with self.state.begin_read_only() as tx:
                waiting = tx.waiting_records.records_among(self.bound.name, idle)
            yield from stored_records_repaired_and_filtered_again(
                self.bound.stream, ((each.identity, each.raw) for each in waiting)
            )

    def pop_held_record(self, key_hash: int) -> KeyedRecord:
        return self._held.pop(key_hash).read

    def choose_cycle_breakers(self) -> list[int]:
        if not self._held:
            return []
        return choose_one_record_per_cycle(
            self._awaited_hashes_by_held_record(), [key for key, held in self._held.items() if held.can_open]
        )

    def open_without_missing_references(self, key_hash: int) -> tuple[KeyedRecord, dict[str, Any]]:
        """Mark a record as opened, and return it with the members that have no missing reference. It stays held."""
        held = self._held[key_hash]
        held.can_open, held.opened = False, True
        return held.read, {
            name: value for name, value in held.members.items() if not self._has_missing_reference(value)
        }

    def remove(self, key_hashes: Iterable[int]) -> int:
        """Remove those of *key_hashes* that are held, because their stream has read them again, and count them."""
        found = [each for each in key_hashes if each in self]
        for each in found:
            self._held.pop(each, None)
            self._idle.pop(each, None)
        return len(found)

    def pop_overdue_as_dead_letters(self) -> Iterator[DeadLetter]:
        """Remove those in `wait_start_by_overdue_record` at the end of the run, and yield them as dead letters."""
        opened = set(self._keys_with_first_step())
        found = [each for each in self.wait_start_by_overdue_record if each in self and each not in opened]
        for start in range(0, len(found), _AT_ONCE):
            some = found[start : start + _AT_ONCE]
            with self.state.begin_read_only() as tx:
                stored = tx.waiting_records.records_among(
                    self.bound.name, [each for each in some if each in self._idle]
                )
            for waiting in stored:
                missing = self._idle.pop(waiting.identity.key_hash)
                yield self._missing_reference_dead_letter(waiting.identity, waiting.raw, missing)
            for held in [self._held.pop(each) for each in some if each in self._held]:
                yield self._missing_reference_dead_letter(held.read.identity, held.read.record.raw(), held.missing)

    def _missing_reference_dead_letter(
        self, identity: RecordIdentity, raw: dict[str, Any], missing: list[ScopedKey]
    ) -> DeadLetter:
        names = [f"{scope.resource} {scope.namespace}:{key}" for scope, key in self.references.missing(missing)]
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        since = f"{self.wait_start_by_overdue_record[identity.key_hash]:%Y-%m-%d}"
        message = f"has waited since {since} for {', '.join(names[:_SHOWN])}{more}: not delivered until now"
        return DeadLetter(identity, "references", "missing_reference", None, message, raw, None)

    def make_held_records_idle(self) -> None:
        """Make held records idle at the end of the run, except those with a second step to come."""
        if not self._held:
            return
        with self.state.begin_read_only() as tx:
            self._drop_opened_records_if_rejected(tx)
        idle = [key_hash for key_hash, held in self._held.items() if not held.opened]
        if idle and self.version is not None:
            with self.state.begin() as tx:
                tx.waiting_records.mark_waiting_only_for_references(self.bound.name, idle, self.version)

    def discard_all_and_count(self) -> int:
        """Remove all records. Return how many still wait."""
        if not self:
            return 0
        with self.state.begin_read_only() as tx:
            self._drop_opened_records_if_rejected(tx)
        number = len(self)
        self._held.clear()
        self._idle.clear()
        return number

    def _keys_with_first_step(self) -> list[int]:
        return [key_hash for key_hash, held in self._held.items() if held.opened]

    def _drop_opened_records_if_rejected(self, tx: Transaction) -> None:
        """Drop opened records whose first step was rejected: they are dead letters now."""
        if self.references.is_plan:
            return  # a plan sends nothing, so a dead letter is from an earlier run
        for key_hash in tx.dead_letters.key_hashes_among(self.bound.name, self._keys_with_first_step()):
            del self._held[key_hash]

    def _has_missing_reference(self, value: Any) -> bool:
        keys = self.references.scoped_keys(
            collect_references_in_value(value), self.bound.namespace_and_key_of_reference
        )
        return bool(self.references.missing(keys))

    def _awaited_hashes_by_held_record(self) -> dict[int, list[int]]:
        """Return the key hashes that each held record waits for; 0 stands for any record of another scope."""
        hashes = key_hashes(sorted({key for held in self._held.values() for _, key in held.missing}))
        own = self.bound.scope
        return {
            key_hash: [hashes[key] if scope == own else 0 for scope, key in self.references.missing(held.missing)]
            for key_hash, held in self._held.items()
        }


def choose_one_record_per_cycle(waits_for: Mapping[int, Sequence[int]], can_open: Sequence[int]) -> list[int]:
    """Return at most one record of each cycle. One that waits for a record without a key in *waits_for* is in none."""
    stuck, allowed = _records_in_cycles(waits_for), set(can_open)
    chosen: list[int] = []
    seen: set[int] = set()
    for start in waits_for:
        path: dict[int, None] = {}
        node: int | None = start
        while node in stuck and node not in seen and node not in path:
            path[node] = None
            node = next(iter(waits_for[node]), None)
        if node in path:
            cycle = list(path)[list(path).index(node) :]
            chosen += [key for key in cycle if key in allowed][:1]
        seen.update(path)
    return chosen


def _records_in_cycles(waits_for: Mapping[int, Sequence[int]]) -> set[int]:
    stuck = set(waits_for)
    while lost := {key for key in stuck if not stuck.issuperset(waits_for[key])}:
        stuck -= lost
    return stuck
