"""Records that others refer to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from crossdock.reading.sources.id_set import IdSet
from crossdock.state import Scope


class ReferredRecords:
    """Records by the resource of those that refer to them. Each takes about 20 bytes."""

    def __init__(self) -> None:
        self._by = defaultdict[str, IdSet](IdSet)

    def add(self, by: str, target: str, referred: Iterable[tuple[str, str]]) -> None:
        self._by[by].add([place(target, *each) for each in referred])

    def among(self, scope: Scope, ids: Sequence[str]) -> dict[str, str]:
        places = {place(scope.target, scope.resource, each): each for each in ids}
        found = dict[str, str]()
        for resource, referred in sorted(self._by.items()):
            found = {places[each]: resource for each in referred.among(list(places))} | found
        return found


def place(target: str, resource: str, target_id: str) -> str:
    """Return a text that identifies one record of any target in an `IdSet`."""
    return f"{target} {resource} {target_id}"
