"""References of platform records that the state does not know: those of others' records, and those that others
changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crossdock.mapping.resource_types import RESOURCES
from crossdock.mapping.stream_facts import PLATFORM
from crossdock.migration.referred_records import ReferredRecords
from crossdock.planning.referred_ids import referred_ids
from crossdock.runs.bound_records import Bound


class LiveReferences(ReferredRecords):
    """Collects them from the pages of the platform's lists."""

    def take(self, resource: str, page: Sequence[Mapping[str, Any]], bound: Bound) -> None:
        """Add the references of the records of *page* that the payloads *bound* to them do not have."""
        kind = RESOURCES[resource]
        if not kind.parents:
            return
        for held in page:
            name = held.get("id")
            bindings = bound.get(name, ()) if isinstance(name, str) else ()
            known = {each for _, binding in bindings for each in referred_ids(kind, binding.payload)}
            if found := set(referred_ids(kind, held)) - known:
                self.add(resource, PLATFORM, found)
