"""A month in numbers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.report_page import dead_letter, sqlite_state

from crossdock.runs.month_summary import MonthSummary, Trend, first_day_or_none, month_summary
from crossdock.state import DueRun, RunResult, State, Transaction
from crossdock.state.retention import PurgeTimes

MARCH = date(2026, 3, 1)
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[State]:
    with sqlite_state(tmp_path) as state:
        yield state


def night(tx: Transaction, day: date, status: str = "done", **streams: dict[str, int]) -> int:
    """A scheduled run at noon; *streams* have the numbers of records delivered, and open at its end."""
    at = datetime.combine(day, datetime.min.time(), UTC) + timedelta(hours=12)
    run = DueRun("nightly", at, day)
    tx.scheduled_runs.get_or_register_first_seen("nightly", at)
    assert tx.scheduled_runs.begin_unless_finished(run, at=at)
    run_id = tx.runs.start(business_date=day.isoformat(), at=at, job="nightly")
    tally: dict[str, Any] = {
        name: {"records": {"delivered": of.get("delivered", 0)}, "open": {"rejected": of.get("open", 0)}}
        for name, of in streams.items()
    }
    tx.runs.finish(run_id, RunResult(status, requests=10, throttled=1, tally=tally), at=at)
    tx.scheduled_runs.finish(run, status, run_id, None, at=at)  # type: ignore[arg-type]  # a name of a status
    return run_id


def summary(tx: Transaction) -> MonthSummary:
    return month_summary(tx, {}, {"items": "product", "lots": "inventory_lot"}, MARCH, NOW)


def test_days_have_what_is_open_at_their_end(kept: State) -> None:
    """Of a stream that no run of the day has read, what an earlier one left; before the first run it is unknown."""
    with kept.begin() as tx:
        night(tx, date(2026, 3, 2), items={"delivered": 5, "open": 2}, lots={"open": 3})
        night(tx, date(2026, 3, 4), items={"delivered": 1, "open": 0})
        days = summary(tx).days
    assert [each.business_date.day for each in days] == list(range(1, 11))
    assert [each.open for each in days[:5]] == [None, 5, 5, 3, 3]
    assert [(each.runs, each.delivered, each.requests, each.throttled) for each in days[1:4]] == [
        (1, 5, 10, 1),
        (0, 0, 0, 0),
        (1, 1, 10, 1),
    ]


def test_a_month_is_compared_with_the_one_before(kept: State) -> None:
    """By resource, and by the reason of what is still rejected."""
    with kept.begin() as tx:
        before = night(tx, date(2026, 2, 27), items={"delivered": 4}, gone={"delivered": 2})
        this = night(tx, date(2026, 3, 2), items={"delivered": 5}, lots={"delivered": 7})
        later = night(tx, date(2026, 4, 1), items={"delivered": 100})
        for run, numbers in ((before, (1,)), (this, (2, 3)), (later, (4,))):
            tx.dead_letters.put([dead_letter(number) for number in numbers], run_id=run, at=NOW)
        found = summary(tx)
    assert list(found.delivered) == [Trend("inventory_lot", 7, 0), Trend("product", 5, 4), Trend("other", 0, 2)]
    assert list(found.reasons) == [Trend("bad_value", 2, 1)]
    assert found.totals[0] == Trend("runs", 1, 1)


def test_times_of_trouble_end_with_the_month(kept: State) -> None:
    """One that began in the month before counts from the first day; one that lasts counts until now."""
    with kept.begin() as tx:
        night(tx, date(2026, 2, 27), "failed")
        night(tx, date(2026, 3, 2), "degraded")
        night(tx, date(2026, 3, 3), "degraded")
        night(tx, date(2026, 3, 5))
        night(tx, date(2026, 3, 6), "incomplete")
        (times,) = summary(tx).jobs
    assert times.degraded == timedelta(days=3)
    assert (times.outages, times.longest) == (2, (datetime(2026, 3, 6, 12, tzinfo=UTC), NOW))


def test_a_month_says_that_retention_has_removed_runs(kept: State) -> None:
    """Its numbers, and those of the month before, are too small then; those of later months are whole."""
    with kept.begin() as tx:
        for day in (date(2026, 2, 20), date(2026, 2, 27), date(2026, 3, 2), date(2026, 3, 9)):
            night(tx, day, "failed", items={"delivered": 5})
        assert summary(tx).runs_since is None
        ages = PurgeTimes.from_age(datetime(2026, 3, 8, tzinfo=UTC), timedelta(days=7), keys_kept_s=0)
        for step in tx.retention.steps.values():
            step(ages)
        found = summary(tx)
        later = month_summary(tx, {}, {}, date(2026, 5, 1), NOW)
    assert found.totals[0] == Trend("runs", 2, 0)
    assert found.runs_since == datetime(2026, 2, 27, 12, tzinfo=UTC)
    assert later.runs_since is None


def test_a_month_has_one_form() -> None:
    """A year and a month with a hyphen."""
    assert first_day_or_none("2026-03") == MARCH
    assert [first_day_or_none(text) for text in ("0001-01", "1899-12", "9999-12")] == [None] * 3
    assert [first_day_or_none(text) for text in ("2026-3", "2026-13", "202603", "", "2026-03-01", "abcdefg")] == [
        None
    ] * 6
