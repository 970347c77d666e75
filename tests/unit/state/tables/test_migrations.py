"""Migrations keep who began them, what ran, and what people decided."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.state.samples import AT, intent, start

from crossdock.state import MigrationRun, State, WaveApproval
from crossdock.values.run_states_and_tally import OpenCounts

LATER = AT + timedelta(hours=1)


def test_one_migration_is_open_until_it_is_signed_off(state: State) -> None:
    """The current one is that which nobody has signed off; the last one stays known."""
    with state.begin() as tx:
        assert tx.migrations.current() is None
        first = tx.migrations.begin("acme", at=AT, by="ann@host")
        current = tx.migrations.current()
        assert current is not None
        assert (current.id, current.name, current.started_by, current.signed_off_at) == (
            first,
            "acme",
            "ann@host",
            None,
        )
        tx.migrations.sign_off(first, at=LATER, by="bob", report_sha256="ab" * 32)
        assert tx.migrations.current() is None
        last = tx.migrations.last()
        assert last is not None
        assert (last.signed_off_at, last.signed_off_by, last.report_sha256) == (LATER, "bob", "ab" * 32)
        assert tx.migrations.migration_by_report_digest("ab" * 32) == last
        assert tx.migrations.migration_by_report_digest("cd" * 32) is None
        second = tx.migrations.begin("again", at=LATER, by="ann@host")
        assert (tx.migrations.current() or last).id == second > first


def test_a_run_makes_an_earlier_reconciliation_void(state: State) -> None:
    """What was reconciled says nothing about what is loaded later."""
    one, two = start(state), start(state)
    with state.begin() as tx:
        migration = tx.migrations.begin("acme", at=AT, by="ann")
        tx.migrations.add_run(migration, one, "load", "lots")
        tx.migrations.store_reconciliation(migration, {"differences": 0})
        assert (tx.migrations.current() or None).reconciliation == {"differences": 0}  # type: ignore[union-attr]
        tx.migrations.add_run(migration, two, "repair", None)
        assert (tx.migrations.current() or None).reconciliation is None  # type: ignore[union-attr]
        assert tx.migrations.runs(migration) == [MigrationRun(one, "lots", "load"), MigrationRun(two, None, "repair")]


def test_a_pause_ends_when_it_is_resumed(state: State) -> None:
    """Who paused it and when is known until then."""
    with state.begin() as tx:
        migration = tx.migrations.begin("acme", at=AT, by="ann")
        tx.migrations.pause(migration, at=LATER, by="bob")
        paused = tx.migrations.current()
        assert paused is not None
        assert (paused.paused_at, paused.paused_by) == (LATER, "bob")
        tx.migrations.resume(migration)
        resumed = tx.migrations.current()
        assert resumed is not None
        assert (resumed.paused_at, resumed.paused_by) == (None, None)


def test_the_last_approval_of_a_wave_counts(state: State) -> None:
    """An approval keeps what was open then; a later one takes its place."""
    with state.begin() as tx:
        migration = tx.migrations.begin("acme", at=AT, by="ann")
        tx.migrations.approve_wave(migration, WaveApproval("lots", AT, "bob", OpenCounts(rejected=3)))
        last = WaveApproval("lots", LATER, "eve", OpenCounts(rejected=4, waiting=1))
        tx.migrations.approve_wave(migration, last)
        assert tx.migrations.approval_by_wave(migration) == {"lots": last}


@pytest.mark.parametrize("undone", ["goods", None])
def test_what_came_before_the_undo_of_a_wave_does_not_count(state: State, undone: str | None) -> None:
    """Its loads, what they have sent and its approval are void; another wave keeps its own."""
    first, lots, undo, last = (start(state) for _ in range(4))
    with state.begin() as tx:
        migration = tx.migrations.begin("acme", at=AT, by="Ann")
        for name, run in (("goods", first), ("lots", lots)):
            tx.migrations.add_run(migration, run, "load", name)
            tx.migrations.approve_wave(migration, WaveApproval(name, AT, "bob", OpenCounts()))
        tx.intents.add([intent(1)], run_id=first, fence=1, at=AT)
        tx.migrations.add_run(migration, undo, "undo", undone)
        others = {"lots": [lots]} if undone else {}
        assert tx.migrations.loads_since_undo(migration) == others
        assert tx.migrations.approval_by_wave(migration).keys() == others.keys()
        assert tx.migrations.streams_sent_since_undo(migration, "goods") == set()
        tx.migrations.add_run(migration, last, "load", "goods")
        assert tx.migrations.loads_since_undo(migration) == others | {"goods": [last]}


def test_the_streams_that_a_load_has_sent(state: State) -> None:
    """Those of which a run of the wave has written an operation, whatever became of it."""
    first, second, other = start(state), start(state), start(state)
    with state.begin() as tx:
        migration = tx.migrations.begin("acme", at=AT, by="Ann")
        tx.migrations.add_run(migration, first, "load", "goods")
        tx.migrations.add_run(migration, second, "repair", None)
        tx.migrations.add_run(migration, other, "load", "lots")
        tx.intents.add([intent(1, status="rejected")], run_id=first, fence=1, at=AT)
        tx.intents.add([intent(2, stream="wms.bins")], run_id=second, fence=1, at=AT)
        assert tx.migrations.streams_sent_since_undo(migration, "goods") == {"wms.products"}
        assert tx.migrations.streams_sent_since_undo(migration, "lots") == set()
