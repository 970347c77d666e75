"""What a scheduler of a fleet computes: the time and the database connections, by the number of tenants.

Cold is a scheduler that takes over: it reads what was last known from the database of the fleet, and decides about each
tenant of which something is due, which is half of them. Idle is a look at which nothing is due.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import event
from tests.benchmarks import results

from crossdock.cli.main import _GARBAGE_AT
from crossdock.config.schedules.job_and_schedule_config import JobConfig
from crossdock.services.fleet.fleet_due_runs import FleetSchedule
from crossdock.state import ScheduledRun, StateUrl, parse_database_url
from crossdock.state.fleet_leadership_and_jobs import FleetDatabase, JobFacts
from crossdock.testing.postgres_server import PostgresServer

SIZES = (10, 100, 1_000, 10_000)
GOAL_S = 1.0
NOW = datetime(2026, 11, 24, 3, tzinfo=UTC)
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Sydney", "UTC")


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one fleet.

    Attributes:
        due: Tenants of which something was due.
        connections: That were opened to databases, all together.
    """

    tenants: int
    due: int
    cold_s: float
    idle_s: float
    connections: int


def job(number: int, *, equal: bool) -> JobConfig:
    """Due once a day: for all at the same time, or each at another time in one of five zones."""
    at = "02:30" if equal else f"{number // 60 % 24:02}:{number % 60:02}"
    zone = "UTC" if equal else ZONES[number % len(ZONES)]
    return JobConfig.model_validate({"schedule": {"time_zone": zone, "at": at}})


def known(number: int) -> JobFacts:
    """Every second tenant has run today, the others last did so two days ago."""
    ended = NOW - timedelta(days=2 * (number % 2))
    run = ScheduledRun("nightly", ended, ended.date(), "done", 1, number, ended, ended, None)
    return JobFacts("nightly", NOW - timedelta(days=30), paused=False, expected_s=10.0, last=run)


def measure(url: StateUrl, tenants: int, *, equal: bool) -> Measured:
    """Store what is known of so many tenants, and take over."""
    names = [f"t{number:05}" for number in range(tenants)]
    jobs = [{"nightly": job(number, equal=equal)} for number in range(tenants)]
    with closing(FleetDatabase(url)) as database, database.hold_leadership("before") as leader:
        leader.delete_job_facts_of_tenants(list(database.job_facts_by_tenant()))
        leader.write_job_facts({name: [known(number)] for number, name in enumerate(names)})
    began, connections = time.perf_counter(), list[object]()
    with closing(FleetDatabase(url)) as database:
        event.listen(database._engine, "connect", lambda raw, _: connections.append(raw))
        with database.hold_leadership("after"):
            facts, schedule = database.job_facts_by_tenant(), FleetSchedule()
            for name, configs in zip(names, jobs, strict=True):
                schedule.add_or_replace_tenant(name, configs, facts[name].values(), NOW)
            calls = [
                call
                for name in list(schedule.pop_tenants_to_decide_about(NOW))
                if (call := schedule.decide_due_call(name, NOW)) is not None
            ]
            cold_s = time.perf_counter() - began
            began = time.perf_counter()
            for name in list(schedule.pop_tenants_to_decide_about(NOW)):
                schedule.decide_due_call(name, NOW)
            idle_s = time.perf_counter() - began
            opened = len(connections) + 1  # the first, with which the database was opened
    assert {call.tenant for call in calls} == {name for number, name in enumerate(names) if number % 2}
    assert all(call.job == "nightly" for call in calls)
    return Measured(tenants, len(calls), cold_s, idle_s, opened)


def rows(measured: Callable[[int], Measured], sizes: Sequence[int], kind: str) -> list[list[object]]:
    found = [measured(size) for size in sizes]
    return [
        [
            kind,
            f"{each.tenants:,}",
            f"{each.due:,}",
            f"{each.cold_s:.3f}",
            f"{each.cold_s / each.tenants * 1e6:,.0f}",
            f"{each.idle_s * 1e3:.2f}",
            each.connections,
        ]
        for each in found
    ]


def main() -> None:
    gc.set_threshold(_GARBAGE_AT)  # as in every command
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    sizes = parser.parse_args().sizes
    with tempfile.TemporaryDirectory() as place, PostgresServer() as server:
        url = parse_database_url(server.create_database(), Path(place))
        table = [
            *rows(lambda size: measure(url, size, equal=True), sizes, "equal"),
            *rows(lambda size: measure(url, size, equal=False), sizes, "all different"),
        ]
    columns = (
        *("schedules", "tenants", "due", f"cold s (goal {GOAL_S:.0f})", "us a tenant", "idle ms", "connections"),
    )
    results.write(
        "What is due in a fleet", columns, table, str(__doc__).partition("\n\n")[2].replace("\n", " ").strip()
    )


if __name__ == "__main__":
    main()
