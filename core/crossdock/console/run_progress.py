"""What is known of a run while it is in progress."""

from __future__ import annotations

from datetime import datetime, timedelta

from crossdock.state import RunRecord
from crossdock.values.display_texts import counted
from crossdock.values.display_times import duration_text, instant_text


def progress_text(run: RunRecord, expected: tuple[float, int] | None, now: datetime) -> str:
    """Describe its requests and rate so far, and its end if the last runs of its job took *expected* seconds."""
    lasts = max((now - run.started_at).total_seconds(), 0.001)
    text = f"{counted(run.requests, 'request')} in {duration_text(lasts)}, {run.requests / lasts:,.1f} a second"
    if expected is None:
        return text
    left = timedelta(seconds=expected[0] - lasts)
    if left < timedelta():
        return f"{text}; longer than the {duration_text(expected[0])} of its last runs"
    return f"{text}; expected to end at {instant_text(now + left)}"
