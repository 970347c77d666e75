"""The report of a run: its status and exit code."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.errors import ConfigError, CrossdockError, InternalError, RefusedError, StoppedError, UnavailableError
from crossdock.runs.run_report import Report
from crossdock.values.run_states_and_tally import NOTHING_OPEN, OpenCounts


def report(*errors: CrossdockError, read: int = 0, left: OpenCounts = NOTHING_OPEN, **terms: int) -> Report:
    made = Report(1, "2026-03-29")
    for number, error in enumerate(errors):
        made.messages.add_error(f"wms.{number}", error)
    made.open["wms.products"] = left
    tally = made.tally("wms.products")
    tally.count("read", read)
    for term, number in terms.items():
        tally.count(term, number)  # type: ignore[arg-type]  # names of terms, as keywords
    return made


@pytest.mark.parametrize(
    ("made", "status", "code"),
    [
        pytest.param(report(read=2, created=2), "done", 0, id="all delivered"),
        pytest.param(report(read=2, created=1, rejected=1, left=OpenCounts(rejected=1)), "degraded", 1, id="rejected"),
        pytest.param(report(read=1, carried_on=1, left=OpenCounts(waiting=1)), "degraded", 1, id="waiting"),
        pytest.param(report(left=OpenCounts(rejected=1)), "degraded", 1, id="rejected by an earlier run"),
        pytest.param(report(left=OpenCounts(in_doubt=1)), "degraded", 1, id="in doubt since an earlier run"),
        pytest.param(report(left=OpenCounts(pending=1)), "degraded", 1, id="not sent by an earlier run"),
        pytest.param(report(RefusedError("no"), left=OpenCounts(waiting=1)), "incomplete", 4, id="refused with open"),
        pytest.param(report(UnavailableError("no"), read=1, created=1), "incomplete", 3, id="a failed source"),
        pytest.param(report(RefusedError("no"), ConfigError("no")), "incomplete", 4, id="refused before config"),
        pytest.param(report(UnavailableError("no"), RefusedError("no")), "incomplete", 3, id="failed before refused"),
        pytest.param(report(StoppedError("stop"), UnavailableError("no")), "incomplete", 130, id="interrupted"),
        pytest.param(report(InternalError("no")), "failed", 70, id="internal error"),
        pytest.param(report(read=2, created=1), "failed", 70, id="unbalanced"),
    ],
)
def test_the_most_severe_result_decides(made: Report, status: str, code: int) -> None:
    """The exit code is that of the most severe error; an unbalanced tally is an internal error."""
    assert (made.status, made.exit_code) == (status, code)
    assert made.as_json()["balanced"] is (code != 70 or "no" in str(made.errors))


def test_errors_are_listed_by_stream() -> None:
    """The error of the run itself stands under ``run``."""
    made = report(UnavailableError("no answer", where="host"))
    made.messages.add_error("", StoppedError("stopped"))
    assert made.as_json()["errors"] == {"wms.0": "host: no answer", "run": "stopped"}


@given(st.timedeltas(timedelta(), timedelta(days=9)))
def test_the_duration_shown_is_the_one_that_is_stored(lasted: timedelta) -> None:
    """Whatever the clock measured, both are the same number of whole milliseconds."""
    made = Report(1, "2026-03-29", lasted=lasted)
    assert made.as_json()["seconds"] == timedelta(milliseconds=made.duration_ms).total_seconds()
    assert abs(lasted - timedelta(milliseconds=made.duration_ms)) <= timedelta(microseconds=500)
