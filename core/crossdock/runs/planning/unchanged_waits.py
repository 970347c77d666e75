"""Waiting records that need no decision: nothing that they wait for has come, and their mapping has not changed."""

from __future__ import annotations

import hashlib
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import polars as pl

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta.fingerprint import key_hashes
from crossdock.delta.row_preparation import KEY_HASH
from crossdock.delta.state_comparison import Delta
from crossdock.runs.planning.target_ids_of_references import References, ScopedKey
from crossdock.state import Intent, Scope, Transaction, Wait, WaitingRecord
from crossdock.values import exact_json


class IdleWaits(NamedTuple):
    records: Collection[Wait] = ()
    version: str | None = None


class UnchangedWaits:
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
