"""Due times of jobs: schedules as pure functions, without a clock or a database.

Input: the schedule of a job, and instants. Output: the instants at which the job is due, with their business dates. It
may import `crossdock.values` only.
"""

from crossdock.config.schedules.job_and_schedule_config import Schedule

__all__ = ["Schedule"]
