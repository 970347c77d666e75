"""One scheduled run as a call for any executor: a text goes to the worker, and a text comes back.

Texts are used instead of pickled objects, so that a worker with another version of crossdock can report it.
"""

from __future__ import annotations

import json
from datetime import date, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from crossdock.config.schedules.due_times import Due
from crossdock.services.notifications.run_events_and_messages import ScheduledRunEnded, Status
from crossdock.state import DueRun, SkippedRun
from crossdock.state.fleet_leadership_and_jobs import JobFacts
from crossdock.values.run_messages import RunMessage
from crossdock.values.tally import OpenCounts

VERSION = version("crossdock")

Outcome = Literal["ended", "ended_before", "looked", "busy", "paused", "changed", "refused", "failed"]
"""How a call ended.

``ended``: with a report. ``ended_before``: the run had ended already. ``looked``: the state was looked at, as asked.
``busy``: another process uses the state. ``paused``: the job is paused. ``changed``: the config differs from the
one that the scheduler read. ``refused``: the worker cannot run it. ``failed``: the run could not start.
"""


class _JsonModel(BaseModel):
    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)


class SharedLimit(_JsonModel):
    """The bucket of tenants that share a credential, in the database with this address."""

    database: str
    name: str


class ScheduledCall(_JsonModel):
    """The order for a worker. Without a job, it only looks at the state.

    Attributes:
        digest: The digest of the contents of the files, as the scheduler read them.
        shared_limit: None if the tenant has its credential to itself.
        notify: Whether the tenant is notified separately.
        is_grouped: Whether the recipients of the fleet are notified of its runs, by the scheduler.
        notified: The ended runs of which they were notified.
        reported: The reported reason why the last call for this run could not start it.
    """

    version: str = VERSION
    tenant: str
    files: tuple[Path, ...]
    digest: str
    job: str | None = None
    due: datetime | None = None
    business_date: date | None = None
    skipped: tuple[SkippedRun, ...] = ()
    shared_limit: SharedLimit | None = None
    notify: bool = False
    is_grouped: bool = False
    notified: tuple[int, ...] = ()
    reported: str | None = None

    @property
    def due_run(self) -> DueRun | None:
        """The run; None to look only at the state."""
        if self.job is None or self.due is None or self.business_date is None:
            return None
        return DueRun(self.job, self.due, self.business_date, self.skipped)

    @property
    def due_instant_and_date(self) -> Due | None:
        return None if self.due is None or self.business_date is None else Due(self.due, self.business_date)


class RunFacts(_JsonModel):
    status: Status
    event: ScheduledRunEnded
    exit_code: int
    throttled: int
    tallies: dict[str, dict[str, int]]
    open: dict[str, OpenCounts]


class CallResult(_JsonModel):
    """The result of a worker.

    Attributes:
        message: The same as *error* for a run that could not start, with its parts.
        jobs: The facts in the state about all jobs of the tenant.
        problems: Sentences about notifications that were not sent.
        pending_notices: Earlier runs of which the recipients of the fleet may not know.
    """

    outcome: Outcome
    error: str | None = None
    message: RunMessage | None = None
    run: RunFacts | None = None
    jobs: tuple[JobFacts, ...] = ()
    problems: tuple[str, ...] = ()
    pending_notices: tuple[ScheduledRunEnded, ...] = ()


def sender_version(text: str) -> str:
    """Return the version of crossdock that wrote the text of a call; empty if it is missing."""
    try:
        found: Any = json.loads(text)
        return str(found["version"])
    except (ValueError, TypeError, KeyError):
        return ""
