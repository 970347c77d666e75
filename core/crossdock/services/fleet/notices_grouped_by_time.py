"""Notifications of a fleet: events within some minutes are one message, not one for each tenant."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta

from crossdock.services.notifications.notifier import Notifier, are_people_told
from crossdock.services.notifications.run_events_and_messages import Event, ScheduledRunEnded, kinds_of_event
from crossdock.services.scheduler.pending_notices import duration_of_pause_after_failures
from crossdock.services.scheduler.stderr_log import LOGGER

AT_LEAST, AT_MOST = timedelta(minutes=1), timedelta(minutes=15)
"""How long events are collected: at least, and at most while runs are in progress."""


TenantEvent = tuple[str, Event]  # by the name of the tenant


class GroupedNotices:
    """Collects events and sends them from a thread, so that a slow channel delays nothing. Repeats failed messages."""

    def __init__(self, notifier: Notifier | None) -> None:
        self._notifier = notifier
        self._events: list[TenantEvent] = []
        self._since: datetime | None = None
        self._collected: set[tuple[str, int]] = set()  # runs with their tenants, until `pop_notified_runs` returns them
        self._thread = ThreadPoolExecutor(1, "notices")
        self._sending: list[tuple[list[TenantEvent], Future[bool]]] = []  # one after the other
        self._failures, self._again = 0, datetime.min.replace(tzinfo=UTC)
        self._delivered: list[tuple[str, int]] = []

    def collect_event(self, tenant: str, event: Event, now: datetime, *, is_news: bool = True) -> None:
        """Collect *event* if it is selected. Without *is_news*, leave it out if it was collected before."""
        run_id = event.run_id if isinstance(event, ScheduledRunEnded) else None
        if self._notifier is None or (not is_news and run_id is not None and (tenant, run_id) in self._collected):
            return
        if self._notifier.is_event_selected(event):
            self._events.append((tenant, event))
            self._since = self._since or now
            if run_id is not None:
                self._collected.add((tenant, run_id))
        elif run_id is not None and (
            kinds_of_event(event) or not is_news
        ):  # without kinds, the worker has removed the mark
            self._delivered.append((tenant, run_id))

    def send_if_due(self, now: datetime, *, tenants: int, is_idle: bool) -> None:
        """Send the collected events, if the first is old enough and no channel has just failed."""
        self._collect_sending_outcomes(now)
        is_time = self._since is not None and now - self._since >= (AT_LEAST if is_idle else AT_MOST)
        if is_time and now >= self._again and not self._sending:
            self.send_collected_events(tenants=tenants)

    def pop_notified_runs(self) -> dict[str, list[int]]:
        """Return the runs of each tenant of which people know, or need not know, since the last call.

        From then on the caller has to leave out such a run as long as its tenant's state tells of it.
        """
        found: dict[str, list[int]] = {}
        for tenant, run_id in self._delivered:
            found.setdefault(tenant, []).append(run_id)
        self._collected.difference_update(self._delivered)
        self._delivered = []
        return found

    def send_all_and_close(self, now: datetime, *, tenants: int) -> None:
        """Send the collected events, also those that a channel has just not accepted, and wait until they are sent.

        The notifier bounds that time.
        """
        wait(future for _, future in self._sending)
        self._collect_sending_outcomes(now)
        self.send_collected_events(tenants=tenants)
        self._thread.shutdown()

    def send_collected_events(self, *, tenants: int) -> None:
        if not self._events:
            return
        events, self._events, self._since = self._events, [], None
        self._sending.append((events, self._thread.submit(self._deliver, events, tenants)))

    def _collect_sending_outcomes(self, now: datetime) -> None:
        """Take the outcome of what was sent. Events that a channel has not accepted are collected again."""
        while self._sending and self._sending[0][1].done():
            events, future = self._sending.pop(0)
            if future.result():
                self._failures = 0
                ended = ((tenant, event) for tenant, event in events if isinstance(event, ScheduledRunEnded))
                self._delivered += [(tenant, event.run_id) for tenant, event in ended if event.run_id is not None]
            else:
                self._failures += 1
                self._events, self._since = [*events, *self._events], now - AT_MOST
                self._again = now + duration_of_pause_after_failures(self._failures)

    def _deliver(self, events: list[TenantEvent], tenants: int) -> bool:
        assert self._notifier is not None  # else there are no events
        problems = self._notifier.notify_of_several_events(events, tenants)
        for problem in problems:
            LOGGER.error("notification failed: %s", problem)
        return are_people_told(problems)
