"""Schedules and executors for programs that embed crossdock or extend it.

`ScheduleTrigger` fires in an APScheduler of your own when a crossdock `Schedule` is due. An `ExecutorKind` in the entry
point group ``crossdock.executors`` is another engine for the runs of a fleet.
"""

from crossdock.config.schedules import Schedule
from crossdock.services.fleet.executors import ExecutorKind
from crossdock.services.scheduler.daemon import ScheduleTrigger

__all__ = ["ExecutorKind", "Schedule", "ScheduleTrigger"]
