"""Retention: old data goes for good, and nothing that the next run relies on goes with it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, select
from tests.conftest import PIN
from tests.unit.state.test_store import SCOPE, binding, intent

from crossdock.errors import StateError
from crossdock.state import (
    DeadLetter,
    Digests,
    DueRun,
    FileFacts,
    Intent,
    PastSnapshot,
    RecordIdentity,
    State,
    StateUrl,
    WaitingRecord,
    create,
    parse_url,
)
from crossdock.state.db import engine as state_engine
from crossdock.state.db.schema import dead_letters, intents, runs
from crossdock.state.tables.intents import Status
from crossdock.state.tables.scheduled_runs import Status as Ending
from crossdock.state.upkeep import purge as purging
from crossdock.state.upkeep import retention
from crossdock.state.upkeep.expiry import Ages
from crossdock.state.upkeep.retention import PurgeResult

NOW = datetime(2026, 6, 1, tzinfo=UTC)
OLD, YOUNG = NOW - timedelta(days=100), NOW - timedelta(days=10)
AGES = Ages(operations=NOW - timedelta(days=90), others=NOW - timedelta(days=90))
CANARY = "canary-7f31c2"


def run(state: State, at: datetime = OLD, *, finished: bool = True) -> int:
    with state.begin() as tx:
        number = tx.runs.start(business_date="2026-01-01", at=at)
        if finished:
            tx.runs.finish(number, status="done", requests=0, throttled=0, tally={}, error=None, at=at)
    return number


def settle(state: State, run_id: int, items: list[Intent], status: Status, at: datetime = OLD) -> None:
    """Write *items* and move them to *status*; a delivered one leaves a binding with its counter."""
    with state.begin() as tx:
        tx.intents.add(items, run_id=run_id, fence=1, at=at)
        for item in items:
            item.status = status
        tx.intents.move(items, at=at)
        if status == "delivered":
            bound = [binding(item.identity.key_hash, counter=item.counter) for item in items]
            tx.bindings.put(SCOPE, bound, run_id=run_id, at=at)


def item(number: int, counter: int = 1, **changes: Any) -> Intent:
    facts = {"counter": counter, "idempotency_key": f"key-{number}-{counter}", "body": CANARY.encode()}
    return intent(number, **(facts | {"raw": {"columns": ["A"], "rows": [[CANARY]], "lines": [2]}} | changes))


def dead_letter(number: int) -> DeadLetter:
    raw = {"columns": ["A"], "rows": [[CANARY]], "lines": [3]}
    identity = RecordIdentity("wms.products", f"K{number}", number, 5, None, "f", 3)
    return DeadLetter(identity, "mapping", "bad_value", "A", "is none", raw, {"name": CANARY})


def rows(url: StateUrl, table: Any) -> list[dict[str, Any]]:
    opened = create_engine(url)
    with opened.begin() as connection:
        found = [dict(row) for row in connection.execute(select(table).order_by(*table.primary_key)).mappings()]
    opened.dispose()
    return found


def purge(state: State, url: StateUrl, ages: Ages = AGES) -> PurgeResult:
    """Purge, after a dry run that told the same."""
    with state.begin() as tx:
        foretold = tx.retention.count(ages)
    done = purging.purge(state, url, ages)
    assert done == foretold
    with state.begin() as tx:
        assert tx.retention.count(ages) == PurgeResult(0, 0, 0, 0)
    return done


def minted_next(state: State, number: int) -> int:
    """The counter that the next operation on a record gets, as the dispatcher reckons it."""
    with state.begin() as tx:
        known = tx.bindings.counters(SCOPE, [number]), tx.intents.counters(SCOPE, [number])
        return 1 + max(counters.get(number, 0) for counters in known)


def test_old_delivered_operations_go(state: State, state_url: StateUrl) -> None:
    """A delivered operation is removed once it is old enough; its binding keeps the counter."""
    number = run(state)
    settle(state, number, [item(1), item(2)], "delivered")
    settle(state, number, [item(2, 2), item(3)], "delivered", at=YOUNG)
    assert purge(state, state_url).operations_removed == 2
    assert [(row["key_hash"], row["counter"]) for row in rows(state_url, intents)] == [(2, 2), (3, 1)]
    assert [minted_next(state, key) for key in (1, 2, 3)] == [2, 3, 2]


@pytest.mark.parametrize("status", ["pending", "sending", "in_doubt"])
def test_what_is_unsettled_stays_whole(state: State, state_url: StateUrl, status: Status) -> None:
    """However old it is, an operation without a settled fate keeps its bytes, and so does what waits."""
    number = run(state)
    settle(state, number, [item(1)], "delivered")
    settle(state, number, [item(1, 2)], status)
    waits = WaitingRecord(
        RecordIdentity("wms.invoices", "K7", 7, 5, None, "f", 2), [], {"columns": [], "rows": [], "lines": []}
    )
    with state.begin() as tx:
        tx.waiting_records.put([waits], run_id=number, at=OLD)
    assert purge(state, state_url) == PurgeResult(1, 0, 0, 0)
    with state.begin() as tx:
        (left,) = tx.intents.unsettled()
        assert (left.body, left.raw["rows"]) == (CANARY.encode(), [[CANARY]])
        assert tx.waiting_records.of("wms.invoices") == [waits]


def test_no_idempotency_key_is_minted_twice(state: State, state_url: StateUrl) -> None:
    """A rejected operation whose counter no binding holds stays, without data: also an update of a bound record."""
    number = run(state)
    settle(state, number, [item(1), item(2, before={"name": CANARY}, after={"name": CANARY})], "rejected")
    settle(state, number, [item(3)], "delivered")
    settle(state, number, [item(3, 2)], "rejected")
    settle(state, number, [item(4)], "rejected")
    settle(state, number, [item(4, 2)], "delivered")
    due = {key: minted_next(state, key) for key in (1, 2, 3, 4)}
    assert purge(state, state_url) == PurgeResult(operations_removed=3, operations_emptied=3)
    assert {key: minted_next(state, key) for key in due} == due == {1: 2, 2: 2, 3: 3, 4: 3}
    left = rows(state_url, intents)
    assert [(row["key_hash"], row["counter"]) for row in left] == [(1, 1), (2, 1), (3, 2)]
    for row in left:
        assert (row["body"], row["before"], row["after"], row["raw"]) == (None, None, None, {})
        assert row["idempotency_key"] == f"key-{row['key_hash']}-{row['counter']}"


def test_a_removed_binding_holds_its_counter(state: State, state_url: StateUrl) -> None:
    """What was delivered of a record that was deleted later goes; what deleted it stays, for its own counter."""
    number = run(state)
    settle(state, number, [item(1)], "delivered")
    settle(state, number, [item(1, 2, operation="delete")], "rejected")
    with state.begin() as tx:
        tx.bindings.bury(SCOPE, [1], at=OLD)
    assert purge(state, state_url) == PurgeResult(operations_removed=1, operations_emptied=1)
    assert minted_next(state, 1) == 3


def test_a_later_operation_holds_the_counter(state: State, state_url: StateUrl) -> None:
    """Of a record that is refused night after night one operation is left, the latest."""
    number = run(state)
    for counter in range(1, 6):
        settle(state, number, [item(1, counter), item(2, counter)], "rejected")
    assert purge(state, state_url) == PurgeResult(operations_removed=8, operations_emptied=2)
    assert {minted_next(state, key) for key in (1, 2)} == {6}


def test_the_platform_memory_of_keys_is_kept(state: State, state_url: StateUrl) -> None:
    """Operations have an age of their own, which is at least what the platform remembers."""
    settle(state, run(state), [item(1), item(2)], "delivered", at=YOUNG)
    assert purge(state, state_url, Ages(operations=AGES.operations, others=NOW)).operations_removed == 0


def test_old_dead_letters_lose_their_data(state: State, state_url: StateUrl) -> None:
    """Why and where a record was refused stays, what it says goes; a younger letter keeps all."""
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
        "is none",
        "f",
        3,
    )
    assert (young["raw"]["rows"], young["mapped"]) == ([[CANARY]], {"name": CANARY})


def test_runs_go_when_nothing_refers_to_them(state: State, state_url: StateUrl) -> None:
    """A finished run goes with its last operation; those referred to, running, young, or the last of all stay."""
    gone, bound, killed, waiting = run(state), run(state), run(state, finished=False), run(state)
    settle(state, gone, [item(1)], "delivered")
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(1), binding(2)], run_id=bound, at=OLD)
        tx.waiting_records.put([WaitingRecord(dead_letter(3).identity, [], {})], run_id=waiting, at=OLD)
    young, last = run(state, at=YOUNG), run(state)
    assert purge(state, state_url) == PurgeResult(1, 0, 0, 1)
    assert [row["id"] for row in rows(state_url, runs)] == [bound, killed, waiting, young, last]


def nightly(state: State, number: int, *, job: str = "nightly", status: Ending = "done") -> DueRun:
    """A night that was due, and run, *number* days before `NOW`."""
    at = NOW - timedelta(days=number)
    night = DueRun(job, at, at.date())
    run_id = run(state, at)
    with state.begin() as tx:
        assert tx.scheduled_runs.begin(night, at=at)
        if status != "running":
            tx.scheduled_runs.finish(night, status, run_id, None, at=at)
    return night


def test_old_nights_go_and_count_as_run(state: State, state_url: StateUrl) -> None:
    """The last night of a job, those that tell how long it takes and one that has not ended stay; none runs again."""
    rare = [nightly(state, number, job="rare") for number in (800, 700)]
    old = [nightly(state, number) for number in range(160, 90, -10)]
    open_ = nightly(state, 155, status="running")
    young = [nightly(state, number) for number in (20, 10)]
    skipped = nightly(state, 300, job="off", status="skipped"), nightly(state, 200, job="off", status="skipped")
    with state.look() as tx:
        expected, last = tx.scheduled_runs.expected("nightly"), tx.scheduled_runs.last_finished("nightly")
    done = purge(state, state_url)
    assert (done.nights_removed, done.runs_removed) == (len(old) - 3 + 1, len(old) - 3 + 1 + 1)
    with state.begin() as tx:
        left = {(night.job, night.due) for night in tx.scheduled_runs.listed(limit=99)}
        assert left == {(each.job, each.due) for each in (*rare, *old[-3:], open_, *young, skipped[-1])}
        assert (tx.scheduled_runs.expected("nightly"), tx.scheduled_runs.last_finished("nightly")) == (expected, last)
        for gone in (*old[:-3], skipped[0]):
            assert not tx.scheduled_runs.begin(gone, at=NOW)
        assert tx.scheduled_runs.begin(open_, at=NOW)
        assert tx.scheduled_runs.begin(DueRun("nightly", NOW, NOW.date()), at=NOW)


def file(name: str, at: datetime, stamp: str) -> FileFacts:
    return FileFacts(name, f"hash of {name}", 1, at, stamp)


def test_old_files_go_and_are_recognised(state: State, state_url: StateUrl) -> None:
    """Of a file that its source lists no longer its content stays known; the latest and the newest stay whole."""
    run(state)
    with state.begin() as tx:
        for day, (name, stamp) in enumerate({"a": "1", "newest": "9", "b": "2", "listed": "3", "last": "4"}.items()):
            tx.intake.accept("s", "1", [file(name, OLD, stamp)], at=OLD + timedelta(days=day))
        tx.intake.finish("s", "1")
        tx.intake.accept("s", "1", [file("unfinished", OLD, "0")], at=OLD)
        tx.intake.seen("s", "1", ["hash of listed"], at=YOUNG)
        tx.intake.accept("other", "1", [file("only", OLD, "1")], at=OLD)
        tx.intake.finish("other", "1")
    assert purge(state, state_url) == PurgeResult(files_removed=2)
    with state.look() as tx:
        assert [facts.name for facts in tx.intake.done("s", "1").values()] == ["newest", "listed", "last"]
        assert list(tx.intake.unfinished("s")) == ["hash of unfinished"]
        assert tx.intake.newest_stamp("s") == "9"
        known = tx.intake.forgotten("s", "1")
        assert [f"hash of {name}" in known for name in ("a", "b", "c", "listed")] == [True, True, False, False]
        assert "hash of a" not in tx.intake.forgotten("s", "2")
        assert not tx.intake.forgotten("other", "1")


def test_old_snapshots_go_and_are_recognised(state: State, state_url: StateUrl) -> None:
    """The latest of a stream stay, to compare the next one with; whatever was worked through is known for good."""
    with state.begin() as tx:
        for day in range(6):
            tx.snapshots.remember("s", f"content {day}", PastSnapshot(day, day), at=OLD + timedelta(days=day))
        tx.snapshots.remember("t", "content", PastSnapshot(1, 1), at=OLD)
        latest = tx.snapshots.latest("s", 3)
    assert purge(state, state_url) == PurgeResult(snapshots_removed=3)
    with state.look() as tx:
        assert tx.snapshots.latest("s", 9) == latest
        assert all(tx.snapshots.knows("s", f"content {day}") for day in range(6))
        assert not tx.snapshots.knows("s", "content 6")
        assert not tx.snapshots.knows("t", "content 1")


@given(st.lists(st.lists(st.text(max_size=3), max_size=20), max_size=5), st.text(max_size=3))
def test_digests_know_what_was_put_in(parts: list[list[str]], other: str) -> None:
    """In whatever parts and however often contents are put in, exactly they are known, each in 16 bytes."""
    known = Digests()
    for part in parts:
        known = known.with_more(part)
    contents = {content for part in parts for content in part}
    assert all(content in known for content in contents)
    assert (other in known) == (other in contents)
    assert len(known.packed) == 16 * len(contents)
    assert bool(known) == bool(contents)


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


def test_a_purge_never_works_beside_a_run(state: State, state_url: StateUrl) -> None:
    """Whoever holds the run lock is left alone."""
    other = State(state_url, PIN)
    with state.exclusive("test"), pytest.raises(StateError, match="another run is using"):
        purging.purge(other, state_url, AGES)
    other.close()


def bytes_of(tmp_path: Path) -> bytes:
    return b"".join(path.read_bytes() for path in tmp_path.glob("state.db*"))


def test_purged_data_is_gone_from_the_file(tmp_path: Path) -> None:
    """No byte of it stands in the database or its log: of what the purge removed, nor of what runs overwrote before."""
    url = parse_url("sqlite:///state.db", tmp_path)
    create(url, PIN)
    with closing(State(url, PIN)) as state:
        number = run(state)
        settle(state, number, [item(key, body=f"{CANARY}{'x' * key * 100}".encode()) for key in range(200)], "rejected")
        with state.begin() as tx:
            tx.dead_letters.put([dead_letter(key) for key in range(200)], run_id=number, at=OLD)
        with closing(sqlite3.connect(tmp_path / "state.db")) as careless, careless:
            careless.execute("PRAGMA secure_delete=OFF")  # what a run's connection has, but for where it is built in
            careless.execute("DELETE FROM dead_letters WHERE rowid % 2")
        assert CANARY.encode() in bytes_of(tmp_path)
        purge(state, url)
        assert CANARY.encode() not in bytes_of(tmp_path)


def test_a_reader_is_told_to_be_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While somebody reads an older state the log cannot be emptied: that is an error, and a second purge does it."""
    monkeypatch.setattr(state_engine, "BUSY_S", 0.05)
    url = parse_url("sqlite:///state.db", tmp_path)
    create(url, PIN)
    with (
        closing(State(url, PIN)) as state,
        closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as other,
    ):
        settle(state, run(state), [item(1)], "rejected")
        other.execute("BEGIN")
        other.execute("SELECT * FROM intents").fetchall()
        with pytest.raises(StateError, match="another process is reading the state"):
            purging.purge(state, url, AGES)
        other.execute("COMMIT")
        purging.purge(state, url, AGES)
    assert CANARY.encode() not in bytes_of(tmp_path)
