"""Retention removes or empties rows in batches, and keeps what recognises repeated contents."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.state.upkeep.old_rows import (
    AGES,
    CANARY,
    NOW,
    OLD,
    YOUNG,
    dead_letter,
    execute,
    file,
    item,
    purge,
    rows,
    run,
    settle,
)

from crossdock.state import (
    DueRun,
    PastSnapshot,
    State,
    StateUrl,
    retention,
)
from crossdock.state.db.schema import configs, dead_letters
from crossdock.state.retention import PurgeResult


def test_old_dead_letters_lose_their_data(state: State, state_url: StateUrl) -> None:
    """The reason and the place of a rejection stay, the data goes; a newer dead letter keeps all."""
    number = run(state)
    with state.begin() as tx:
        tx.dead_letters.put([dead_letter(1)], run_id=number, at=OLD)
        tx.dead_letters.put([dead_letter(2)], run_id=number, at=YOUNG)
    assert purge(state, state_url) == PurgeResult(0, 0, 1, 0)
    old, young = rows(state_url, dead_letters)
    assert (old["raw"], old["mapped"]) == ({}, None)
    assert (old["key"], old["code"], old["message"], old["source"], old["line"]) == (
        "K1",
        "bad_value",
        "is missing",
        "f",
        3,
    )
    assert (young["raw"]["rows"], young["mapped"]) == ([[CANARY]], {"name": CANARY})


def test_old_scheduled_runs_go_and_count_as_finished(state: State, state_url: StateUrl) -> None:
    """The last one of a job, those that estimate its duration and unfinished ones stay; no removed one runs again."""
    rare = [execute(state, number, job="rare") for number in (800, 700)]
    old = [execute(state, number) for number in range(160, 90, -10)]
    open_ = execute(state, 155, status="running")
    young = [execute(state, number) for number in (20, 10)]
    skipped = execute(state, 300, job="off", status="skipped"), execute(state, 200, job="off", status="skipped")
    with state.begin_read_only() as tx:
        expected, last = (
            tx.scheduled_runs.expected_seconds_and_requests("daily"),
            tx.scheduled_runs.last_finished_run("daily"),
        )
    done = purge(state, state_url)
    assert (done.nights_removed, done.runs_removed) == (len(old) - 3 + 1, len(old) - 3 + 1 + 1)
    with state.begin() as tx:
        left = {(each.job, each.due) for each in tx.scheduled_runs.listed(limit=99)}
        assert left == {(each.job, each.due) for each in (*rare, *old[-3:], open_, *young, skipped[-1])}
        assert (
            tx.scheduled_runs.expected_seconds_and_requests("daily"),
            tx.scheduled_runs.last_finished_run("daily"),
        ) == (
            expected,
            last,
        )
        for gone in (*old[:-3], skipped[0]):
            assert not tx.scheduled_runs.begin_unless_finished(gone, at=NOW)
        assert tx.scheduled_runs.begin_unless_finished(open_, at=NOW)
        assert tx.scheduled_runs.begin_unless_finished(DueRun("daily", NOW, NOW.date()), at=NOW)


def test_old_files_go_and_are_recognised(state: State, state_url: StateUrl) -> None:
    """Of a file that its source lists no longer its content stays known; the latest and the newest stay whole."""
    run(state)
    with state.begin() as tx:
        for day, (name, stamp) in enumerate({"a": "1", "newest": "9", "b": "2", "listed": "3", "last": "4"}.items()):
            tx.intake.accept("s", "1", [file(name, OLD, stamp)], at=OLD + timedelta(days=day))
        tx.intake.finish_accepted_files("s", "1")
        tx.intake.accept("s", "1", [file("unfinished", OLD, "0")], at=OLD)
        tx.intake.mark_listed_by_source("s", "1", ["hash of listed"], at=YOUNG)
        tx.intake.accept("other", "1", [file("only", OLD, "1")], at=OLD)
        tx.intake.finish_accepted_files("other", "1")
    assert purge(state, state_url) == PurgeResult(files_removed=2)
    with state.begin_read_only() as tx:
        assert [facts.name for facts in tx.intake.finished_files("s", "1").values()] == ["newest", "listed", "last"]
        assert list(tx.intake.unfinished_files("s")) == ["hash of unfinished"]
        assert max(facts.stamp for facts in tx.intake.known_files("s")) == "9"
        known = tx.intake.digests_removed_by_retention("s", "1")
        assert [f"hash of {name}" in known for name in ("a", "b", "c", "listed")] == [True, True, False, False]
        assert "hash of a" not in tx.intake.digests_removed_by_retention("s", "2")
        assert not tx.intake.digests_removed_by_retention("other", "1")


def test_old_snapshots_go_and_are_recognised(state: State, state_url: StateUrl) -> None:
    """The latest of a stream stay, to compare the next one with; whatever was worked through is known for good."""
    with state.begin() as tx:
        for day in range(6):
            tx.snapshots.record_snapshot("s", f"content {day}", PastSnapshot(day, day), at=OLD + timedelta(days=day))
        tx.snapshots.record_snapshot("t", "content", PastSnapshot(1, 1), at=OLD)
        latest = tx.snapshots.latest_snapshots("s", 3)
    assert purge(state, state_url) == PurgeResult(snapshots_removed=3)
    with state.begin_read_only() as tx:
        assert tx.snapshots.latest_snapshots("s", 9) == latest
        assert all(tx.snapshots.was_snapshot_read_before("s", f"content {day}") for day in range(6))
        assert not tx.snapshots.was_snapshot_read_before("s", "content 6")
        assert not tx.snapshots.was_snapshot_read_before("t", "content 1")


def test_many_rows_go_in_batches(state: State, state_url: StateUrl, monkeypatch: pytest.MonkeyPatch) -> None:
    """No transaction takes more rows than a batch, and all of them are done in the end."""
    monkeypatch.setattr(retention, "BATCH", 3)
    number = run(state)
    settle(state, number, [item(key) for key in range(1, 11)], "delivered")
    settle(state, number, [item(key) for key in range(11, 18)], "rejected")
    with state.begin() as tx:
        tx.dead_letters.put([dead_letter(key) for key in range(7)], run_id=number, at=OLD)
    with state.begin() as tx:
        assert tx.retention.steps["operations_removed"](AGES) == 3
    assert purge(state, state_url) == PurgeResult(7, 7, 7, 0)


def test_a_config_goes_with_the_last_run_that_had_it(state: State, state_url: StateUrl) -> None:
    """It is stored once, however many runs had it; one that a newer run had stays."""
    for at, content in ((OLD, "first"), (OLD, "first"), (OLD, "second"), (YOUNG, "second")):
        number = run(state, at)
        with state.begin() as tx:
            tx.run_configs.store(number, {"spool": content})
    assert {row["content"]["spool"] for row in rows(state_url, configs)} == {"first", "second"}
    assert purge(state, state_url) == PurgeResult(runs_removed=3)
    assert [row["content"]["spool"] for row in rows(state_url, configs)] == ["second"]
