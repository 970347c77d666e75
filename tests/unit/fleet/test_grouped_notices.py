"""Events of a fleet as one message."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from threading import Lock
from typing import cast

import pytest

from crossdock.services.fleet.fleet_service import COLLECT_AT_LEAST, COLLECT_AT_MOST, GroupedNotices
from crossdock.services.notifications.mail_and_webhook_notifier import Notifier
from crossdock.services.notifications.run_events_and_messages import Event, RunWaiting, ScheduledRunEnded

NOW = datetime(2026, 11, 24, 3, tzinfo=UTC)
ENDED = ScheduledRunEnded("nightly", date(2026, 11, 24), NOW, 7, "failed", 1.0, 1, (), None)
EVENT = RunWaiting("nightly", date(2026, 11, 24), NOW, "no workers")


class Recorder:
    """As much of a notifier as is needed."""

    def __init__(self, *, selects: bool = True, problem: str = "") -> None:
        self.groups: list[tuple[list[str], int]] = []
        self._selects, self.problem, self.answering = selects, problem, Lock()

    def is_event_selected(self, event: Event) -> bool:
        return self._selects

    def notify_of_several_events(self, events: Sequence[tuple[str, Event]], tenants: int) -> list[str]:
        with self.answering:
            self.groups.append(([tenant for tenant, _ in events], tenants))
        return [self.problem] if self.problem else []


class Notices(GroupedNotices):
    def settle(self) -> None:
        """Wait for what is being sent."""
        self._thread.submit(lambda: None).result()


def notices(recorder: Recorder | None) -> Notices:
    return Notices(cast("Notifier | None", recorder))


@pytest.mark.parametrize(("is_idle", "wait"), [(True, COLLECT_AT_LEAST), (False, COLLECT_AT_MOST)])
def test_what_happens_within_some_minutes_is_one_message(is_idle: bool, wait: timedelta) -> None:
    """Sooner once all runs have ended."""
    recorder = Recorder()
    group = notices(recorder)
    group.collect_event("acme", EVENT, NOW)
    group.collect_event("bolt", EVENT, NOW + wait / 2)
    group.send_if_due(NOW + wait - timedelta(seconds=1), tenants=9, is_idle=is_idle)
    assert recorder.groups == []
    group.send_if_due(NOW + wait, tenants=9, is_idle=is_idle)
    group.send_if_due(NOW + 2 * wait, tenants=9, is_idle=is_idle)
    group.send_all_and_close(NOW, tenants=9)
    assert recorder.groups == [(["acme", "bolt"], 9)]


def test_what_is_left_at_the_end_is_sent() -> None:
    """At once, and a failure is logged only."""
    recorder = Recorder(problem="the mail server did not answer")
    group = notices(recorder)
    group.collect_event("acme", EVENT, NOW)
    group.send_all_and_close(NOW, tenants=1)
    assert recorder.groups == [(["acme"], 1)]


def test_what_could_not_be_sent_is_sent_again() -> None:
    """After a pause, with what has happened since; then the runs are those of which people know."""
    recorder = Recorder(problem="the mail server did not answer")
    group, at = notices(recorder), NOW
    group.collect_event("acme", ENDED, at)
    for _ in range(3):
        at += COLLECT_AT_LEAST
        group.send_if_due(at, tenants=9, is_idle=True)
        group.settle()
    group.collect_event("bolt", EVENT, at)
    assert group.pop_notified_runs() == {}
    recorder.problem = ""
    for _ in range(10):
        at += COLLECT_AT_LEAST
        group.send_if_due(at, tenants=9, is_idle=True)
        group.settle()
    assert recorder.groups == [(["acme"], 9), (["acme", "bolt"], 9)]
    group.collect_event("acme", ENDED, at, is_news=False)
    assert group.pop_notified_runs() == {"acme": [7]}
    group.send_all_and_close(at, tenants=9)
    assert len(recorder.groups) == 2, "it was not collected again"
    assert group._collected == set(), "what was delivered is not kept"


def test_a_message_that_is_being_sent_is_not_forgotten_by_the_next_one() -> None:
    """If it succeeds, its runs are known; if it fails, its events are sent again before the end."""
    recorder = Recorder()
    group = notices(recorder)
    with recorder.answering:  # both messages wait for the channel
        group.collect_event("acme", ENDED, NOW)
        group.send_collected_events(tenants=9)
        group.collect_event("bolt", EVENT, NOW)
        group.send_collected_events(tenants=9)
    group.settle()
    group.send_if_due(NOW, tenants=9, is_idle=True)
    assert group.pop_notified_runs() == {"acme": [7]}
    recorder.groups, recorder.problem = [], "the mail server did not answer"
    group.collect_event("acme", EVENT, NOW)
    group.send_collected_events(tenants=9)
    group.collect_event("bolt", EVENT, NOW)
    group.send_all_and_close(NOW, tenants=9)
    assert recorder.groups == [(["acme"], 9), (["acme", "bolt"], 9)]


@pytest.mark.parametrize("recorder", [None, Recorder(selects=False)])
def test_what_nobody_wants_is_not_kept(recorder: Recorder | None) -> None:
    """Without recipients, or of a kind that they did not choose."""
    group = notices(recorder)
    group.collect_event("acme", EVENT, NOW)
    group.send_if_due(NOW + 2 * COLLECT_AT_MOST, tenants=1, is_idle=True)
    group.send_all_and_close(NOW, tenants=1)
    assert recorder is None or recorder.groups == []
