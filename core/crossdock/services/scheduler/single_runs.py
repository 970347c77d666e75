"""The tasks around a scheduled run that is started once, by `schedule --once` or by a worker of a fleet."""

from __future__ import annotations

import threading

from crossdock.config.project.project import Project
from crossdock.errors import CrossdockError
from crossdock.services.notifications.events import Event
from crossdock.services.notifications.notifier import Notifier
from crossdock.services.scheduler.retention_task import RetentionTask
from crossdock.values.clock import Clock


def notified(loaded: Project, event: Event, clock: Clock) -> tuple[str, ...]:
    """Send *event* to the recipients of the config. Return a sentence for each channel that failed."""
    if loaded.notify is None:
        return ()
    try:
        return tuple(Notifier(loaded.notify, clock).notify(event))
    except CrossdockError as error:  # a secret that is missing on this host
        return (str(error),)


def apply_retention(loaded: Project, clock: Clock, interrupt: threading.Event) -> None:
    """Remove everything beyond the retention period, unless *interrupt* is set."""
    task = RetentionTask(clock)
    while not interrupt.is_set() and task.run(loaded):
        """More is left to remove."""
