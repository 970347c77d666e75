"""Which calls a fleet makes, and what becomes of those that fail or are lost; with an executor that a test controls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.config.schedules.due_times import DueTime
from crossdock.config.schedules.job_and_schedule_config import JobConfig
from crossdock.errors import UnavailableError
from crossdock.services.fleet.fleet_scheduler import (
    LONGEST_RETRY_PAUSE,
    REPEAT_SLOW_CALL_AFTER,
    FleetScheduler,
    RunSlots,
)
from crossdock.services.fleet.tenants_and_watched_configs import Tenant
from crossdock.services.fleet.worker import CallResult, RunFacts, ScheduledCall, SharedLimit
from crossdock.services.notifications.run_events_and_messages import ScheduledRunEnded
from crossdock.state import ScheduledRun
from crossdock.state.fleet_leadership_and_jobs import JobFacts
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import RunMessage

NOW, SINCE = datetime(2026, 6, 4, 3, tzinfo=UTC), datetime(2026, 6, 4, 1, tzinfo=UTC)
TODAY = DueTime(datetime(2026, 6, 4, 2, tzinfo=UTC), date(2026, 6, 4))
NIGHTLY = JobConfig.model_validate({"schedule": {"time_zone": "UTC", "at": "02:00"}})
T = TypeVar("T")


def tenant(name: str, *hosts: str, credential: str = "", shares_limit: bool = False) -> Tenant:
    return Tenant(
        name, (Path("base.yaml"), Path(f"{name}.yaml")), "00", {"nightly": NIGHTLY}, {"nightly": frozenset(hosts)},
        f"postgresql://db/{name}", Path(name), is_local=False, credential=credential or name,
        shares_limit=shares_limit, has_own_notify=False,
    )  # fmt: skip


def unended() -> JobFacts:
    return JobFacts("nightly", SINCE, paused=False)


def ended(seconds: float = 1.0, status: Any = "done") -> CallResult:
    """The result of the run that is due."""
    run = ScheduledRun("nightly", TODAY.instant, TODAY.business_date, status, 1, 7, NOW, NOW, None)
    event = ScheduledRunEnded("nightly", TODAY.business_date, TODAY.instant, 7, status, seconds, 8, (), None)
    facts = RunFacts(status=status, event=event, exit_code=0, throttled=0, tallies={}, open={})
    return CallResult(outcome="ended", run=facts, jobs=(replace(unended(), last=run, expected_s=seconds),))


def ended_next_day() -> CallResult:
    """The result of the run that is due a day later."""
    result, day = ended(), timedelta(days=1)
    last = result.jobs[0].last
    assert last is not None
    later = replace(last, due=last.due + day, business_date=last.business_date + day)
    return result.model_copy(update={"jobs": (replace(result.jobs[0], last=later),)})


@dataclass
class ManualExecutor(Executor):
    """Keeps the calls that were made until the test ends them."""

    calls: dict[str, tuple[ScheduledCall, Future[str]]] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    forgotten: list[Future[str]] = field(default_factory=list)  # of calls that were made a second time
    refusals: list[Exception] = field(default_factory=list)
    opened: int = 0

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        if self.refusals:
            raise self.refusals.pop()
        call, future = ScheduledCall.model_validate_json(args[0]), Future[Any]()
        if call.tenant in self.calls:
            assert call == self.calls[call.tenant][0], "only the same call is made a second time"
            self.forgotten.append(self.calls[call.tenant][1])
        self.calls[call.tenant] = call, future
        self.made.append(f"{call.tenant} {call.job or 'looked at'}")
        return future

    def end(self, name: str, result: CallResult | BaseException) -> None:
        _, future = self.calls.pop(name)
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result.model_dump_json())

    @contextmanager
    def open(self) -> Iterator[Executor]:
        self.opened += 1
        yield self


@dataclass
class Said:
    """What the scheduler says."""

    all: list[str] = field(default_factory=list)

    def report_run_start(self, tenant: str, job: str, at: DueTime) -> None:
        self.all.append(f"{tenant} began")

    def report_run_end(self, tenant: str, run: RunFacts, problems: Iterable[str]) -> None:
        self.all.append(f"{tenant} {run.status}")

    def report_failed_start(
        self, tenant: str, job: str, at: DueTime, message: RunMessage, problems: Iterable[str]
    ) -> None:
        self.all.append(f"{tenant} failed: {message.text_with_place_and_advice}")

    def report_unusable_tenant(self, tenant: str, error: str) -> None:
        self.all.append(f"{tenant} broken: {error}")

    def report_lost_call(self, tenant: str, reason: str) -> None:
        self.all.append(f"{tenant} lost: {reason}")

    def report_postponed_call(self, tenant: str, reason: str) -> None:
        self.all.append(f"{tenant} postponed: {reason}")

    def report_pending_notice(self, tenant: str, event: ScheduledRunEnded) -> None:
        self.all.append(f"{tenant} notice pending: {event.run_id}")

    def report_component_status(self, part: str, problem: str | None) -> None:
        if problem is not None:
            self.all.append(f"{part}: {problem}")


class Fleet:
    """A scheduler with its clock, executor and listener."""

    def __init__(self, at_once: int = 2, per_host: int = 1) -> None:
        self.clock, self.executor, self.said, self.known = ManualClock(NOW), ManualExecutor(), Said(), dict[str, Any]()
        self.wakes: list[int] = []
        self.scheduler = FleetScheduler(
            self.clock,
            RunSlots(at_once, per_host),
            self.executor.open,
            "postgresql://db/fleet",
            self.said,
            self.known.__setitem__,
            lambda: self.wakes.append(1),
        )

    def work(self) -> None:
        while self.scheduler.collect_and_start_runs():
            """There is more to do."""

    def running(self) -> list[str]:
        self.work()
        return sorted(self.executor.calls)

    def later(self, seconds: float) -> list[str]:
        self.work()
        self.clock.advance(seconds)
        return self.running()


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


def test_a_run_begins_when_there_is_a_slot(fleet: Fleet) -> None:
    """Each tenant is run once, at most two at the same time, and the next one at the end of another."""
    for name in "abc":
        fleet.scheduler.add_or_replace_tenant(tenant(name), [unended()])
    assert fleet.running() == ["a", "b"]
    fleet.executor.end("a", ended())
    assert fleet.wakes
    assert fleet.running() == ["b", "c"]
    fleet.executor.end("b", ended())
    fleet.executor.end("c", ended(status="degraded"))
    assert fleet.later(3600) == []
    assert fleet.executor.made == ["a nightly", "b nightly", "c nightly"]
    assert fleet.said.all[-2:] == ["b done", "c degraded"]
    assert set(fleet.known) == set("abc")


def test_one_run_at_a_time_reads_a_host(fleet: Fleet) -> None:
    """Others are not held up by it."""
    for name, host in (("a", "ftp"), ("b", "ftp"), ("c", "shop")):
        fleet.scheduler.add_or_replace_tenant(tenant(name, host), [unended()])
    assert fleet.running() == ["a", "c"]
    fleet.executor.end("c", ended())
    assert fleet.running() == ["a"]
    fleet.executor.end("a", ended())
    assert fleet.running() == ["b"]


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(RuntimeError("the worker was killed"), id="the worker was killed"),
        pytest.param(CallResult(outcome="busy", error="another run is using this state"), id="the state is in use"),
        pytest.param(CallResult(outcome="changed", error="it differs"), id="the config differs on the worker"),
        pytest.param(CallResult(outcome="failed", error="no route"), id="it could not start"),
    ],
)
def test_a_call_that_was_not_carried_out_is_made_again(fleet: Fleet, loss: CallResult | Exception) -> None:
    """After pauses that grow to some minutes, until it is; others go on meanwhile."""
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [unended()])
    fleet.scheduler.add_or_replace_tenant(tenant("b"), [unended()])
    assert fleet.running() == ["a", "b"]
    fleet.executor.end("b", ended())
    pauses = list[float]()
    for _ in range(12):
        fleet.executor.end("a", loss)
        waited = 0.0
        while "a" not in fleet.running():
            fleet.clock.advance(1.0)
            waited += 1.0
        pauses.append(waited)
    assert pauses[0] <= 2.0
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_RETRY_PAUSE.total_seconds()
    fleet.executor.end("a", ended())
    assert fleet.later(LONGEST_RETRY_PAUSE.total_seconds()) == []
    assert fleet.executor.made.count("b nightly") == 1
    assert [each for each in fleet.said.all if "done" in each] == ["b done", "a done"]


def test_a_failure_is_reported_once_until_it_is_another(fleet: Fleet) -> None:
    """However often the run is tried again."""
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [unended()])
    for error in ("no route", "no route", "no key", "no route"):
        assert fleet.later(LONGEST_RETRY_PAUSE.total_seconds()) == ["a"]
        fleet.executor.end("a", CallResult(outcome="failed", error=error))
    fleet.work()
    assert [each for each in fleet.said.all if "failed" in each] == [
        "a failed: no route",
        "a failed: no key",
        "a failed: no route",
    ]


def test_a_call_that_waits_for_the_next_attempt_keeps_its_reason(fleet: Fleet) -> None:
    """It is told once for each new reason, and forgotten once the call was carried out."""
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [unended()])
    reasons = ("in use", "in use", "it differs", "it differs")
    for number, reason in enumerate(reasons):
        assert fleet.later(60) == ["a"]
        fleet.executor.end("a", CallResult(outcome="busy" if number < 2 else "changed", error=reason))
    fleet.work()
    (left,) = fleet.scheduler.postponed_calls
    assert (left.call.job, left.call.at, left.reason) == ("nightly", TODAY, "it differs")
    assert [each for each in fleet.said.all if "postponed" in each] == [
        "a postponed: in use",
        "a postponed: it differs",
    ]
    assert fleet.later(60) == ["a"]
    fleet.executor.end("a", ended())
    fleet.work()
    assert fleet.scheduler.postponed_calls == []


def test_a_call_that_the_engine_has_forgotten_is_made_a_second_time(fleet: Fleet) -> None:
    """No run waits for good for a result that does not come."""
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [unended()])
    fleet.work()
    assert fleet.later(REPEAT_SLOW_CALL_AFTER.total_seconds() - 1) == ["a"]
    assert fleet.executor.forgotten == []
    assert fleet.later(1) == ["a"]
    (forgotten,) = fleet.executor.forgotten
    fleet.executor.end("a", ended())
    assert fleet.later(3600) == []
    assert forgotten.cancelled()
    assert fleet.said.all == ["a began", "a done"]


def test_a_run_that_takes_long_is_asked_about_now_and_then(fleet: Fleet) -> None:
    """The second call finds the state in use; the end of the first one is reported, once."""
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [unended()])
    fleet.work()
    asked, first = 0, fleet.executor.calls["a"]
    for _ in range(600):
        fleet.later(60)
        if len(fleet.executor.forgotten) > asked:
            asked += 1
            fleet.executor.end("a", CallResult(outcome="busy", error="in use"))
            fleet.work()
            fleet.executor.calls["a"] = first
    assert 3 < asked < 12, "at intervals that double"
    fleet.executor.end("a", ended())
    assert fleet.later(60) == []
    assert fleet.said.all == ["a began", "a done"]


def test_a_run_whose_process_is_killed_again_is_reported_once(fleet: Fleet) -> None:
    """At the second lost call, as its process is perhaps killed at each attempt."""
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [unended()])
    for lost in range(1, 5):
        assert fleet.later(60) == ["a"]
        fleet.executor.end("a", RuntimeError("killed"))
        fleet.work()
        assert sum("a failed: its process was killed" in each for each in fleet.said.all) == (lost > 1)


def test_an_answer_that_cannot_be_read_is_a_problem_of_the_executor(fleet: Fleet) -> None:
    """As that of a worker with another version."""
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [unended()])
    fleet.work()
    _, future = fleet.executor.calls.pop("a")
    future.set_result("{}")
    assert fleet.later(2) == ["a"]
    assert fleet.said.all[1] == "executor: the worker's answer cannot be read: has it the same version?"


def test_a_cancelled_call_is_made_again(fleet: Fleet) -> None:
    """As the calls of a cluster whose scheduler was restarted."""
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [unended()])
    fleet.work()
    _, future = fleet.executor.calls.pop("a")
    assert future.cancel()
    future.set_running_or_notify_cancel()
    assert fleet.later(2) == ["a"]
    assert "a lost: it was cancelled" in fleet.said.all


def test_an_executor_that_cannot_be_used_is_opened_anew(fleet: Fleet) -> None:
    """Runs that are due wait, and none is lost."""
    fleet.executor.refusals = [RuntimeError("shut down"), UnavailableError("the scheduler does not answer")]
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [unended()])
    assert fleet.running() == []
    assert fleet.said.all == ["executor: the scheduler does not answer [unavailable]"]
    assert fleet.later(1) == []
    assert fleet.later(1) == []
    (said,) = fleet.said.all[1:]
    assert said.startswith("executor: submit raised RuntimeError in line ")
    assert "shut down" in said
    assert fleet.later(4) == ["a"]
    assert fleet.executor.opened == 3


def test_a_worker_of_another_version_is_a_problem_of_the_executor(fleet: Fleet) -> None:
    """The run waits for a worker that fits."""
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [unended()])
    fleet.work()
    fleet.executor.end("a", CallResult(outcome="refused", error="this worker has crossdock 9"))
    assert fleet.running() == []
    assert fleet.said.all[-1] == "executor: this worker has crossdock 9"
    assert fleet.later(2) == ["a"]
    fleet.executor.end("a", ended())
    fleet.work()
    assert fleet.said.all[-1] == "a done"


def test_a_state_of_which_nothing_is_known_is_looked_at_first(fleet: Fleet) -> None:
    """A state that cannot be used is reported once."""
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [])
    assert fleet.running() == ["a"]
    fleet.executor.end("a", CallResult(outcome="failed", error="there is no state here"))
    assert fleet.later(2) == ["a"]
    fleet.executor.end("a", CallResult(outcome="failed", error="there is no state here"))
    fleet.work()
    assert fleet.said.all == ["a broken: there is no state here [not_started]"]
    assert fleet.later(LONGEST_RETRY_PAUSE.total_seconds()) == ["a"]
    fleet.executor.end("a", CallResult(outcome="looked", jobs=(unended(),)))
    assert fleet.running() == ["a"]
    assert fleet.executor.made[-1] == "a nightly"


def test_a_removed_tenant_ends_its_run(fleet: Fleet) -> None:
    """The end is reported, and no other run begins."""
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [unended()])
    fleet.work()
    fleet.scheduler.remove_tenant("a")
    fleet.executor.end("a", ended())
    assert fleet.later(86_400) == []
    assert fleet.said.all[-1] == "a done"


def test_a_changed_config_is_used_from_the_next_run_on(fleet: Fleet) -> None:
    """A tenant never has two runs at the same time, and what waited is decided about again."""
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [unended()])
    fleet.work()
    fleet.scheduler.add_or_replace_tenant(replace(tenant("a"), digest="11"), [unended()])
    assert fleet.running() == ["a"]
    fleet.executor.end("a", CallResult(outcome="changed", error="it differs"))
    assert fleet.later(2) == ["a"]
    call, _ = fleet.executor.calls["a"]
    assert call.digest == "11"


def test_a_run_that_people_know_of_is_no_news(fleet: Fleet) -> None:
    """Until its mark is removed, by a look that a changed config does not prevent, results that name it are ignored."""
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [unended()])
    assert fleet.running() == ["a"]
    event = ended().run
    assert event is not None
    fleet.scheduler.schedule_notice_check("a", [7])
    fleet.executor.end("a", ended().model_copy(update={"pending_notices": (event.event,)}))
    fleet.executor.refusals = [UnavailableError("away")]
    fleet.work()
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [ended().jobs[0]])
    fleet.later(60)
    assert fleet.executor.calls["a"][0].notified == (7,)
    assert not any("notice pending" in text for text in fleet.said.all)


def test_tenants_with_one_credential_share_its_bucket(fleet: Fleet) -> None:
    """Others keep theirs, and so does one whose config says where its bucket is."""
    fleet.scheduler.add_or_replace_tenant(tenant("a", credential="k"), [unended()])
    fleet.scheduler.add_or_replace_tenant(tenant("b", credential="k"), [unended()])
    fleet.work()
    limits = [fleet.executor.calls[name][0].shared_limit for name in "ab"]
    assert limits == [SharedLimit(database="postgresql://db/fleet", name="credential k")] * 2
    for name in "ab":
        fleet.executor.end(name, ended())
    fleet.scheduler.add_or_replace_tenant(tenant("c"), [unended()])
    fleet.scheduler.add_or_replace_tenant(tenant("d", credential="k", shares_limit=True), [unended()])
    fleet.work()
    assert [fleet.executor.calls[name][0].shared_limit for name in "cd"] == [None, None]


def test_slow_and_failing_tenants_do_not_delay_others() -> None:
    """Those that did not complete the last time hang again: two of them, and the others run meanwhile."""
    fleet = Fleet(at_once=4, per_host=9)
    for name in ("a0", "a1", "a2"):
        fleet.scheduler.add_or_replace_tenant(tenant(name), ended(status="failed").jobs)
    for number in range(6):
        fleet.scheduler.add_or_replace_tenant(tenant(f"b{number}"), ended().jobs)
    assert fleet.later(timedelta(hours=23).total_seconds()) == ["a0", "a1", "b0", "b1"]
    done = []
    while quick := [name for name in fleet.running() if name.startswith("b")]:
        done.append(quick[0])
        fleet.executor.end(quick[0], ended_next_day())
    assert done == [f"b{number}" for number in range(6)]
    assert fleet.running() == ["a0", "a1"]
    fleet.executor.end("a0", ended_next_day())
    assert fleet.running() == ["a1", "a2"]


def test_closing_cancels_what_has_not_begun(fleet: Fleet) -> None:
    """And calls the executor no more."""
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [unended()])
    fleet.work()
    _, future = fleet.executor.calls["a"]
    fleet.scheduler.cancel_calls_and_close()
    assert future.cancelled()


TROUBLE: list[CallResult | Exception] = [
    RuntimeError("the worker was killed"),
    CallResult(outcome="busy", error="another run is using this state"),
    CallResult(outcome="refused", error="another version"),
    CallResult(outcome="changed", error="another config"),
    CallResult(outcome="failed", error="no route"),
]


@given(
    tenants=st.integers(1, 6),
    fates=st.lists(st.tuples(st.integers(0, 9), st.integers(0, len(TROUBLE)), st.booleans()), max_size=60),
    changes=st.lists(st.integers(0, 5), max_size=4),
)
def test_every_run_takes_place_whatever_happens_to_its_calls(
    tenants: int, fates: list[tuple[int, int, bool]], changes: list[int]
) -> None:
    """In the end each tenant has run once, although calls are lost before and after they were carried out."""
    fleet, done = Fleet(at_once=2), set[str]()
    names = [f"t{number}" for number in range(tenants)]
    for name in names:
        fleet.scheduler.add_or_replace_tenant(tenant(name), [unended()])

    def carried_out(name: str) -> CallResult:
        """The run takes place, unless it has, or the state is only looked at."""
        call, _ = fleet.executor.calls[name]
        if call.job is None:
            return CallResult(outcome="looked", jobs=ended().jobs if name in done else (unended(),))
        if name in done:
            return ended().model_copy(update={"outcome": "ended_before", "run": None})
        done.add(name)
        return ended()

    for which, what, after in fates:
        if running := fleet.running():
            name, trouble = running[which % len(running)], TROUBLE[what] if what < len(TROUBLE) else None
            result = carried_out(name) if trouble is None or after else trouble  # what took place stays so
            fleet.executor.end(name, trouble or result)
        if changes and which == 0:
            name = names[changes.pop() % tenants]
            fleet.scheduler.add_or_replace_tenant(replace(tenant(name), digest=str(len(changes))), [])
        fleet.clock.advance(which)
    for _ in range(20 * tenants):
        for name in fleet.running():
            fleet.executor.end(name, carried_out(name))
        fleet.clock.advance(LONGEST_RETRY_PAUSE.total_seconds())
    assert done == set(names)
    assert fleet.running() == []


def breaks(*_: Any) -> Any:
    raise SystemExit("boom")


class Careless(ManualExecutor):
    """An executor of an author, whose own future fails, or is none."""

    made_of: Any = None

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        super().submit(fn, *args, **kwargs)
        if isinstance(self.made_of, str):
            future: Future[Any] = type("Own", (Future,), {self.made_of: breaks})()
            call, _ = self.calls[ScheduledCall.model_validate_json(args[0]).tenant]
            self.calls[call.tenant] = call, future
            return future
        return cast("Future[T]", self.made_of)


@pytest.mark.parametrize("method", ["result", "done", "cancel", "cancelled", "exception"])
def test_a_future_whose_methods_fail_stops_nothing(fleet: Fleet, method: str) -> None:
    """A call of which no result can be read is lost, and made again; other tenants are run."""
    fleet.executor = Careless()
    fleet.executor.made_of = method
    fleet.scheduler._open = fleet.executor.open
    for name in "ab":
        fleet.scheduler.add_or_replace_tenant(tenant(name), [unended()])
    assert fleet.running() == ["a", "b"]
    for name in "ab":
        fleet.executor.end(name, ended())
    fleet.work()
    done = {f"{name} lost: SystemExit: boom" if method == "result" else f"{name} done" for name in "ab"}
    assert done < set(fleet.said.all)
    fleet.scheduler.cancel_calls_and_close()


def test_an_executor_that_returns_no_future_is_opened_anew(fleet: Fleet) -> None:
    """The runs wait, and the message says what it returned."""
    fleet.executor = Careless()
    fleet.scheduler._open = fleet.executor.open
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [unended()])
    fleet.work()
    assert fleet.said.all[0].startswith("executor: submit returned NoneType instead of a Future")
    fleet.executor.made_of = "exception"
    assert fleet.later(2) == ["a"]


def test_an_executor_that_cannot_be_closed_stops_nothing(fleet: Fleet) -> None:
    """Another one is opened, and at the end nothing is raised."""

    @contextmanager
    def opened() -> Iterator[Executor]:
        yield fleet.executor
        raise OSError("no connection")

    fleet.executor.refusals = [RuntimeError("shut down")]
    fleet.scheduler._open = opened
    fleet.scheduler.add_or_replace_tenant(tenant("a"), [unended()])
    fleet.work()
    assert fleet.said.all[-1] == "executor: OSError: no connection"
    assert fleet.later(2) == ["a"]
    fleet.scheduler.cancel_calls_and_close()
