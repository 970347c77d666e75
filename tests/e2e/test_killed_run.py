"""A run whose process was killed has ended at once for everyone who asks, whoever uses the state next."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pytest
from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.e2e.warehouse import CUSTOMERS, FORWARD, Fate, Front, Seen, Site
from tests.unit.console.visitor import visiting
from tests.waiting import eventually

from crossdock.config.project import project
from crossdock.state import StateUrl
from crossdock.state.tables.run_history import UNRECORDED

JOBS = 'jobs: {nightly: {streams: [wms.customers], schedule: {time_zone: UTC, at: "02:30"}}}\n'


@pytest.fixture
def killable(site: Site, front: Front, state_url: StateUrl) -> Site:
    """A warehouse with two customers and a job, on one of the databases."""
    assert site.base_url == front.base_url
    if state_url.drivername != "sqlite":
        site.edit("sqlite:///state.db", state_url.render_as_string(hide_password=False))
    site.config.write_text(site.config.read_text() + JOBS)
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    return site


@contextmanager
def no_answer(front: Front) -> Iterator[None]:
    """Let the platform answer no write until the end of the block."""
    released = threading.Event()

    def held(seen: Seen) -> Fate:
        if seen.method == "POST":
            released.wait()
        return FORWARD

    front.fate = held
    try:
        yield
    finally:
        released.set()
        front.fate = lambda _: FORWARD


def kill(site: Site, front: Front, folder: Path, command: Sequence[str]) -> None:
    """Kill *command* while its first write waits for an answer."""
    log = folder / "log"
    with no_answer(front):
        running = processes.start((*CROSSDOCK, "-C", str(site.config), *command), os.environ, log, log)
        try:
            eventually(lambda: any(seen.method == "POST" for seen in front.seen) or running.exitcode is not None)
            (run,) = site.run("runs", "--json").json
            assert run["status"] == "running"
        finally:
            running.kill()
            running.join()
    assert running.exitcode == -signal.SIGKILL, log.read_text()


def assert_ended(site: Site) -> None:
    """Commands and the console say that the run has ended without a result, and nobody can stop it."""
    (run,) = site.run("runs", "--json").json
    assert (run["status"], run["messages"][-1]) == ("incomplete", UNRECORDED.as_json())
    assert "incomplete" in site.run("show").out
    with project.load(site.config).read_state() as tx:
        assert tx.runs.listed(limit=9, status="running") == []
        assert len(tx.runs.listed(limit=9, status="incomplete")) == 1
        day = date.fromisoformat(run["business_date"])
        assert [each.status for each in tx.runs.counts_by_date(day, day)] == ["incomplete"]
    assert "no run in progress" in site.run("stop").err
    with visiting(site.config) as visitor:
        assert UNRECORDED.message in visitor.html(f"/t/{site.tenant}/runs/{run['run']}")
        assert "running" not in {
            cell for row in visitor.page(f"/t/{site.tenant}").under("job", "status") for cell in row
        }


def test_a_killed_sync_has_ended(killable: Site, front: Front, tmp_path: Path) -> None:
    """At once, and while another command uses the state, which a refusal does not call the killed run."""
    kill(killable, front, tmp_path, ["sync", "wms.customers"])
    assert_ended(killable)
    with project.load(killable.config).open_state_exclusively():
        assert_ended(killable)
        refused = killable.run("sync").err
    assert "another run is using this state" in refused
    assert "in progress since" not in refused
    assert killable.sync().code == 0
    assert sorted(killable.names("customer")) == ["wms:C1", "wms:C2"]


def test_a_killed_job_has_ended(killable: Site, front: Front, tmp_path: Path) -> None:
    """Its scheduled run is incomplete until it is run again, also while another command uses the state."""
    kill(killable, front, tmp_path, ["schedule", "--once", "latest"])
    with project.load(killable.config).open_state_exclusively():
        assert_ended(killable)
        (job,) = killable.run("jobs", "list", "--json").json["nights"]
        assert (job["status"], job["note"]) == ("incomplete", UNRECORDED.message)
        with visiting(killable.config) as visitor:
            (row,) = visitor.page(f"/t/{killable.tenant}").under("job", "status")
            assert row[:2] == ["nightly", "failed"]
    assert killable.run("schedule", "--once", "latest").code == 0
    (job,) = killable.run("jobs", "list", "--json").json["nights"]
    assert (job["status"], job["attempts"]) == ("done", 2)
