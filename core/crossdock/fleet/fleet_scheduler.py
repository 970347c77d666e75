"""Dispatches what is due to the executor, a run for each tenant at a time, and makes lost calls again.

The states decide what runs: a call that is made twice, late or by two schedulers neither loses nor repeats a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError, Executor, Future
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from crossdock.clock import Clock
from crossdock.errors import CrossdockError
from crossdock.fleet import worker
from crossdock.fleet.executors import Opened
from crossdock.fleet.fleet_schedule import DueCall, FleetSchedule
from crossdock.fleet.run_slots import SLOW_S, Place, RunSlots
from crossdock.fleet.scheduled_call import CallResult, RunFacts, ScheduledCall, SharedLimit
from crossdock.fleet.tenants import Tenant
from crossdock.observability.metrics import Part
from crossdock.scheduling.due_times import Due
from crossdock.state.fleet_database import JobFacts

SOONEST, LATEST = timedelta(seconds=2), timedelta(minutes=5)
"""The first and the longest pause before a call that failed is made again; each is twice the one before."""


class Listener(Protocol):
    """Receives what happens, always from the thread that calls the scheduler."""

    def began(self, tenant: str, job: str, at: Due) -> None:
        """A run was given to the executor."""

    def ended(self, tenant: str, run: RunFacts, problems: Iterable[str]) -> None:
        """A run has ended; *problems* are about notifications that were not sent."""

    def failed(self, tenant: str, job: str, at: Due, error: str) -> None:
        """A run could not start and is tried again; called once for each error in turn."""

    def broken(self, tenant: str, error: str) -> None:
        """No run of the tenant can start; called once for each error in turn."""

    def lost(self, tenant: str, reason: str) -> None:
        """A call was lost with its worker, and is made again."""

    def found(self, part: Part, problem: str | None) -> None:
        """Whether a part, such as the executor, can be used; *problem* says why not."""


@dataclass(slots=True)
class Running:
    """A call that the executor has."""

    call: DueCall
    place: Place
    future: Future[str]
    since: datetime


@dataclass(slots=True)
class _Tries:
    """The calls for a tenant that were not carried out, one after the other."""

    number: int = 0
    reported: tuple[object, str] | None = None

    def pause(self) -> timedelta:
        self.number += 1
        return min(LATEST, SOONEST * (1 << min(self.number - 1, 10)))


class FleetScheduler:
    """Calls must not overlap.

    Args:
        open_executor: Opens the executor; called again after it was lost.
        fleet_database: Address of the database in which tenants with one credential share its bucket.
        known: Called with what the state of a tenant knows of its jobs.
        wake: Called from any thread when a call has ended.
    """

    def __init__(
        self,
        clock: Clock,
        slots: RunSlots,
        open_executor: Callable[[], Opened],
        fleet_database: str,
        listener: Listener,
        known: Callable[[str, Iterable[JobFacts]], None],
        wake: Callable[[], None],
    ) -> None:
        self._clock, self._slots, self._open, self._database = clock, slots, open_executor, fleet_database
        self._listener, self._known, self._wake = listener, known, wake
        self._tenants: dict[str, Tenant] = {}
        self._credentials: dict[str, set[str]] = {}  # the tenants with each credential
        self.schedule = FleetSchedule()
        self.waiting: dict[str, DueCall] = {}
        self.running: dict[str, Running] = {}
        self._tries: dict[str, _Tries] = {}
        self._executor: Executor | None = None
        self._resources = ExitStack()
        self._executor_tries = _Tries()
        self._executor_again: datetime | None = None

    @property
    def tenants(self) -> Mapping[str, Tenant]:
        """By name."""
        return self._tenants

    def put(self, tenant: Tenant, facts: Iterable[JobFacts]) -> None:
        """Add a tenant, or use another config of it from its next run on."""
        self._forget(tenant.name)
        self._tenants[tenant.name] = tenant
        self._credentials.setdefault(tenant.credential, set()).add(tenant.name)
        self.schedule.put(tenant.name, tenant.jobs, facts, self._clock.now())

    def remove(self, name: str) -> None:
        """Start no more runs of a tenant; one that is in progress ends as usual."""
        self._forget(name)
        self.schedule.remove(name)

    def _forget(self, name: str) -> None:
        self.waiting.pop(name, None)
        self._tries.pop(name, None)
        if (before := self._tenants.pop(name, None)) is not None:
            self._credentials[before.credential].discard(name)

    def step(self, *, may_start: bool = True) -> bool:
        """Report what has ended, decide what is due, and start what may start; False if there was nothing to do."""
        did = self._collect()
        if not may_start:
            return did
        now = self._clock.now()
        self._decide(now)
        return self._start(now) or did

    def close(self) -> None:
        """Start nothing more: calls that have not begun are cancelled, others stop, or go on elsewhere."""
        for each in self.running.values():
            each.future.cancel()
        self._close_executor()
        for name, each in self.running.items():
            if each.future.done() and not each.future.cancelled() and each.future.exception() is None:
                self._take(name, each.call, CallResult.model_validate_json(each.future.result()))
        self.running.clear()
        self.waiting.clear()

    def _collect(self) -> bool:
        ended = [name for name, each in self.running.items() if each.future.done()]
        for name in ended:
            running = self.running.pop(name)
            try:
                result = CallResult.model_validate_json(running.future.result())
            except (Exception, CancelledError) as error:  # noqa: BLE001  whatever the executor raises, the call is made again
                self._listener.lost(name, f"{type(error).__name__}: {error}".rstrip(": "))
                self._retry(name)
            else:
                self._take(name, running.call, result)
        return bool(ended)

    def _take(self, name: str, call: DueCall, result: CallResult) -> None:
        if result.jobs:
            self._known(name, result.jobs)
            self.schedule.update(name, result.jobs, self._clock.now())
        if result.outcome == "refused":
            self._executor_failed(result.error or "")
        if result.run is not None:
            self._listener.ended(name, result.run, result.problems)
        if result.outcome in {"ended", "ended_before", "looked", "paused"}:
            self._tries.pop(name, None)
            self._listener.found("executor", None)
            return
        if result.outcome == "failed":
            tries, error = self._tries.setdefault(name, _Tries()), result.error or "unknown error"
            if tries.reported != (call.at, error):
                tries.reported = call.at, error
                self._report(name, call, error)
        self._retry(name)

    def _report(self, name: str, call: DueCall, error: str) -> None:
        if call.job is None or call.at is None:
            self._listener.broken(name, error)
        else:
            self._listener.failed(name, call.job, call.at, error)

    def _retry(self, name: str) -> None:
        pause = self._tries.setdefault(name, _Tries()).pause()
        self.schedule.again(name, self._clock.now() + pause)

    def _decide(self, now: datetime) -> None:
        for name in self.schedule.due(now):
            if name in self.running or name in self.waiting:
                continue  # decided about again when its call has ended
            call = self.schedule.call(name, now)
            if call is not None:
                self.waiting[name] = call

    def _start(self, now: datetime) -> bool:
        if not self.waiting or (self._executor_again is not None and now < self._executor_again):
            return False
        places = {name: self._place(call, now) for name, call in self.waiting.items()}
        chosen = self._slots.next(places.values(), (each.place for each in self.running.values()))
        for place in chosen:
            if not self._submit(place, now):
                return False
        return bool(chosen)

    def _place(self, call: DueCall, now: datetime) -> Place:
        tenant = self._tenants[call.tenant]
        expected_s = call.expected_s or 0.0
        due = call.at.instant if call.at is not None else now
        hosts = tenant.hosts.get(call.job, frozenset()) if call.job is not None else frozenset[str]()
        return Place(due, expected_s, call.tenant, hosts, is_slow=call.failed_before or expected_s > SLOW_S)

    def _submit(self, place: Place, now: datetime) -> bool:
        call = self.waiting[place.tenant]
        text = self._call(self._tenants[place.tenant], call).model_dump_json()
        try:
            if self._executor is None:
                self._executor = self._resources.enter_context(self._open())
            future = self._executor.submit(worker.execute, text)
        except CrossdockError as error:
            self._executor_failed(str(error))
            return False
        except Exception as error:  # noqa: BLE001  of any engine: it is opened anew
            self._executor_failed(f"{type(error).__name__}: {error}".rstrip(": "))
            return False
        self._executor_again, self._executor_tries = None, _Tries()
        del self.waiting[place.tenant]
        self.running[place.tenant] = Running(call, place, future, now)
        if call.job is not None and call.at is not None:
            self._listener.began(place.tenant, call.job, call.at)
        future.add_done_callback(lambda _: self._wake())
        return True

    def _call(self, tenant: Tenant, call: DueCall) -> ScheduledCall:
        shared = not tenant.shares_limit and len(self._credentials[tenant.credential]) > 1
        return ScheduledCall(
            tenant=tenant.name,
            files=tenant.files,
            digest=tenant.digest,
            job=call.job,
            due=call.at and call.at.instant,
            business_date=call.at and call.at.business_date,
            skipped=call.skipped,
            shared_limit=SharedLimit(database=self._database, name=f"credential {tenant.credential}")
            if shared
            else None,
            notify=tenant.has_own_notify,
        )

    def _executor_failed(self, problem: str) -> None:
        self._executor_again = self._clock.now() + self._executor_tries.pause()
        self._listener.found("executor", problem)
        if not self.running:
            self._close_executor()

    def _close_executor(self) -> None:
        self._executor = None
        self._resources.close()
