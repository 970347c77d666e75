"""Old rows for the tests of retention, and a purge that checks its dry run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import create_engine, select
from tests.unit.state.samples import SCOPE, binding, intent

from crossdock.state import (
    DeadLetter,
    DueRun,
    FileFacts,
    Intent,
    RecordIdentity,
    RunResult,
    State,
    StateUrl,
)
from crossdock.state import purge_and_compaction as purging
from crossdock.state.retention import PurgeResult, PurgeTimes
from crossdock.state.tables.intents_and_stored_batches import Status
from crossdock.state.tables.scheduled_runs import Status as Ending
from crossdock.values.run_progress_and_messages import RunMessage

NOW = datetime(2026, 6, 1, tzinfo=UTC)
OLD, YOUNG = NOW - timedelta(days=100), NOW - timedelta(days=10)
AGES = PurgeTimes.from_age(NOW, timedelta(days=90), keys_kept_s=0)
CANARY = "canary-7f31c2"


def run(state: State, at: datetime = OLD, *, finished: bool = True) -> int:
    with state.begin() as tx:
        number = tx.runs.start(business_date="2026-01-01", at=at)
        if finished:
            tx.runs.finish(number, RunResult("done", messages=[RunMessage("note", "", "is said")]), at=at)
    return number


def settle(state: State, run_id: int, items: list[Intent], status: Status, at: datetime = OLD) -> None:
    """Write *items* and move them to *status*; a delivered one leaves a binding with its counter."""
    with state.begin() as tx:
        tx.intents.add(items, run_id=run_id, fence=1, at=at)
        for item in items:
            item.status = status
        tx.intents.write_outcomes(items, at=at)
        if status == "delivered":
            bound = [binding(item.identity.key_hash, counter=item.counter) for item in items]
            tx.bindings.put(SCOPE, bound, run_id=run_id, at=at)


def item(number: int, counter: int = 1, **changes: Any) -> Intent:
    facts = {"counter": counter, "idempotency_key": f"key-{number}-{counter}", "body": CANARY.encode()}
    return intent(number, **(facts | {"raw": {"columns": ["A"], "rows": [[CANARY]], "lines": [2]}} | changes))


def dead_letter(number: int) -> DeadLetter:
    raw = {"columns": ["A"], "rows": [[CANARY]], "lines": [3]}
    identity = RecordIdentity("wms.products", f"K{number}", number, 5, None, "f", 3)
    return DeadLetter(identity, "mapping", "bad_value", "A", "is missing", raw, {"name": CANARY})


def rows(url: StateUrl, table: Any) -> list[dict[str, Any]]:
    opened = create_engine(url)
    with opened.begin() as connection:
        found = [dict(row) for row in connection.execute(select(table).order_by(*table.primary_key)).mappings()]
    opened.dispose()
    return found


def purge(state: State, url: StateUrl, ages: PurgeTimes = AGES) -> PurgeResult:
    """Purge after a dry run, which must announce the same."""
    with state.begin() as tx:
        announced = tx.retention.count_removable(ages)
    done = purging.purge_rows_and_rewrite_file(state, url, ages)
    assert done == announced
    with state.begin() as tx:
        assert tx.retention.count_removable(ages) == PurgeResult(0, 0, 0, 0)
    return done


def minted_next(state: State, number: int) -> int:
    """The counter that the next operation on a record gets, as the dispatcher computes it."""
    with state.begin() as tx:
        known = tx.bindings.idempotency_counters(SCOPE, [number]), tx.intents.idempotency_counters(SCOPE, [number])
        return 1 + max(counters.get(number, 0) for counters in known)


def execute(state: State, number: int, *, job: str = "daily", status: Ending = "done") -> DueRun:
    """A scheduled run that was due and executed *number* days before `NOW`."""
    at = NOW - timedelta(days=number)
    due_run = DueRun(job, at, at.date())
    run_id = run(state, at)
    with state.begin() as tx:
        assert tx.scheduled_runs.begin_unless_finished(due_run, at=at)
        if status != "running":
            tx.scheduled_runs.finish(due_run, status, run_id, None, at=at)
    return due_run


def file(name: str, at: datetime, stamp: str) -> FileFacts:
    return FileFacts(name, f"hash of {name}", 1, at, stamp)
