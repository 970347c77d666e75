"""Hints are delivered beside scheduled runs, and none is lost, whatever fails."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from operator import attrgetter
from pathlib import Path

import pytest
from tests.chaos.mappings import open_bench
from tests.integration.inbox_desk import InboxDesk

from crossdock.cli import approve
from crossdock.runs.active_run import ActiveRun
from crossdock.runs.named_record_delivery import named_records
from crossdock.runs.session_shared_by_runs import Session
from crossdock.services.inbox import webhook_record_delivery
from crossdock.services.inbox.webhook_record_delivery import InboxWorkResult
from crossdock.state import NamedRecord, ReceivedWebhook, StateUrl
from crossdock.state.tables.webhooks_and_records_to_fetch import LONGEST_PAUSE
from crossdock.values.run_progress_and_messages import SilentProgress, warning_and_note_texts_by_stream
from crossdock.writing.delivery.delivery_context import _LastRunOfRecord


@pytest.fixture
def desk(tmp_path: Path, state_url: StateUrl) -> Iterator[InboxDesk]:
    with open_bench(tmp_path, state_url) as bench:
        yield InboxDesk(bench)


def _nightly(desk: InboxDesk, session: Session) -> None:
    """A scheduled run of all streams in the same session."""
    report = ActiveRun(session, SilentProgress(), desk.interrupt).execute(desk.project.selected_streams([]))
    assert (report.errors, report.balanced) == ({}, True)


def test_hinted_records_are_delivered_and_their_hints_removed(desk: InboxDesk) -> None:
    """Each record is fetched once, with what it refers to; another day's work is a run of its own."""
    desk.customers.put("C1", name="Ada")
    desk.orders.put("O1", customer="C1")
    with desk.session() as session:
        desk.hint(session, "orders", "O1", "O2")
        desk.work(session)
        assert desk.effects() == [("create", "b:C1"), ("create", "b:O1")]
        assert desk.hints(session) == []
        assert desk.ended == [InboxWorkResult(fetched=2, requests=2)]
        desk.orders.put("O2", customer="C1")
        desk.hint(session, "orders", "O2")
        desk.work(session)
        (run,) = desk.runs(session)
        assert (run.job, run.status, run.requests) == ("listen b", "done", 3)
        assert run.tally is not None
        assert run.tally["b.orders"]["records"]["created"] == 2
        desk.bench.clock.advance(86_400)
        desk.hint(session, "orders", "O2")
        desk.work(session)
        assert len(desk.runs(session)) == 2


def test_a_record_that_cannot_be_fetched_keeps_no_other_from_it(desk: InboxDesk) -> None:
    """The others are delivered; the failed one is visible with its error and tried again after longer pauses."""
    for number in range(5):
        desk.customers.put(f"C{number}", name="Ada")
    desk.customers.failing.add("C3")
    with desk.session() as session:
        desk.hint(session, "customers", *(f"C{number}" for number in range(5)))
        desk.work(session)
        assert len(desk.effects()) == 4
        (left,) = desk.hints(session)
        assert (left.key, left.attempts, left.due_at - desk.bench.clock.now()) == (
            "C3",
            1,
            webhook_record_delivery.FIRST_PAUSE,
        )
        assert "the shop does not answer" in (left.error or "")
        pauses = []
        for _ in range(14):
            desk.bench.clock.advance((desk.hints(session)[0].due_at - desk.bench.clock.now()).total_seconds())
            desk.work(session)
            pauses.append(desk.hints(session)[0].due_at - desk.bench.clock.now())
        assert pauses[:3] == [timedelta(seconds=2), timedelta(seconds=4), timedelta(seconds=8)]
        assert pauses[-1] == LONGEST_PAUSE
        desk.customers.failing.clear()
        desk.hint(session, "customers", "C3")
        desk.work(session)
        assert desk.hints(session) == []
        assert desk.effects() == [("create", "b:C3")]


def test_a_webhook_that_came_while_the_clock_was_ahead_is_worked_on(desk: InboxDesk) -> None:
    """Its record is fetched as soon as the clock is right, not a month later."""
    desk.customers.put("C1", name="Ada")
    month_s = timedelta(days=31).total_seconds()
    with desk.session() as session:
        desk.bench.clock.step(month_s)
        desk.hint(session, "customers", "C1")
        desk.bench.clock.step(-month_s)
        desk.work(session)
        assert (desk.effects(), desk.hints(session)) == ([("create", "b:C1")], [])


def test_several_bad_records_in_a_row_keep_no_other_from_it(desk: InboxDesk) -> None:
    """Records that failed only together with bad ones have no error, and are the first of the next attempt."""
    keys = [f"C{number}" for number in range(12)]
    for key in keys:
        desk.customers.put(key, name="Ada")
    bad = [each.key for each in sorted(named_records("b.customers", keys), key=attrgetter("key_hash"))][:5]
    desk.customers.failing.update(bad)
    with desk.session() as session:
        desk.hint(session, "customers", *keys)
        desk.work(session)
        hints = {hint.key: hint for hint in desk.hints(session)}
        assert {key for key, hint in hints.items() if hint.attempts or hint.error} == set(
            bad[: webhook_record_delivery.FAILED_ALONE]
        )
        desk.bench.clock.advance(webhook_record_delivery.FIRST_PAUSE.total_seconds())
        desk.work(session)
        assert {hint.key: hint.attempts for hint in desk.hints(session)}.keys() == set(bad)
        assert len(desk.effects()) == len(keys) - len(bad)


def test_a_record_shows_no_error_of_another(desk: InboxDesk) -> None:
    """An order that was fetched together with a bad customer is delivered, and each bad record shows its own error."""
    desk.customers.put("C1", name="Ada")
    desk.orders.put("O1", customer="C1")
    desk.customers.failing.update(["C8", "C9"])
    with desk.session() as session:
        desk.hint(session, "customers", "C1", "C8", "C9")
        desk.hint(session, "orders", "O1")
        desk.work(session)
        errors = {hint.key: hint.error or "" for hint in desk.hints(session)}
        assert errors.keys() == {"C8", "C9"}
        assert all(f"cannot give {key}" in error for key, error in errors.items()), errors
        assert sorted(desk.effects()) == [("create", "b:C1"), ("create", "b:O1")]


def test_a_record_that_fails_leaves_no_other_waiting(desk: InboxDesk) -> None:
    """An order whose customer is still to be fetched is delivered soon, when a record of another stream fails."""
    desk.customers.put("C1", name="Ada")
    desk.orders.put("O1", customer="C1")
    desk.customers.failing.add("C9")
    with desk.session() as session:
        desk.hint(session, "customers", "C9")
        desk.hint(session, "orders", "O1")
        desk.work(session)
        assert {hint.key: hint.attempts for hint in desk.hints(session)} == {"C9": 1, "O1": 0}
        desk.bench.clock.advance(webhook_record_delivery.SOON.total_seconds())
        desk.work(session)
        assert [hint.key for hint in desk.hints(session)] == ["C9"]
        assert desk.effects() == [("create", "b:C1"), ("create", "b:O1")]


def test_a_record_on_which_an_operation_stays_unsettled_is_looked_at_ever_later(desk: InboxDesk) -> None:
    """An operation may be in doubt for days, until a person decides: its record is not fetched four times a second."""
    desk.customers.put("C1", name="Ada")
    with desk.session() as session:
        (record,) = named_records("b.customers", ["C1"])
        desk.hint(session, "customers", "C1")
        scope = desk.project.scope_by_stream["b.customers"]
        session.records.marks[scope, record.key_hash] = _LastRunOfRecord(session.records.begin_run())
        pauses = []
        for waited_s in (0.0, 10.0, 3600.0):
            desk.bench.clock.advance(waited_s)
            desk.work(session)
            (hint,) = desk.hints(session)
            pauses.append(hint.due_at - desk.bench.clock.now())
        assert pauses == [webhook_record_delivery.SOON, timedelta(seconds=10), webhook_record_delivery.LONGEST_UNTRIED]


def test_a_record_whose_reference_fails_is_tried_again(desk: InboxDesk) -> None:
    """An order whose customer cannot be fetched fails with it, and is delivered when it can."""
    desk.customers.put("C1", name="Ada")
    desk.orders.put("O1", customer="C1")
    desk.customers.failing.add("C1")
    with desk.session() as session:
        desk.hint(session, "orders", "O1")
        desk.work(session)
        (left,) = desk.hints(session)
        assert (left.key, left.attempts) == ("O1", 1)
        assert "the shop does not answer" in (left.error or "")
        desk.customers.failing.clear()
        desk.bench.clock.advance(webhook_record_delivery.FIRST_PAUSE.total_seconds())
        desk.work(session)
        assert desk.hints(session) == []
        assert desk.effects() == [("create", "b:C1"), ("create", "b:O1")]


def test_a_source_that_is_away_is_not_asked_for_each_record(desk: InboxDesk) -> None:
    """After a few records that fail alone, the rest waits for the next attempt."""
    desk.customers.failing.update(f"C{number}" for number in range(50))
    with desk.session() as session:
        desk.hint(session, "customers", *(f"C{number}" for number in range(50)))
        desk.work(session)
        assert len(desk.customers.asked) <= 1 + webhook_record_delivery.FAILED_ALONE
        assert len(desk.hints(session)) == 50
        desk.customers.failing.clear()
        desk.bench.clock.advance(5)
        desk.work(session)
        assert desk.hints(session) == []


def test_a_hint_of_a_stream_that_is_gone_stays_visible(desk: InboxDesk) -> None:
    """A stream that the config does not have any more is told with the hint."""
    with desk.session() as session:
        with session.state.begin() as tx:
            tx.inbox.schedule_fetch_of_records([NamedRecord("old.orders", "1", 5)], at=desk.bench.clock.now())
        desk.work(session)
        (left,) = desk.hints(session)
        assert left.error == "the config has no stream old.orders that can fetch named records"


def test_a_target_that_is_away_loses_no_hint(desk: InboxDesk) -> None:
    """While the platform does not answer the hints stay, and afterwards each record is there once."""
    desk.customers.put("C1", name="Ada")
    desk.bench.platform.fates.extend(["away"] * 200)
    with desk.session() as session:
        desk.hint(session, "customers", "C1")
        desk.work(session)
        assert len(desk.hints(session)) == 1
        desk.bench.platform.fates.clear()
        desk.bench.clock.advance(10)
        desk.work(session)
        assert desk.hints(session) == []
    assert desk.effects() == [("create", "b:C1")]


@pytest.mark.parametrize("versioned", [True, False])
def test_a_hint_in_the_middle_of_a_run_is_delivered_and_not_undone(desk: InboxDesk, versioned: bool) -> None:
    """A record that changes after the run has read it is delivered by its hint, and the run does not put it back."""
    if not versioned:
        desk.customers.order_by = None  # type: ignore[assignment]  # as a stream without versions has
    desk.customers.put("C1", name="Ada")
    desk.customers.put("C2", name="Bob")
    with desk.session() as session:

        def changes() -> None:
            if desk.customers.pulls == 1 and not desk.customers.asked:
                desk.customers.put("C1", name="Ada L.")
                desk.customers.put("C3", name="Cyd")
                desk.hint(session, "customers", "C1", "C3")
                _in_thread(desk, session)

        desk.customers.during = changes
        _nightly(desk, session)
        desk.customers.during = lambda: None
        assert sorted(desk.effects()) == [("create", "b:C1"), ("create", "b:C2"), ("create", "b:C3")]
        left = [hint.key for hint in desk.hints(session)]
        assert left == ([] if versioned else ["C1"]), "without a version, the run leaves C1 to be fetched"
        desk.work(session)
        _nightly(desk, session)
        assert desk.effects() == []
        assert desk.bench.platform.named("b:C1")["name"] == "Ada L."


def test_a_run_does_not_delete_what_was_created_while_it_read(desk: InboxDesk) -> None:
    """A record that a hint brings after a snapshot was listed is not gone."""
    for number in range(100):
        desk.customers.put(f"C{number}", name="Ada")
    desk.customers.mode = "snapshot"
    with desk.session() as session:
        _nightly(desk, session)
        desk.effects()

        def changes() -> None:
            if desk.customers.pulls == 2 and not desk.customers.asked:
                desk.customers.put("new", name="Eve")
                desk.hint(session, "customers", "new")
                _in_thread(desk, session)

        desk.customers.during = changes
        _nightly(desk, session)
    assert desk.effects() == [("create", "b:new")]


def _in_thread(desk: InboxDesk, session: Session) -> None:
    """Deliver hints as the service does, while a run holds its thread."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(desk.work, session).result(60)


def test_deletions_one_by_one_stop_at_the_limits(desk: InboxDesk) -> None:
    """Records that are deleted one after the other count together on a day; the next run asks about the rest."""
    stop_at_the_limits(desk, deletions=16)


def stop_at_the_limits(desk: InboxDesk, deletions: int) -> None:
    for number in range(100):
        desk.customers.put(f"C{number}", name="Ada")
    with desk.session() as session:
        _nightly(desk, session)
        desk.effects()
        for number in range(deletions):
            del desk.customers.items[f"C{number}"]
            desk.hint(session, "customers", f"C{number}")
            desk.work(session)
        limit = desk.customers.gone.at_most_percent
        assert limit < deletions
        assert 0 < len(desk.effects()) <= limit
        assert {hint.error is None for hint in desk.hints(session)} == {False}


def test_deletions_beyond_the_limits_wait_for_one_approval(desk: InboxDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """No record that exceeds a limit is deleted, others are delivered, and the run asks for all of them together."""
    for number in range(100):
        desk.customers.put(f"C{number}", name="Ada")
    gone = [f"C{number}" for number in range(12)]
    with desk.session() as session:
        _nightly(desk, session)
        desk.effects()
        desk.customers.put("C50", name="Bob")
        for key in gone:
            del desk.customers.items[key]
        for keys, number in ((["C50", *gone[:8]], 8), (gone[8:], 12)):
            desk.hint(session, "customers", *keys)
            desk.work(session)
            assert {hint.error is None for hint in desk.hints(session)} == {False}
            (run, *_), pending = desk.runs(session), desk.approval(session)
            assert run.status == "incomplete"
            assert [(each.advice or "").endswith(f" {number}") for each in run.messages] == [True]
            assert pending is not None
            assert pending.record_count == number
        assert desk.effects() == [("update", "b:C50")]
        returned = gone.pop(0)
        desk.customers.put(returned, name="Ada")
        desk.hint(session, "customers", returned)
        desk.work(session)
        _nightly(desk, session)
        monkeypatch.setattr(approve, "SystemClock", lambda: desk.bench.clock)
        with session.state.begin() as tx:
            approve._approve_pending_or_raise(desk.project, tx, "b.customers", len(gone))
        desk.work(session)
        assert sorted(desk.effects()) == sorted(("delete", f"b:{key}") for key in gone)
        assert (desk.hints(session), desk.approval(session)) == ([], None)
        assert {(run.status, run.messages) for run in desk.runs(session)} == {("done", ())}


def test_a_run_tells_of_how_many_changes_no_webhook_has_told(desk: InboxDesk) -> None:
    """Changes that the next scheduled run finds are counted, but for those that a webhook has announced."""
    for number in range(5):
        desk.customers.put(f"C{number}", name="Ada")
    with desk.session() as session:
        _nightly(desk, session)
        assert _told(desk, session) == [], "no webhook was ever received"
        with session.state.begin() as tx:
            tx.inbox.receive([ReceivedWebhook("b", "msg_1", "customer.changed")], {}, at=desk.bench.clock.now())
        for number in range(3):
            desk.customers.put(f"C{number}", name="Bob")
        desk.hint(session, "customers", "C0")
        _nightly(desk, session)
        assert _told(desk, session) == ["no webhook has told of 2 changes"]


def _told(desk: InboxDesk, session: Session) -> list[str]:
    """The remarks of the last run on the customers."""
    return warning_and_note_texts_by_stream(desk.runs(session)[0].messages).get("b.customers", [])
