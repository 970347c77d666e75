"""The bindings to records of the platform, by the ids of these records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.state import Binding, Scope, State

Bound = Mapping[str, Sequence[tuple[Scope, Binding]]]
"""The live bindings to records of the platform, by the records' ids."""


def load_bindings_by_target_id(state: State, resource: str, ids: Sequence[str]) -> Bound:
    """Return the bindings to each of *ids*, including contributions; none to a record that the state does not know."""
    found: dict[str, list[tuple[Scope, Binding]]] = {each: [] for each in ids}
    with state.begin_read_only() as tx:
        for scope, binding in tx.bindings.bindings_of_target_ids(PLATFORM, resource, ids):
            found[binding.target_id].append((scope, binding))
    return found
