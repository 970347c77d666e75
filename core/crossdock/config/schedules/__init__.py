"""When jobs are due: schedules as pure functions, without a clock or a database.

`Schedule` describes when a job is due. `ScheduleTrigger` offers it to an APScheduler 3 scheduler of your own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crossdock.config.schedules.schedule_config import Schedule

if TYPE_CHECKING:
    from crossdock.services.scheduler.apscheduler_trigger import ScheduleTrigger

__all__ = ["Schedule", "ScheduleTrigger"]


if not TYPE_CHECKING:  # type checkers would believe that every name exists

    def __getattr__(name: str) -> Any:
        if name == "ScheduleTrigger":  # imported on demand: only `crossdock.services.scheduler` depends on APScheduler
            from crossdock.services.scheduler.apscheduler_trigger import ScheduleTrigger  # noqa: PLC0415

            return ScheduleTrigger
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
