"""Counts the records on which an author's code failed, and stops the stream beyond its limits."""

from __future__ import annotations

from crossdock.config.project.connections import BoundStream
from crossdock.errors import RecordError, RefusedError
from crossdock.values.records import Record

_FAILED = {"mapping_failed": "the mapping", "target_failed": "the code of the target"}
"""The reasons that count, each with the failing code."""


class FailureCount:
    def __init__(self, bound: BoundStream, records: int | None) -> None:
        self._bound, self._records, self._failed = bound, records, 0

    def count_failure(self, record: Record, error: RecordError) -> RefusedError | None:
        if error.code not in _FAILED:
            return None
        self._failed += 1
        limits = self._bound.stream.mapping_failed
        if self._records is None or not limits.exceeded(self._failed, self._records):
            return None
        failing = _FAILED[error.code]
        return RefusedError(
            f"{failing} failed for {self._failed:,} of {self._records:,} records, which exceeds mapping_failed:"
            f" at_most ({limits.at_most:,}) and at_most_percent ({limits.at_most_percent:g}); last: {error.message}",
            where=f"{record.source}:{error.line or record.lines[0]}",
            hint=f"fix {failing} and run again to read the remaining records, then replay the rejected ones:"
            f" crossdock records replay {self._bound.name} --reason {error.code}",
            code="mapping_fails_too_often",
        )
