"""What is known of a run while it is in progress."""

from __future__ import annotations

from datetime import datetime, timedelta

from crossdock.console.connection_facts_without_connecting import bucket_level_text
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.state import RunRecord, Transaction
from crossdock.values.texts_of_numbers_and_times import count_with_noun, duration_text, instant_text


def progress_text(tx: Transaction, run: RunRecord, now: datetime) -> str:
    """Describe its requests and rate so far, its end if its job has run before, and the allowance that is left."""
    lasts = max((now - run.started_at).total_seconds(), 0.001)
    refused = f", {run.throttled:,} of them refused for their rate" if run.throttled else ""
    text = (
        f"{count_with_noun(run.requests, 'request')} in {duration_text(lasts)}, {run.requests / lasts:,.1f} a "
        f"second{refused}"
    )
    return f"{text}; {_expected_end_text(tx, run, lasts, now)}; {_remaining_allowance_text(tx, now)}"


def _expected_end_text(tx: Transaction, run: RunRecord, lasts: float, now: datetime) -> str:
    expected = tx.scheduled_runs.expected_seconds_and_requests(run.job) if run.job else None
    if expected is None:
        return "its end is unknown, because no run of its job has ended yet" if run.job else "its end is unknown"
    seconds, requests = expected
    if seconds < lasts:
        return (
            f"longer than its last runs, which took {duration_text(seconds)} for {count_with_noun(requests, 'request')}"
        )
    return f"expected to end at {instant_text(now + timedelta(seconds=seconds - lasts))}"


def _remaining_allowance_text(tx: Transaction, now: datetime) -> str:
    known = tx.buckets.get(PLATFORM)
    rate = known.estimate.rate_per_s if known else None
    shown = "" if rate is None else f", {rate * 60:,.0f} a minute"
    return f"allowance of the platform: {bucket_level_text(known, now)}{shown}"
