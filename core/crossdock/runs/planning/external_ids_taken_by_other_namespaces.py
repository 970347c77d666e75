"""External ids of a target that contain no namespace: records of two namespaces with one key would have the same."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.errors import RecordError
from crossdock.runs.planning.target_ids_of_references import References
from crossdock.state import Transaction
from crossdock.writing.targets.target import TargetResource


class NamesOfOtherNamespaces:
    """The names that records of other namespaces have, or get in this run, where a new record would have the same."""

    def __init__(self, bound: BoundStream, references: References) -> None:
        self._bound, self._references = bound, references
        kind = bound.resource_type
        form = kind.name_form if isinstance(kind, TargetResource) and kind.name_member is not None else None
        self._are_shared = form is not None and "{namespace}" not in form and not bound.scope.is_contribution
        self._owners: dict[int, str] = {}

    def look_up(self, tx: Transaction, key_hashes: Sequence[int]) -> None:
        if not self._are_shared or not key_hashes:
            return
        self._owners = {}
        scope = self._bound.scope
        others = tx.bindings.namespaces_of_resource(scope) | self._bound.namespaces_of_same_resource
        for namespace in sorted(others - {scope.namespace}):
            other = structs.replace(scope, namespace=namespace)
            taken = {
                *tx.bindings.target_id_by_key_hash(other, key_hashes),
                *(intent.identity.key_hash for intent in tx.intents.unsettled_in_scope(other, among=key_hashes)),
                *(key_hash for key_hash in key_hashes if self._references.is_planned(other, key_hash)),
            }
            self._owners |= dict.fromkeys(taken, namespace)

    def refuse_taken(self, key_hash: int, key: str) -> None:
        """Raise RecordError if a record of another namespace has the name that a new one would get."""
        if (owner := self._owners.get(key_hash)) is not None:
            message = (
                f"{self._bound.target.title} has a record of this name already, {owner}:{key}: send one of the streams"
                " to a resource of its own, with another name_form"
            )
            raise RecordError("conflict", message)
