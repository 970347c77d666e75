"""The tasks around a scheduled run that is started once, by `schedule --once` or by a worker of a fleet."""

from __future__ import annotations

import threading

from crossdock.config.project.project import Project
from crossdock.errors import CrossdockError
from crossdock.services.notifications.events import Event, ScheduledRunEnded
from crossdock.services.notifications.notifier import Notifier
from crossdock.services.scheduler import pending_notices
from crossdock.services.scheduler.pending_notices import Send
from crossdock.services.scheduler.retention_task import RetentionTask
from crossdock.values.clock import Clock


def notified(loaded: Project, event: Event, clock: Clock) -> tuple[str, ...]:
    """Send *event*, and what people were not notified of before. Return a sentence for each channel that failed."""
    send = sender(loaded, clock)
    return tuple(
        pending_notices.notify(loaded, send, event, clock) if isinstance(event, ScheduledRunEnded) else send(event)
    )


def sender(loaded: Project, clock: Clock) -> Send:
    if loaded.notify is None:
        return lambda _: ()
    try:
        return Notifier(loaded.notify, clock).notify
    except CrossdockError as error:  # a secret that is missing on this host
        problem = str(error)
        return lambda _: (problem,)


def apply_retention(loaded: Project, clock: Clock, interrupt: threading.Event) -> None:
    task, is_more_left = RetentionTask(clock), True
    while is_more_left and not interrupt.is_set():
        is_more_left = task.run(loaded)
