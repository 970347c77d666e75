"""The bindings to records of the platform, and results for operations in doubt about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.state import Binding, Scope, State

Bound = Mapping[str, Sequence[tuple[Scope, Binding]]]
"""The live bindings to records of the platform, by the records' ids."""


class InDoubtResult(NamedTuple):
    """The result for an operation in doubt, with the id of its record if it was executed and is not a delete."""

    outcome: Literal["delivered", "not delivered", "unknown"]
    target_id: str | None = None


def bindings_to(state: State, resource: str, ids: Sequence[str]) -> Bound:
    """Return the bindings to each of *ids*, including contributions; none to a record that the state does not know."""
    found: dict[str, list[tuple[Scope, Binding]]] = {each: [] for each in ids}
    with state.read_only() as tx:
        for scope, binding in tx.bindings.of_ids(PLATFORM, resource, ids):
            found[binding.target_id].append((scope, binding))
    return found
