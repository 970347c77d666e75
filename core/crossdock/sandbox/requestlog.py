"""The requests that came in, as the second witness: the latest in full, all of them as counts."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Mapping
from itertools import islice

from crossdock.sandbox.answers import Answer
from crossdock.sandbox.reading import known_only, whole

KEPT = 20_000


class RequestLog:
    """Notes every request outside ``/_sandbox``, in memory; a restart empties it."""

    def __init__(self, kept: int = KEPT) -> None:
        self._latest: deque[dict[str, object]] = deque(maxlen=kept)
        self._by_status: Counter[int] = Counter()
        self._total = 0

    def note(self, status: int, **facts: str | None) -> None:
        self._total += 1
        self._by_status[status] += 1
        self._latest.append({"seq": self._total, "status": status, **facts})

    def answer(self, query: Mapping[str, str]) -> Answer:
        """The requests after ``after`` that are still kept, at most ``limit``, with the counts of all."""
        known_only(query, "after", "limit")
        after, limit = whole(query, "after", 0, lowest=0), whole(query, "limit", 1000, highest=10_000)
        skipped = max(0, after - (self._total - len(self._latest)))
        document = {
            "data": list(islice(self._latest, skipped, skipped + limit)),
            "total": self._total,
            "byStatus": {str(status): count for status, count in sorted(self._by_status.items())},
        }
        return Answer(200, json.dumps(document).encode(), {"content-type": "application/json"})
