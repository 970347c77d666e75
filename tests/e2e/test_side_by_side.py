"""A scheduler that runs several jobs at once: a small one does not wait for a large one, and nothing is done twice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.e2e.processes import Crew
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


def bins(folder: Path, night: int, codes: range) -> None:
    part = folder / "BINS.part"
    part.write_text("CODE;NAME\n" + "".join(f"B{code};Bin {code}\n" for code in codes))
    part.rename(folder / f"BINS_{night}.csv")


def scheduling(site: Site) -> Crew:
    command = [sys.executable, "-m", "crossdock", "-C", str(site.config), "schedule"]
    return Crew(command, site.folder / "log")


def begun(crew: Crew, job: str) -> int:
    return crew.said(f"crossdock: {job} for ") - ended(crew, job)


def ended(crew: Crew, job: str) -> int:
    lines = crew.log.splitlines()
    return sum(line.startswith(f"crossdock: {job} for ") and ": done after" in line for line in lines)


def bins_there(site: Site) -> int:
    return sum(name.startswith("depot:") for name in site.names("product"))


def test_a_small_job_goes_on_while_a_large_one_waits(site: Site, depot: Path) -> None:
    """One job waits for its file; night after night of the other comes and goes. SIGTERM ends both in order."""
    bins(depot, 1, range(3))
    with scheduling(site) as crew:
        crew.start()
        crew.until(lambda: begun(crew, "large") == 1 and len(site.effects("customer")) == 2)
        crew.until(lambda: bins_there(site) == 3)
        scheduled_runs = ended(crew, "small")
        bins(depot, 2, range(3, 8))
        crew.until(lambda: bins_there(site) == 8)
        crew.until(lambda: ended(crew, "small") > scheduled_runs)
        assert ended(crew, "large") == 0
        site.export("INV_1.csv", INVOICES)
        crew.until(lambda: ended(crew, "large") >= 1)
        assert crew.stop() == [0]
    assert len(site.effects("product")) == 2 + 8
    assert len(site.effects("invoice")) == 3
    nights_of = site.run("jobs", "list", "--limit", "100", "--json").json["nights"]
    assert {night["status"] for night in nights_of} <= {"done", "running"}  # what was stopped goes on with the next one
    assert site.run("sync").code == 0
    assert len(site.effects()) == 2 + 10 + 3


def test_jobs_that_were_killed_side_by_side_are_followed(site: Site, depot: Path) -> None:
    """Both are in the middle when the process is killed: the next one begins both again, and nothing is there twice."""
    bins(depot, 1, range(200))
    site.export("INV_1.csv", INVOICES)
    with scheduling(site) as crew:
        crew.start()
        crew.until(lambda: bins_there(site) > 0)
        crew.kill(*crew.pids)
        crew.start()
        crew.until(lambda: ended(crew, "large") >= 1 and ended(crew, "small") >= 1)
        assert crew.stop() == [0]
    assert site.run("sync").code == 0
    assert sorted(site.names("product")) == sorted({*site.names("product")})
    assert len(site.effects("product")) == 2 + 200
    assert len(site.effects("invoice")) == 3
