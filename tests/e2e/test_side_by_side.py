"""A scheduler that runs several jobs at once: a small one does not wait for a large one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.soon_asking import SOON_ASKING
from tests.e2e.processes import SchedulerProcesses
from tests.e2e.warehouse import CUSTOMERS, INVOICES, PRODUCTS, Site

DEPOT = """\
  depot:
    kind: folder_warehouse
    path: depot
    settle_s: 0
    streams:
      bins:
        mode: append
        files: "BINS_*"
        format: {kind: delimited, delimiter: ";"}
        key: [CODE]
        resource: product
        map: {sku: CODE, name: NAME}
jobs:
  large: {streams: [wms], schedule: {time_zone: UTC, every: 2s, catch_up: latest}}
  small: {streams: [depot], schedule: {time_zone: UTC, every: 2s, catch_up: latest}}
"""


@pytest.fixture
def depot(site: Site) -> Path:
    """A second source; the first one waits for its invoices."""
    folder = site.folder / "depot"
    folder.mkdir()
    site.edit("mode: append", "mode: append\n        wait: {for: 1h, poll: 1s, then: fail}", within="      invoices:")
    with site.config.open("a") as file:
        file.write(DEPOT)
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    site.export("PROD_1.csv", PRODUCTS)
    return folder


def bins(folder: Path, number: int, codes: range) -> None:
    part = folder / "BINS.part"
    part.write_text("CODE;NAME\n" + "".join(f"B{code};Bin {code}\n" for code in codes))
    part.rename(folder / f"BINS_{number}.csv")


def scheduling(site: Site) -> SchedulerProcesses:
    command = [*SOON_ASKING, "-C", str(site.config), "schedule"]
    return SchedulerProcesses(command, site.folder / "log")


def begun(processes: SchedulerProcesses, job: str) -> int:
    return processes.said(f"crossdock: {job} for ") - ended(processes, job)


def ended(processes: SchedulerProcesses, job: str) -> int:
    lines = processes.log.splitlines()
    return sum(line.startswith(f"crossdock: {job} for ") and ": done after" in line for line in lines)


def bins_there(site: Site) -> int:
    return sum(name.startswith("depot:") for name in site.names("product"))


@pytest.mark.nightly
def test_a_small_job_runs_while_a_large_one_waits(site: Site, depot: Path) -> None:
    """One job waits for its file while the other is run again and again. SIGTERM ends both normally."""
    bins(depot, 1, range(3))
    with scheduling(site) as processes:
        processes.start()
        processes.until(lambda: begun(processes, "large") == 1 and len(site.effects("customer")) == 2)
        processes.until(lambda: bins_there(site) == 3)
        scheduled_runs = ended(processes, "small")
        bins(depot, 2, range(3, 8))
        processes.until(lambda: bins_there(site) == 8)
        processes.until(lambda: ended(processes, "small") > scheduled_runs)
        assert ended(processes, "large") == 0
        site.export("INV_1.csv", INVOICES)
        processes.until(lambda: ended(processes, "large") >= 1)
        assert processes.stop() == [0]
    assert len(site.effects("product")) == 2 + 8
    assert len(site.effects("invoice")) == 3
    scheduled_runs = site.run("jobs", "list", "--limit", "100", "--json").json["nights"]
    assert {run["status"] for run in scheduled_runs} <= {
        "done",
        "running",
    }  # what was stopped is resumed by the next process
    assert site.run("sync").code == 0
    assert len(site.effects()) == 2 + 10 + 3


@pytest.mark.nightly
def test_jobs_that_were_killed_together_are_started_again(site: Site, depot: Path) -> None:
    """Both are running when the process is killed: the next one starts both again, and nothing is delivered twice."""
    bins(depot, 1, range(200))
    site.export("INV_1.csv", INVOICES)
    with scheduling(site) as processes:
        processes.start()
        processes.until(lambda: bins_there(site) > 0)
        processes.kill(*processes.pids)
        processes.start()
        processes.until(lambda: ended(processes, "large") >= 1 and ended(processes, "small") >= 1)
        assert processes.stop() == [0]
    assert site.run("sync").code == 0
    assert sorted(site.names("product")) == sorted({*site.names("product")})
    assert len(site.effects("product")) == 2 + 200
    assert len(site.effects("invoice")) == 3
