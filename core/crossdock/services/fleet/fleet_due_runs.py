"""The due runs of a fleet: arithmetic over the schedules and the known facts about each job. It opens no state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from functools import lru_cache
from heapq import heappop, heappush

from msgspec import Struct

from crossdock.config.schedules.due_times import DueTime, due_times_after
from crossdock.config.schedules.job_and_schedule_config import JobConfig, Schedule
from crossdock.services.scheduler.due_run_decisions_and_preview import SEARCHED_AHEAD, DueRunPlanner
from crossdock.services.scheduler.scheduler import ON_TIME_BEFORE_START
from crossdock.state import ScheduledRun, SkippedRun
from crossdock.state.fleet_leadership_and_jobs import JobFacts

DECIDE_AGAIN_AFTER = timedelta(minutes=1)
"""The time until the next decision about a tenant with a due run that may not start: because of a blackout, or a pause,
whose end only the state knows.
"""
_CACHED_FIRST_DUE_TIMES = 4096


class DueCall(Struct, frozen=True):
    """The next call for a tenant. Without a job, it only looks at the state. *notified* is as in `ScheduledCall`."""

    tenant: str
    job: str | None = None
    at: DueTime | None = None
    skipped: tuple[SkippedRun, ...] = ()
    expected_s: float | None = None
    failed_before: bool = False
    notified: tuple[int, ...] = ()


class _TenantJobs(Struct):
    due_jobs: DueRunPlanner
    configs: Mapping[str, JobConfig]
    facts: dict[str, JobFacts]
    on_time_since: dict[str, datetime]
    version: int

    def paused_jobs(self) -> set[str]:
        return {name for name, facts in self.facts.items() if facts.paused}

    def get_or_register_first_seen(self, job: str, at: datetime) -> datetime:  # noqa: ARG002  KnownRuns' signature
        return self.facts[job].since

    def last_finished_run(self, job: str) -> ScheduledRun | None:
        return self.facts[job].last

    def is_in_progress(self, job: str, business_date: date) -> bool:  # noqa: ARG002  KnownRuns' signature
        """Return False: a tenant has one run at a time, and nothing is decided about it meanwhile."""
        return False

    def is_any_job_first_seen_ahead(self, now: datetime) -> bool:
        """Return whether a clock that was ahead saw a job first. A look at the state corrects that."""
        return any(facts.since > now + ON_TIME_BEFORE_START for facts in self.facts.values())

    @property
    def are_all_jobs_known(self) -> bool:
        return self.configs.keys() <= self.facts.keys()


class FleetSchedule:
    def __init__(self) -> None:
        self._tenants: dict[str, _TenantJobs] = {}
        self._queue: list[tuple[datetime, int, str]] = []  # the times of decisions about tenants
        self._version = 0

    def __len__(self) -> int:
        return len(self._tenants)

    def add_or_replace_tenant(
        self, tenant: str, jobs: Mapping[str, JobConfig], facts: Iterable[JobFacts], now: datetime
    ) -> None:
        known, before = {each.job: each for each in facts}, self._tenants.get(tenant)
        kept = before.on_time_since if before else {}
        on_time_since = {job: kept.get(job, now - ON_TIME_BEFORE_START) for job in jobs}
        self._version += 1
        self._tenants[tenant] = _TenantJobs(DueRunPlanner(jobs), jobs, known, on_time_since, self._version)
        self._queue_decision_time(tenant, self._next_decision_time(tenant, now))

    def remove_tenant(self, tenant: str) -> None:
        self._tenants.pop(tenant, None)

    def update_job_facts(self, tenant: str, facts: Iterable[JobFacts], now: datetime) -> None:
        found = self._tenants.get(tenant)
        if found is not None:
            found.facts |= {each.job: each for each in facts if each.job in found.configs}
            self._queue_decision_time(tenant, self._next_decision_time(tenant, now))

    def schedule_next_decision(self, tenant: str, at: datetime) -> None:
        if tenant in self._tenants:
            self._queue_decision_time(tenant, at)

    def pop_tenants_to_decide_about(self, now: datetime) -> Iterator[str]:
        """Yield the tenants to decide about, earliest first, and remove each from the queue."""
        while self._queue and self._queue[0][0] <= now:
            _, version, tenant = heappop(self._queue)
            found = self._tenants.get(tenant)
            if found is not None and found.version == version:
                yield tenant

    def decide_due_call(self, tenant: str, now: datetime) -> DueCall | None:
        """Return the call for a tenant now. If there is none, the next decision is when something is due."""
        found = self._tenants[tenant]
        if not found.are_all_jobs_known:
            return DueCall(tenant)
        plans = found.due_jobs.plan_due_runs_of_all_jobs(found, now, found.on_time_since)
        found.on_time_since = {plan.job: plan.on_time_since for plan in plans}
        starts = ((plan, found.due_jobs.first_run_unless_held_back(found, plan, plans, now)) for plan in plans)
        ready = [(start, found.facts[plan.job].expected_s or 0.0, plan) for plan, start in starts if start is not None]
        if ready:
            start, expected_s, plan = min(ready, key=lambda each: each[:2])
            last = found.facts[plan.job].last
            failed = last is not None and last.status in {"failed", "incomplete"}
            return DueCall(tenant, plan.job, start, tuple(plan.skipped), expected_s, failed)
        if skipped := tuple(each for plan in plans if not plan.starts for each in plan.skipped):
            return DueCall(tenant, skipped=skipped)
        waits = any(plan.starts for plan in plans)
        if not waits and any(self._is_job_due(found, job, now) for job in found.paused_jobs()):
            return DueCall(tenant)
        if found.is_any_job_first_seen_ahead(now):
            return DueCall(tenant)
        at = self._next_decision_time(tenant, now)
        self._queue_decision_time(tenant, now + DECIDE_AGAIN_AFTER if waits or at <= now else at)
        return None

    def next_due_by_job(self, tenant: str, now: datetime) -> dict[str, datetime]:
        return self._tenants[tenant].due_jobs.next_due_by_job(now)

    def _is_job_due(self, found: _TenantJobs, job: str, now: datetime) -> bool:
        return _first_due_after(found.configs[job].schedule, _last_due_or_registration(found.facts[job])) <= now

    def _next_decision_time(self, tenant: str, now: datetime) -> datetime:
        """Return when something unfinished is due, or now if it is unknown what has ended."""
        found = self._tenants[tenant]
        if not found.are_all_jobs_known:
            return now
        paused = found.paused_jobs()
        times = [
            _first_due_after(config.schedule, _last_due_or_registration(found.facts[job]))
            for job, config in found.configs.items()
        ]
        if paused:
            times = [
                max(at, now + DECIDE_AGAIN_AFTER) if job in paused else at
                for at, job in zip(times, found.configs, strict=True)
            ]
        if found.is_any_job_first_seen_ahead(now):
            times.append(now + DECIDE_AGAIN_AFTER)
        return min(times)

    def _queue_decision_time(self, tenant: str, at: datetime) -> None:
        self._version += 1
        self._tenants[tenant].version = self._version
        heappush(self._queue, (at, self._version, tenant))


def _last_due_or_registration(facts: JobFacts) -> DueTime | datetime:
    last = facts.last
    return facts.since if last is None else DueTime(last.due, last.business_date)


@lru_cache(_CACHED_FIRST_DUE_TIMES)
def _first_due_after(schedule: Schedule, after: DueTime | datetime) -> datetime:
    """Return what is due first after a run or an instant. Many tenants have the same schedule and last run."""
    begin = after if isinstance(after, datetime) else after.instant
    found = next(due_times_after(schedule, after, begin + SEARCHED_AHEAD), None)
    return begin + SEARCHED_AHEAD if found is None else found.instant
