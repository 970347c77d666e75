"""New records that the state knows under other names: their connection was renamed, or their key was changed."""

from __future__ import annotations

import polars as pl
from msgspec import structs

from crossdock.config.project.connections import BoundStream
from crossdock.delta.row_preparation import KEY_HASH
from crossdock.errors import RefusedError
from crossdock.state import State

_COMPARED = 1_000  # records


def refuse_records_of_former_namespace(bound: BoundStream, state: State, latest: pl.DataFrame) -> None:
    """Refuse the first records of a stream if at least half of their keys belong to a former namespace.

    They would be created a second time. A namespace that the config declares is meant so.
    """
    if bound.namespaces_of_config is None or bound.scope.is_contribution or latest.is_empty():
        return
    scope, keys = bound.scope, latest[KEY_HASH].head(_COMPARED).to_list()
    with state.begin_read_only() as tx:
        found = set() if tx.bindings.has_any(scope) else tx.bindings.namespaces_of_resource(scope)
    for namespace in sorted(found - bound.namespaces_of_config()) if found else ():
        known = state.key_facts_among(structs.replace(scope, namespace=namespace), keys).height
        if 2 * known >= len(keys):
            connection = bound.context.connection
            raise RefusedError(
                f"{known:,} of the first {len(keys):,} records are known under the namespace {namespace!r}, which the"
                " config no longer has, and would be created again",
                where=bound.name,
                hint=f"if the connection was renamed, set connections.{connection}.namespace: {namespace}; if these are"
                f" other records, set it to {bound.namespace}",
                code="namespace_changed",
            )


def refuse_records_under_changed_keys(bound: BoundStream, state: State, latest: pl.DataFrame) -> None:
    """Refuse files that are read again, if the state knows none of the first keys that they have now.

    An earlier run has finished them, so all of their records would be created a second time. What was rejected, dropped
    or deleted since is known, too.
    """
    found = bound.context.run.inputs.get(bound.name)
    if found is None or not found.is_read_again or bound.scope.is_contribution or latest.is_empty():
        return
    keys = latest[KEY_HASH].head(_COMPARED).to_list()
    with state.begin_read_only() as tx:
        known = (
            tx.bindings.idempotency_counters(bound.scope, keys),
            tx.intents.idempotency_counters(bound.scope, keys),
            tx.dead_letters.key_hashes_among(bound.name, keys),
            tx.waiting_records.awaited_references(bound.name, keys),
        )
        is_changed = not any(known) and tx.bindings.has_any(bound.scope)
    if is_changed:
        raise RefusedError(
            f"none of the first {len(keys):,} records is known under its key, although an earlier run has read their"
            " file: they would be created again",
            where=bound.name,
            hint=f"restore the key of {bound.name}, or bring its values back to their old form with columns; if these"
            " are other records, set another namespace for the stream",
            code="key_changed",
        )
