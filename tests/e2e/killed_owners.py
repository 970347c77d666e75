"""Two real schedulers on one state; the one that is running is killed again and again.

The short form is in `tests.nightly.test_killed_owners`, the long one in `tests.long.test_scheduled_runs`.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import yaml
from sqlalchemy import Engine, create_engine, select
from tests.chaos.checks import Trial
from tests.e2e import retail_truth
from tests.e2e.processes import SchedulerProcesses
from tests.e2e.project_folder import SandboxProcess, Stage, balance

from crossdock.config.project import project
from crossdock.state.db import schema
from crossdock.state.tables.run_history import COMPLETED, UNRECORDED

WITHIN_S = 180.0  # after a takeover without the database lock, the lease must expire first
LONG_AGO = 1_300_000_000  # a file written just now would be watched for a while before it is read
JOBS = {"masters": ["shop.customers", "shop.products"], "sales": ["shop.invoices"]}  # the second after the first
SCHEDULERS = 2
MOMENTS = ("in a load", "in a load", "at a start", "at an end")
WORDS = {"at a start": ": started", "at an end": ": done after"}


def schedule(stage: Stage, scheduled_runs: int) -> list[date]:
    """Make two jobs due for *scheduled_runs* business dates in the past; returns these dates.

    The next one is due hours from now, so that no run is added meanwhile.
    """
    due = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=1)
    often = {"time_zone": "UTC", "at": f"{due:%H:%M}", "catch_up": "all", "catch_up_within": f"{scheduled_runs + 1}d"}
    config = yaml.safe_load(stage.config.read_text())
    masters, sales = ({"streams": streams, "schedule": often} for streams in JOBS.values())
    config["jobs"] = {"masters": masters, "sales": {**sales, "after": ["masters"]}}
    stage.config.write_text(yaml.safe_dump(config, sort_keys=False))
    first = due - timedelta(days=scheduled_runs - 1)
    with closing(project.load(stage.config).open_state()) as state, state.begin() as tx:
        for name in JOBS:
            tx.scheduled_runs.get_or_register_first_seen(name, first - timedelta(hours=1))
    return [(first + timedelta(days=number)).date() for number in range(scheduled_runs)]


class Warehouse:
    """The retail exports, provided one by one.

    Attributes:
        given: Exports that are provided.
        creates: Number of creates that deliver all of them.
    """

    def __init__(self, stage: Stage, exports: Sequence[Path]) -> None:
        self._drop, self._left = stage.drop, list(exports)
        self.given: list[Path] = []
        self.creates = 0
        self._keys: set[tuple[str, str]] = set()

    def give(self) -> int:
        """Provide the next export atomically; returns the number of creates it adds."""
        file = self._left.pop(0)
        partial = self._drop / f"{file.name}.part"
        shutil.copyfile(file, partial)
        os.utime(partial, (LONG_AGO + len(self.given), LONG_AGO + len(self.given)))
        partial.rename(self._drop / file.name)
        self.given.append(file)
        for row in retail_truth.rows(file):
            if row["CustomerID"] and not row["InvoiceNo"].startswith("C"):
                self._keys |= {("C", row["CustomerID"]), ("P", row["StockCode"]), ("I", row["InvoiceNo"])}
        before, self.creates = self.creates, len(self._keys)
        return self.creates - before


class CreateCounter:
    """Counts the creates in the platform's effects log."""

    def __init__(self, sandbox: SandboxProcess) -> None:
        self._sandbox, self._seen, self._creates = sandbox, 0, 0

    def creates(self) -> int:
        for effect in self._sandbox.effects(after=self._seen):
            self._seen = int(effect["seq"])
            self._creates += effect["operation"] == "create"
        return self._creates


class Owners:
    """Two schedulers on one state; one that is killed is restarted at once, as by systemd.

    Attributes:
        kills: By moment.
    """

    def __init__(self, processes: SchedulerProcesses, engine: Engine) -> None:
        self.processes, self._engine = processes, engine
        self.kills: Counter[str] = Counter()

    def kill(self, moment: str) -> None:
        """Kill the process that holds the lease or held it last; if it is dead, the one that takes it next."""
        self.processes.until(lambda: self._owner() in self.processes.pids)
        self.processes.kill(self._owner())
        self.kills[moment] += 1
        self.processes.start()

    def _owner(self) -> int:
        with self._engine.connect() as connection:
            owner: str = connection.execute(select(schema.leases.c.owner)).scalar_one()
        return int(owner.rpartition(":")[2].partition("#")[0] or 0)


@contextmanager
def two_schedulers(stage: Stage) -> Iterator[Owners]:
    engine = create_engine(project.load(stage.config).state_url)
    log = stage.folder / "schedule.log"
    try:
        command, environment = stage.command("schedule"), stage.environment()
        with SchedulerProcesses(command, log, environment=environment, within_s=WITHIN_S) as processes:
            for _ in range(SCHEDULERS):
                processes.start()
            yield Owners(processes, engine)
    finally:
        engine.dispose()


@dataclass(frozen=True, slots=True)
class KillPlan:
    """Kills the owner during the load of an export, or when a run starts or ends."""

    random: Random
    owners: Owners
    warehouse: Warehouse
    counter: CreateCounter

    def kill_once(self, number: int) -> None:
        """Provide an export when the previous ones are delivered, and kill during its load."""
        processes = self.owners.processes
        processes.until(lambda: self.counter.creates() >= self.warehouse.creates)
        moment = MOMENTS[number % len(MOMENTS)]
        before, said = self.warehouse.creates, processes.said(WORDS.get(moment, ""))
        brings = self.warehouse.give()
        if moment in WORDS:
            processes.until(lambda: processes.said(WORDS[moment]) > said)
        else:
            due = before + self.random.randint(1, brings - 1)
            processes.until(lambda: self.counter.creates() >= due)
        self.owners.kill(moment)


def owners_are_killed(stage: Stage, exports: Sequence[Path], *, kills: int) -> None:
    """Whenever an owner is killed, each run ends once, and the platform has everything once."""
    scheduled_runs = 3 * kills // 2 + 6
    with Trial("owners are killed") as trial:
        dates = schedule(stage, scheduled_runs)
        warehouse, counter = Warehouse(stage, exports), CreateCounter(stage.sandbox)
        with two_schedulers(stage) as owners:
            plan = KillPlan(trial.random, owners, warehouse, counter)
            for number in range(kills):
                plan.kill_once(number)
            trial.told["dates left at the last kill"] = _unfinished(stage, scheduled_runs) // len(JOBS)
            owners.processes.until(lambda: _unfinished(stage, scheduled_runs) == 0)
            assert owners.processes.stop() == [0] * SCHEDULERS, owners.processes.log
        trial.injected = owners.kills
        trial.planned = Counter(MOMENTS[number % len(MOMENTS)] for number in range(kills))
        trial.told["scheduled runs"] = _each_run_once(stage, dates)
        trial.told["restarted"] = _restarted(stage)
        trial.told["exports"] = len(warehouse.given)
        trial.told["runs"] = _books_balance(stage)
        _nothing_is_pending(stage)
        trial.judge(retail_truth.of(warehouse.given).holdings, stage.sandbox)


def _unfinished(stage: Stage, scheduled_runs: int) -> int:
    with project.load(stage.config).read_state() as tx:
        return scheduled_runs * len(JOBS) - sum(run.is_finished for run in tx.scheduled_runs.listed(limit=100_000))


def _each_run_once(stage: Stage, dates: Sequence[date]) -> int:
    """Each date of both jobs was done once, in its own run; returns their number."""
    with project.load(stage.config).read_state() as tx:
        scheduled_runs = tx.scheduled_runs.listed(limit=100_000)
        runs = {run.id: run for run in tx.runs.listed(limit=100_000)}
    asked = Counter((name, day) for name in JOBS for day in dates)
    assert Counter((run.job, run.business_date) for run in scheduled_runs) == asked
    assert {run.status for run in scheduled_runs} <= COMPLETED
    finished = Counter((run.job, run.business_date) for run in runs.values() if run.status in COMPLETED)
    assert finished == Counter((name, str(day)) for name, day in asked)
    assert {runs[run.run_id or 0].status for run in scheduled_runs} <= COMPLETED
    assert len({run.run_id for run in scheduled_runs}) == len(scheduled_runs)
    return len(scheduled_runs)


def _restarted(stage: Stage) -> int:
    with project.load(stage.config).read_state() as tx:
        return sum(run.attempts > 1 for run in tx.scheduled_runs.listed(limit=100_000))


def _books_balance(stage: Stage) -> int:
    """The tallies of all runs that were not killed balance; returns the number of runs."""
    runs: list[dict[str, Any]] = stage.run("runs", "--limit", "100000", "--json").document  # type: ignore[assignment]
    for run in runs:
        if run["status"] in COMPLETED:
            balance(run)
        else:
            assert run["status"] == "incomplete"
            assert run["messages"][-1] == UNRECORDED.as_json()
    return len(runs)


def _nothing_is_pending(stage: Stage) -> None:
    """No record is in doubt, waiting or rejected, and a sync sends nothing."""
    for status in ("rejected", "waiting", "in-doubt", "pending"):
        assert stage.run("records", "list", "--state", status, "--json").stdout.strip() == "[]", status
    before = stage.sandbox.requests()
    assert stage.sync()["requests"] == 0
    assert stage.sandbox.requests() == before
