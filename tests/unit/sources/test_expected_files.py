"""When a stream must find a new file, and when the absence of one is tolerated."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from crossdock.reading.sources.expected_and_late_files import Expect, Expectation
from crossdock.reading.sources.run_context import JobRun, SourceContext, WaitingRun
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.state import FileFacts
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import SilentProgress

BERLIN = ZoneInfo("Europe/Berlin")
HERE = Path()
DUE = datetime(2026, 3, 10, 2, 0, tzinfo=UTC)


def run(now: datetime, job: JobRun | None = None, zone: ZoneInfo | None = None) -> SourceContext:
    patience = WaitingRun(now, zone) if zone else None
    return SourceContext(ManualClock(now), SilentProgress(), EmptyIntakeLog(), HERE, HERE, HERE, patience, job=job)


def file(modified: datetime, accepted: datetime | None = None) -> FileFacts:
    return FileFacts("ITEM_1.csv", "hash", 3, modified, "stamp", accepted or modified)


def missing(expectation: Expectation, known: list[FileFacts], context: SourceContext) -> str | None:
    error = expectation.violation(known, context, "out/ITEM_*")
    return None if error is None else f"{error.where}: {error.message}"


@pytest.mark.parametrize(
    ("at", "is_missing"),
    [
        pytest.param("2026-03-10T03:00", False, id="before the time"),
        pytest.param("2026-03-10T04:59", False, id="just before it"),
        pytest.param("2026-03-10T05:00", True, id="at it"),
        pytest.param("2026-03-10T12:00", True, id="long after it"),
    ],
)
def test_absence_is_tolerated_until_a_time_of_day(at: str, is_missing: bool) -> None:
    """A file of yesterday is enough until 05:00 in the schedule's zone, whenever it was accepted."""
    now = datetime.fromisoformat(at).replace(tzinfo=BERLIN)
    known = [file(datetime(2026, 3, 9, 2, 31, tzinfo=BERLIN), datetime(2026, 3, 9, 6, 0, tzinfo=BERLIN))]
    found = missing(Expectation(expect=Expect(by="05:00")), known, run(now, zone=BERLIN))
    assert (found is not None) is is_missing
    if found:
        assert found == (
            "out/ITEM_*: no new file since 2026-03-09 04:00:00Z; newest: ITEM_1.csv of 2026-03-09 01:31:00Z"
        )


@given(
    now=st.integers(0, 366 * 24 * 60).map(
        lambda minutes: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    ),
    by=st.times().map(lambda at: f"{at:%H:%M}") | st.none(),
    days=st.integers(1, 30),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"]),
)
def test_an_interval_ends_at_most_a_day_ago(now: datetime, by: str | None, days: int, zone: str) -> None:
    """Also across clock changes; without a time of day it ends now."""
    ends = Expect(every=f"{days}d", by=by).begin(now, ZoneInfo(zone)) + timedelta(days=days)
    assert ends <= now
    assert now - ends <= (timedelta(hours=26) if by else timedelta())


@pytest.mark.parametrize(
    ("required", "is_usual", "job", "accepted", "is_missing"),
    [
        pytest.param(None, True, None, None, False, id="manual"),
        pytest.param(None, True, JobRun(DUE, None), None, True, id="first run, never a file"),
        pytest.param(None, True, JobRun(DUE, None), DUE - timedelta(days=9), False, id="first run, read by hand"),
        pytest.param(None, True, JobRun(DUE, DUE - timedelta(days=1)), DUE - timedelta(days=2), True, id="missing"),
        pytest.param(
            None, True, JobRun(DUE, DUE - timedelta(days=1)), DUE - timedelta(hours=1), False, id="read since"
        ),
        pytest.param(None, True, JobRun(DUE, DUE + timedelta(hours=1)), DUE, False, id="caught up with"),
        pytest.param(None, False, JobRun(DUE, DUE - timedelta(days=1)), None, False, id="append"),
        pytest.param(False, True, JobRun(DUE, DUE - timedelta(days=1)), None, False, id="not required"),
        pytest.param(True, False, JobRun(DUE, DUE - timedelta(days=1)), None, True, id="append, required"),
        pytest.param(True, False, None, DUE, True, id="manual, required"),
    ],
)
def test_what_a_run_requires(
    required: bool | None, is_usual: bool, job: JobRun | None, accepted: datetime | None, is_missing: bool
) -> None:
    """By default only scheduled runs of snapshots, and only what came since the job's last run."""
    known = [file(accepted)] if accepted else []
    found = missing(Expectation(required, None, is_usual), known, run(DUE + timedelta(minutes=5), job))
    assert (found is not None) is is_missing
    if found:
        assert ("there was none before" in found) is (not known)


@pytest.mark.parametrize(("hours", "is_missing"), [(25.5, True), (2.0, False)])
def test_a_night_that_is_started_a_day_late_is_not_caught_up_with(hours: float, is_missing: bool) -> None:
    """Another program names the date of yesterday each day: the run before ended after this one was due, a day ago."""
    job = JobRun(DUE, DUE + timedelta(hours=1.5), DUE - timedelta(days=1))
    known = [file(DUE + timedelta(hours=1))]
    found = missing(Expectation(None, None, is_usual=True), known, run(DUE + timedelta(hours=hours), job))
    assert (found is not None) is is_missing


@pytest.mark.parametrize("every", ["0d", "400d", "soon", "90s", 1, "1w"])
def test_an_invalid_interval(every: object) -> None:
    """It is refused with examples of valid ones."""
    with pytest.raises(ValidationError, match="not an interval such as 6h, 1d or 7d, up to 366d"):
        Expect.model_validate({"every": every})
