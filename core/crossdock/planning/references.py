"""External keys -> platform ids, for a chunk of drafts at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Any

import polars as pl

from crossdock import exact_json
from crossdock.delivery.operations import Operation
from crossdock.delta import fingerprint
from crossdock.resources import Reference
from crossdock.state import Binding, Scope, Transaction

_PLAIN = frozenset({str, int, bool, Decimal, type(None)})  # most members are, and need no second look
CACHED = 200_000  # ids kept between chunks: a bound on memory, not on correctness

Target = tuple[Scope, str]  # where and which key


def found_in(value: Any) -> list[Reference]:
    """Every reference in the members of a draft."""
    if isinstance(value, Reference):
        return [value]
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [found for member in members if type(member) not in _PLAIN for found in found_in(member)]


class References:
    """Looks references up in the bindings; a run keeps one.

    Args:
        planned: In a plan, which records would have been created; they resolve to a symbol.
    """

    def __init__(self, target: str, planned: set[tuple[Scope, int]] | None = None) -> None:
        self._target = target
        self._planned = planned
        self._ids: dict[Target, str] = {}
        self._first_steps: dict[tuple[Scope, int], Binding] = {}

    @property
    def plans(self) -> bool:
        """True in a plan, where nothing is delivered."""
        return self._planned is not None

    def plan_first_step(self, operation: Operation) -> None:
        """In a plan: remember what the first of two steps would have delivered."""
        if self._planned is None:
            return
        scope, identity = operation.scope, operation.identity
        self._first_steps[scope, identity.key_hash] = Binding(
            key_hash=identity.key_hash,
            key=identity.key,
            platform_id=_symbol(scope, identity.key),
            fingerprint=None,
            position=identity.position,
            step=operation.step,
            payload=operation.after,
            etag=None,
            counter=1,
        )

    def planned_binding(self, scope: Scope, key_hash: int) -> Binding | None:
        """What `plan_first_step` remembered; None in a sync, which has the binding itself."""
        return self._first_steps.get((scope, key_hash))

    def place(self, reference: Reference, namespace: str) -> Target:
        return Scope(self._target, reference.resource, reference.namespace or namespace), reference.key

    def look_up(self, references: Iterable[Reference], namespace: str, tx: Transaction) -> None:
        """Fetch what `resolved` will ask for."""
        if len(self._ids) > CACHED:
            self._ids.clear()
        unknown: dict[Scope, set[str]] = defaultdict(set)
        for reference in references:
            scope, key = self.place(reference, namespace)
            if (scope, key) not in self._ids:
                unknown[scope].add(key)
        for scope, keys in unknown.items():
            hashes = key_hashes(sorted(keys))
            ids = tx.bindings.ids(scope, list(hashes.values()))
            for key, key_hash in hashes.items():
                if key_hash in ids:
                    self._ids[scope, key] = ids[key_hash]
                elif self._planned and (scope, key_hash) in self._planned:
                    self._ids[scope, key] = _symbol(scope, key)

    def missing(self, references: Iterable[Reference], namespace: str) -> list[dict[str, str]]:
        """Those of *references* that have no id yet, each once."""
        return [
            {"resource": scope.resource, "namespace": scope.namespace, "key": key}
            for scope, key in self.unknown(references, namespace)
        ]

    def unknown(self, references: Iterable[Reference], namespace: str) -> list[Target]:
        """Where those are that have no id yet, each once."""
        places = dict.fromkeys(self.place(reference, namespace) for reference in references)
        return [place for place in places if place not in self._ids]

    def resolved(self, value: Any, namespace: str) -> Any:
        """*value* with an id in place of each reference, all of which must be known, and times as their text."""
        if isinstance(value, dict):
            return {
                name: member if type(member) in _PLAIN else self.resolved(member, namespace)
                for name, member in value.items()
            }
        if isinstance(value, Reference):
            return self._ids[self.place(value, namespace)]
        if isinstance(value, list):
            return [self.resolved(item, namespace) for item in value]
        return exact_json.time_text(value) if isinstance(value, date) else value


def _symbol(scope: Scope, key: str) -> str:
    """What stands in a plan for an id that the platform has not given yet."""
    return f"<{scope.resource} {scope.namespace}:{key}>"


def key_hashes(keys: list[str]) -> dict[str, int]:
    """The key hash of each of *keys*."""
    hashes = pl.DataFrame({"key": keys}, schema={"key": pl.String}).select(
        fingerprint.digest(pl.col("key"), "xxh3_128")
    )
    return dict(zip(keys, hashes.to_series().to_list(), strict=True))
