"""Due times of jobs: schedules as pure functions, without a clock or a database."""

from crossdock.config.schedules.schedule_config import Schedule

__all__ = ["Schedule"]
