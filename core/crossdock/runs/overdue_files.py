"""Warnings about files that a partner has not acknowledged in time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from crossdock.state import OverdueBatch
from crossdock.values.display_times import instant_text
from crossdock.values.run_messages import RunMessages

_SHOWN = 3  # files of one stream


def warn_of_overdue(messages: RunMessages, overdue: Sequence[OverdueBatch]) -> None:
    """Add a warning for each stream, with the first files and what to do."""
    for stream, group in groupby(sorted(overdue, key=lambda each: each.stream), lambda each: each.stream):
        files = list(group)
        shown = ", ".join(f"{file.name} by {instant_text(file.due_at)}" for file in files[:_SHOWN])
        more = f" and {len(files) - _SHOWN:,} more files" if len(files) > _SHOWN else ""
        records = sum(file.records for file in files)
        messages.warn(
            stream,
            f"{files[0].target} has not acknowledged {shown}{more}: {records:,} overdue; ask whether it has them, then"
            f" run 'crossdock records resolve {stream}' with --delivered or --not-delivered",
            code="files_unacknowledged",
        )
