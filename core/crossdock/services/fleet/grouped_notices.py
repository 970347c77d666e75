"""Notifications of a fleet: events within some minutes are one message, not one for each tenant."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from crossdock.services.notifications.events import Event
from crossdock.services.notifications.notifier import Notifier
from crossdock.services.scheduler.stderr_log import LOGGER

AT_LEAST, AT_MOST = timedelta(minutes=1), timedelta(minutes=15)
"""How long events are collected: at least, and at most while runs are in progress."""


class GroupedNotices:
    """Collects events and sends them from a thread, so that a slow channel delays nothing.

    Args:
        notifier: None if the config names no recipients.
    """

    def __init__(self, notifier: Notifier | None) -> None:
        self._notifier = notifier
        self._events: list[tuple[str, Event]] = []
        self._since: datetime | None = None
        self._thread = ThreadPoolExecutor(1, "notices")

    def add(self, tenant: str, event: Event, now: datetime) -> None:
        if self._notifier is not None and self._notifier.is_selected(event):
            self._events.append((tenant, event))
            self._since = self._since or now

    def flush(self, now: datetime, *, tenants: int, is_idle: bool) -> None:
        """Send the collected events, if the first is old enough.

        Args:
            tenants: The number of tenants.
            is_idle: Whether no run is in progress, and none waits.
        """
        if self._since is None or now - self._since < (AT_LEAST if is_idle else AT_MOST):
            return
        self._send(tenants)

    def close(self, *, tenants: int) -> None:
        """Send the collected events, and wait until they are sent. The notifier bounds that time."""
        if self._events:
            self._send(tenants)
        self._thread.shutdown()

    def _send(self, tenants: int) -> None:
        events, self._events, self._since = self._events, [], None
        self._thread.submit(self._deliver, events, tenants)

    def _deliver(self, events: list[tuple[str, Event]], tenants: int) -> None:
        assert self._notifier is not None  # else there are no events
        for problem in self._notifier.notify_group(events, tenants):
            LOGGER.error("notification failed: %s", problem)
