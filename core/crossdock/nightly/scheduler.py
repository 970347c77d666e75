"""Runs nights. Several may watch one state: its run lease and the rows of `crossdock.state.nights` decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from crossdock.clock import Clock
from crossdock.errors import CrossdockError, StateBusyError
from crossdock.nightly.agenda import Agenda, Plan
from crossdock.scheduling.due import Due
from crossdock.state import Occasion, State, Transaction
from crossdock.sync.project import Project, this_process
from crossdock.sync.report import Report

ON_TIME = timedelta(minutes=5)  # a scheduler that starts so soon after an instant has not missed it
LOOK_S = 30.0  # between two looks, so that what others did, and a clock that was set, are noticed


@dataclass(frozen=True, slots=True)
class Ended:
    """A night that came to an end, or could not be run.

    Attributes:
        report: What the run did; None where it did not come to that.
        error: Why it failed.
    """

    job: str
    due: Due
    report: Report | None
    error: str | None = None


class Scheduler:
    """Runs what is due, one night after the other.

    Args:
        run: Runs a night; None if another scheduler has done it meanwhile. Fails with `StateBusyError` while another
            run is at work.
        tell: Told of every night that ended.
    """

    def __init__(
        self,
        project: Project,
        clock: Clock,
        run: Callable[[Project, Occasion], Report | None],
        tell: Callable[[Ended], None],
    ) -> None:
        self._project, self._clock, self._run, self._tell = project, clock, run, tell
        self._agenda = Agenda(project.jobs)
        self._state: State | None = None
        self._awake_since: dict[str, datetime] = {}  # by job: nothing that was due after it was missed

    def reload(self, project: Project) -> None:
        """Go on with another config."""
        self.close()
        self._project, self._agenda = project, Agenda(project.jobs)

    def tick(self) -> bool:
        """Run the first night that may start; False if there is none.

        Raises:
            CrossdockError: If the state cannot be used.
        """
        now = self._clock.now()
        for job in self._project.jobs:
            self._awake_since.setdefault(job, now - ON_TIME)
        try:
            plans, first = self._look(self._opened(), now)
        except CrossdockError:
            self.close()
            raise
        if first is not None and self._start(*first):
            return True
        self._awake_since = {plan.job: plan.awake_since for plan in plans}  # what has to wait stays on time
        return False

    def _look(self, state: State, now: datetime) -> tuple[list[Plan], tuple[Plan, Due] | None]:
        """All plans, and of the nights that may start the one that goes first."""
        with state.begin() as tx:
            plans = self._agenda.plans(tx, now, self._awake_since)
            ready = [(plan, start) for plan in plans if (start := self._agenda.may_start(tx, plan, plans, now))]
            first = min(ready, key=lambda item: self._order(tx, *item), default=None)
        if first is None:
            self._leave_out(state, [plan for plan in plans if plan.left_out and not plan.starts], now)
        return plans, first

    def _opened(self) -> State:
        self._state = self._state or self._project.open_state()
        return self._state

    def close(self) -> None:
        if self._state is not None:
            self._state.close()
            self._state = None

    @staticmethod
    def _order(tx: Transaction, plan: Plan, start: Due) -> tuple[datetime, float]:
        """What was due first goes first; of those that are due together, the one that took the shortest so far."""
        seconds, _ = tx.nights.expected(plan.job) or (0.0, 0)
        return start.instant, seconds

    def _start(self, plan: Plan, start: Due) -> bool:
        occasion = Occasion(plan.job, start.instant, start.business_date, tuple(plan.left_out))
        try:
            report = self._run(self._project, occasion)
        except StateBusyError:
            return False  # another run is at work: a look later it may have done this one
        except CrossdockError as error:
            self._tell(Ended(plan.job, start, None, str(error)))
            return False
        if report is not None:
            self._tell(Ended(plan.job, start, report))
        return True

    def _leave_out(self, state: State, plans: list[Plan], now: datetime) -> None:
        if not plans:
            return
        try:
            with state.exclusive(this_process()), state.begin() as tx:
                for plan in plans:
                    tx.nights.leave_out(plan.left_out, at=now)
        except StateBusyError:
            return  # whoever is at work leaves them out, or the next look does

    def next_due(self) -> dict[str, datetime]:
        """When each job is due next."""
        return self._agenda.next_due(self._clock.now())

    def wait_s(self, instants: Iterable[datetime]) -> float:
        """Seconds until the first of the *instants* at which something is due, 0 to `LOOK_S`."""
        now = self._clock.now()
        return max(0.0, min([LOOK_S, *((instant - now).total_seconds() for instant in instants)]))
