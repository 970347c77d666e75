"""Records that others have edited since crossdock wrote them, in any member."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from crossdock.reading.sources.id_set import IdSet
from crossdock.runs.bound_records import Bound, bindings_to
from crossdock.runs.platform_source.settings import CHANGED
from crossdock.state import Binding, State

Version = Callable[[str], str | None]
"""Returns the entity tag of the platform's record of an id, or None."""


class EditedRecords:
    """Compares when the platform's records were changed with what it answered when they were written.

    A list states when a record was changed. If it does not, or if the answer to the write did not, the entity tag is
    looked up, with one request for each record. Each id takes about 20 bytes.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._edited, self._unsure = IdSet(), IdSet()
        self.may_ask = False  # whether some records must be looked up

    def take(self, resource: str, page: Sequence[dict[str, Any]], bound: Bound) -> None:
        held = {each["id"]: each.get(CHANGED) for each in page if isinstance(each.get("id"), str)}
        edited, unsure = list[str](), list[str]()
        for target_id, binding in _wholes(bound).items():
            if binding.changed_at is not None and isinstance(held[target_id], str):
                edited += [target_id] * (held[target_id] != binding.changed_at)
            elif binding.etag is not None:
                unsure.append(target_id)
        self._edited.add([_place(resource, each) for each in edited])
        self._unsure.add([_place(resource, each) for each in unsure])
        self.may_ask |= bool(unsure)

    def look_up(self, resource: str, ids: Sequence[str], version: Version) -> None:
        unsure = self._unsure.among([_place(resource, each) for each in ids])
        bound = bindings_to(self._state, resource, [each for each in ids if _place(resource, each) in unsure])
        for target_id, binding in _wholes(bound).items():
            found = version(target_id)
            if found is not None and found != binding.etag:
                self._edited.add([_place(resource, target_id)])

    def among(self, resource: str, ids: Sequence[str]) -> set[str]:
        found = self._edited.among([_place(resource, each) for each in ids])
        return {each for each in ids if _place(resource, each) in found}


def _wholes(bound: Bound) -> dict[str, Binding]:
    """Return the binding of each record. Each write of a contribution also renews the version of the whole record."""
    return {name: min(each, key=lambda one: one[0].is_contribution)[1] for name, each in bound.items() if each}


def _place(resource: str, target_id: str) -> str:
    return f"{resource} {target_id}"
