"""A scheduler that runs several jobs at once: a small one does not wait for a large one, and nothing is done twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.e2e.warehouse import CUSTOMERS, INVOICES, PRODUCTS, Site
from tests.patience import eventually

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


@contextmanager
def scheduling(site: Site) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "crossdock", "-C", str(site.config), "schedule"]
    with (site.folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stderr=log, env=os.environ)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def begun(site: Site, job: str) -> int:
    return (site.folder / "log").read_text().count(f"crossdock: {job} for ") - ended(site, job)


def ended(site: Site, job: str) -> int:
    lines = (site.folder / "log").read_text().splitlines()
    return sum(line.startswith(f"crossdock: {job} for ") and ": done after" in line for line in lines)


def test_a_small_job_goes_on_while_a_large_one_waits(site: Site, depot: Path) -> None:
    """One job waits for its file; night after night of the other comes and goes. SIGTERM ends both in order."""
    bins(depot, 1, range(3))
    with scheduling(site) as process:
        eventually(lambda: begun(site, "large") == 1 and len(site.effects("customer")) == 2)
        eventually(lambda: sum(name.startswith("depot:") for name in site.names("product")) == 3)
        nights = ended(site, "small")
        bins(depot, 2, range(3, 8))
        eventually(lambda: sum(name.startswith("depot:") for name in site.names("product")) == 8)
        eventually(lambda: ended(site, "small") > nights)
        assert ended(site, "large") == 0
        site.export("INV_1.csv", INVOICES)
        eventually(lambda: ended(site, "large") >= 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
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
    with scheduling(site) as process:
        eventually(lambda: any(name.startswith("depot:") for name in site.names("product")))
        process.kill()
        process.wait()
    with scheduling(site) as process:
        eventually(lambda: ended(site, "large") >= 1 and ended(site, "small") >= 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    assert site.run("sync").code == 0
    assert sorted(site.names("product")) == sorted({*site.names("product")})
    assert len(site.effects("product")) == 2 + 200
    assert len(site.effects("invoice")) == 3
