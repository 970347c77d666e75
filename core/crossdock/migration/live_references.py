"""References of platform records that the state does not know: those of others' records, and those that others
changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crossdock.mapping.stream_facts import PLATFORM
from crossdock.migration.referred_records import ReferredRecords
from crossdock.runs.bound_records import Bound
from crossdock.runs.unknown_references import unknown_references


class LiveReferences(ReferredRecords):
    """Collects them from the pages of the platform's lists."""

    def take(self, resource: str, page: Sequence[Mapping[str, Any]], bound: Bound) -> None:
        """Add the references of the records of *page* that the payloads *bound* to them do not have."""
        for _, found in unknown_references(resource, page, bound):
            self.add(resource, PLATFORM, found)
