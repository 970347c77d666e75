"""A run compared with the last ones of its job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from crossdock.runs.comparison_with_earlier_runs import compare_last_run_with_earlier
from crossdock.state import RunRecord

AT = datetime(2026, 11, 2, 2, tzinfo=UTC)
WEEK = [1000, 1100, 1050, 990, 1000, 200, 210]


def run(number: int, read: int | None, *, seconds: int = 60, status: str = "done") -> RunRecord:
    account: dict[str, Any] = {"rows": {"read": read}, "records": {"delivered": 7, "updated": 3}}
    began = AT + timedelta(days=number)
    tally = None if read is None else {"wms.items": account}
    return RunRecord(
        number, "nightly", began.date().isoformat(), began, began, status, 9, 0, tally, duration_ms=seconds * 1000
    )


def remarks(*read: int | None, **last: Any) -> list[str]:
    runs = [run(number, each) for number, each in enumerate(read[:-1])]
    found = compare_last_run_with_earlier([*runs, run(len(runs), read[-1], **last)])
    return [] if found is None else found.remarks


def test_a_sudden_drop_is_said_in_words() -> None:
    """A number below half of the median, and below each of the runs before."""
    drop = "A sudden drop of rows read to 150: the median of the 14 completed runs before is 1,000."
    assert remarks(*WEEK, *WEEK, 150) == [drop]
    assert remarks(*WEEK, *WEEK, 600) == []


def test_a_quiet_day_that_comes_again_is_no_drop() -> None:
    """As on the Sundays before."""
    assert remarks(*WEEK, *WEEK[:5], 205) == []


def test_nothing_is_unusual_among_few_runs() -> None:
    """Failed runs and those without a tally are not compared with."""
    assert remarks(1000, 1000, 1000, 1000, 1) == []
    assert remarks(1000, 1000, 1000, 1000, None, 1) == []
    assert compare_last_run_with_earlier([run(1, 5)]) is None


def test_a_run_that_takes_much_longer_is_remarked() -> None:
    """Above twice the median, and above each."""
    (remark,) = remarks(*WEEK, 1000, seconds=121)
    assert (
        remark == "The duration of 2 min 1 s is unusually long: the median of the 7 completed runs before is 1 min 0 s."
    )
    assert remarks(*WEEK, 1, status="running", seconds=121) == []
