"""Two real schedulers on one state, and the one that works is killed again and again.

The short form is in `tests.e2e.test_killed_owners`, the long one in `tests.long.test_scheduled_runs`.
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
from tests.e2e.processes import Crew
from tests.e2e.project_folder import SandboxProcess, Stage, balance

from crossdock.project import project
from crossdock.state.db import schema
from crossdock.state.tables.run_history import UNRECORDED

WITHIN_S = 180.0  # who was held up for a second while it took over has no lock, and is followed when its lease is over
LONG_AGO = 1_300_000_000  # a file written just now would be watched for a while before it is read
JOBS = {"masters": ["shop.customers", "shop.products"], "sales": ["shop.invoices"]}  # the second after the first
SCHEDULERS = 2
MOMENTS = ("in a load", "in a load", "at a begin", "at an end")
WORDS = {"at a begin": ": started", "at an end": ": done after"}


def schedule(stage: Stage, scheduled_runs: int) -> list[date]:
    """Let two jobs be due for so many business dates that all are over; those dates.

    The next one is due hours from now, so that nights follow one another and none is added meanwhile.
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
            tx.scheduled_runs.counted_since(name, first - timedelta(hours=1))
    return [(first + timedelta(days=number)).date() for number in range(scheduled_runs)]


class Warehouse:
    """The retail exports, given out one by one.

    Attributes:
        given: Those that are there.
        creates: What it takes to bring all that are there to the platform.
    """

    def __init__(self, stage: Stage, exports: Sequence[Path]) -> None:
        self._drop, self._left = stage.drop, list(exports)
        self.given: list[Path] = []
        self.creates = 0
        self._keys: set[tuple[str, str]] = set()

    def give(self) -> int:
        """Put the next export into the warehouse, whole at once; how many creates it brings."""
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


class Witness:
    """Counts what the platform says was created."""

    def __init__(self, sandbox: SandboxProcess) -> None:
        self._sandbox, self._seen, self._creates = sandbox, 0, 0

    def creates(self) -> int:
        for effect in self._sandbox.effects(after=self._seen):
            self._seen = int(effect["seq"])
            self._creates += effect["operation"] == "create"
        return self._creates


class Owners:
    """A crew of two on one state; who is killed is started again at once, as systemd would.

    Attributes:
        kills: By the moment they struck at.
    """

    def __init__(self, crew: Crew, engine: Engine) -> None:
        self.crew, self._engine = crew, engine
        self.kills: Counter[str] = Counter()

    def kill(self, moment: str) -> None:
        """Kill who holds the run lease, or held it last; where that one was killed before, who takes it next."""
        self.crew.until(lambda: self._owner() in self.crew.pids)
        self.crew.kill(self._owner())
        self.kills[moment] += 1
        self.crew.start()

    def _owner(self) -> int:
        with self._engine.connect() as connection:
            owner: str = connection.execute(select(schema.leases.c.owner)).scalar_one()
        return int(owner.rpartition(":")[2] or 0)


@contextmanager
def at_work(stage: Stage) -> Iterator[Owners]:
    engine = create_engine(project.load(stage.config).state_url)
    log = stage.folder / "schedule.log"
    try:
        command, environment = stage.command("schedule"), stage.environment()
        with Crew(command, log, environment=environment, within_s=WITHIN_S) as crew:
            for _ in range(SCHEDULERS):
                crew.start()
            yield Owners(crew, engine)
    finally:
        engine.dispose()


@dataclass(frozen=True, slots=True)
class Plot:
    """Where an owner is killed: somewhere in the work that an export brings, or where a night begins or ends."""

    random: Random
    owners: Owners
    warehouse: Warehouse
    witness: Witness

    def strike(self, number: int) -> None:
        """Give an export when those before it are through, and kill in the middle of it."""
        crew = self.owners.crew
        crew.until(lambda: self.witness.creates() >= self.warehouse.creates)
        moment = MOMENTS[number % len(MOMENTS)]
        before, said = self.warehouse.creates, crew.said(WORDS.get(moment, ""))
        brings = self.warehouse.give()
        if moment in WORDS:
            crew.until(lambda: crew.said(WORDS[moment]) > said)
        else:
            due = before + self.random.randint(1, brings - 1)
            crew.until(lambda: self.witness.creates() >= due)
        self.owners.kill(moment)


def owners_are_killed(stage: Stage, exports: Sequence[Path], *, kills: int) -> None:
    """Whoever owns a night when it is killed, each night ends once, and the platform has everything once."""
    scheduled_runs = 3 * kills // 2 + 6
    with Trial("owners are killed") as trial:
        dates = schedule(stage, scheduled_runs)
        warehouse, witness = Warehouse(stage, exports), Witness(stage.sandbox)
        with at_work(stage) as owners:
            plot = Plot(trial.random, owners, warehouse, witness)
            for number in range(kills):
                plot.strike(number)
            trial.told["dates left at the last kill"] = _open_nights(stage, scheduled_runs) // len(JOBS)
            owners.crew.until(lambda: _open_nights(stage, scheduled_runs) == 0)
            assert owners.crew.stop() == [0] * SCHEDULERS, owners.crew.log
        trial.injected = owners.kills
        trial.planned = Counter(MOMENTS[number % len(MOMENTS)] for number in range(kills))
        trial.told["nights"] = _each_night_once(stage, dates)
        trial.told["begun again"] = _begun_again(stage)
        trial.told["exports"] = len(warehouse.given)
        trial.told["runs"] = _books_balance(stage)
        _nothing_is_left(stage)
        trial.judge(retail_truth.of(warehouse.given).holdings, stage.sandbox)


def _open_nights(stage: Stage, scheduled_runs: int) -> int:
    with project.load(stage.config).look() as tx:
        return scheduled_runs * len(JOBS) - sum(night.finished for night in tx.scheduled_runs.listed(limit=100_000))


def _each_night_once(stage: Stage, dates: Sequence[date]) -> int:
    """Every date of both jobs ended well once, in a run of its own; how many that are."""
    with project.load(stage.config).look() as tx:
        scheduled_runs = tx.scheduled_runs.listed(limit=100_000)
        runs = {run.id: run for run in tx.runs.listed(limit=100_000)}
    asked = Counter((name, day) for name in JOBS for day in dates)
    assert Counter((night.job, night.business_date) for night in scheduled_runs) == asked
    assert {night.status for night in scheduled_runs} == {"done"}
    finished = Counter((run.job, run.business_date) for run in runs.values() if run.status == "done")
    assert finished == Counter((name, str(day)) for name, day in asked)
    assert {runs[night.run_id or 0].status for night in scheduled_runs} == {"done"}
    assert len({night.run_id for night in scheduled_runs}) == len(scheduled_runs)
    return len(scheduled_runs)


def _begun_again(stage: Stage) -> int:
    with project.load(stage.config).look() as tx:
        return sum(night.attempts > 1 for night in tx.scheduled_runs.listed(limit=100_000))


def _books_balance(stage: Stage) -> int:
    """Both accounts of every run that was not killed; how many runs there were."""
    runs: list[dict[str, Any]] = stage.run("runs", "--limit", "100000", "--json").document  # type: ignore[assignment]
    for run in runs:
        if run["status"] == "done":
            balance(run)
        else:
            assert (run["status"], run["error"]) == ("incomplete", UNRECORDED)
    return len(runs)


def _nothing_is_left(stage: Stage) -> None:
    """Nothing in doubt, waiting or refused, and a sync of everything finds nothing to do."""
    for status in ("rejected", "waiting", "in-doubt"):
        assert stage.run("records", "list", "--state", status, "--json").stdout.strip() == "[]", status
    before = stage.sandbox.requests()
    assert stage.sync()["requests"] == 0
    assert stage.sandbox.requests() == before
