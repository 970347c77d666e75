"""A file that comes late, on real servers: the run waits for it, or goes on without it, or fails, and says so."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.e2e.warehouse import CUSTOMERS, INVOICES, PRODUCTS, Site
from tests.waiting import eventually

from crossdock.reading.sources import expected_and_late_files
from crossdock.values.config_base_types import parse_duration


@pytest.fixture(autouse=True)
def _a_second_of_the_config_is_a_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what runs in this process: its pauses end soon, in the same order."""
    monkeypatch.setattr(expected_and_late_files, "parse_duration", lambda duration: parse_duration(duration) / 10)


def waits(site: Site, stream: str, wait: str) -> None:
    """Let *stream* wait as *wait* says."""
    site.edit("mode: append", f"mode: append\n        wait: {wait}", within=f"      {stream}:")


def nobody_logged_in(site: Site) -> bool:
    return not any(session.is_alive() for session in site.sftp.sessions)


def test_a_late_file_comes_while_the_run_waits(site: Site) -> None:
    """Customers are late: products go meanwhile, invoices wait with them; between the looks nobody is logged in."""
    waits(site, "customers", "{for: 10m, poll: 1s}")
    site.init()
    site.export("PROD_1.csv", PRODUCTS)
    site.export("INV_1.csv", INVOICES)
    meanwhile: list[list[str]] = []

    def send() -> None:
        eventually(lambda: len(site.sftp.logins) >= 4)  # customers, products, and customers again, twice
        eventually(lambda: nobody_logged_in(site))
        meanwhile.extend([site.names("product"), site.names("invoice")])
        site.export("CUST_1.csv", CUSTOMERS)

    sender = threading.Thread(target=send)
    sender.start()
    result = site.run("sync", "--wait", "--json")
    sender.join()
    assert result.code == 0, result.err
    assert meanwhile == [["wms:P1", "wms:P2"], []]
    assert result.err.count("out/CUST_*: no new file; waiting until") == 1
    assert result.json["streams"]["wms.customers"]["notes"] == []
    site.assert_everything_once()


def test_a_run_goes_on_without_its_file(site: Site) -> None:
    """With ``then: without`` all is well, and the terminal, the run's record and its page say what was missing."""
    waits(site, "invoices", "{for: 1s, poll: 1s, then: without}")
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    site.export("PROD_1.csv", PRODUCTS)
    result = site.run("sync", "--wait", "--json")
    assert result.code == 0, result.err
    (note,) = result.json["streams"]["wms.invoices"]["notes"]
    assert note.startswith("no new file out/INV_* until 2")
    assert note.endswith("; continued without it")
    assert f"wms.invoices: {note}" in result.err
    assert f"wms.invoices: {note}" in " ".join(site.run("show", "1").out.split())
    page = site.folder / "report.html"
    assert site.run("show", "1", "-o", str(page)).code == 0
    assert f"wms.invoices: {note}" in page.read_text()
    assert len(site.effects()) == 4


def test_a_run_fails_without_its_file(site: Site) -> None:
    """With ``then: fail`` the others have gone when the stream ends with exit 3, and nothing of it has entered."""
    waits(site, "invoices", "{for: 1s, poll: 1s}")
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    site.export("PROD_1.csv", PRODUCTS)
    result = site.run("sync", "--wait", "--json")
    assert result.code == 3
    assert "wms.invoices: out/INV_*: no new file arrived by 2" in result.err
    assert result.json["streams"]["wms.products"]["records"]["created"] == 2
    site.export("INV_1.csv", INVOICES)
    assert site.run("sync", "--wait").code == 0
    site.assert_everything_once()


def test_nobody_waits_unasked(site: Site) -> None:
    """A sync by hand and a plan wait for nothing and miss nothing, whatever the config says."""
    waits(site, "invoices", "{for: 24h}")
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    assert site.run("plan").code == 0
    assert site.sync().code == 0
    assert site.names("customer") == ["wms:C1", "wms:C2"]


@pytest.mark.nightly
def test_a_server_that_is_away_is_asked_again(site: Site) -> None:
    """Where a file is waited for, a server that is down at first does not end the wait, unlike for other streams."""
    waits(site, "customers", "{for: 10m, poll: 1s}")
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    site.sftp.faults.stall_login = True
    site.edit("settle_s: 0", "settle_s: 0\n    timeout_s: 0.3", within="host_key")

    def come_back() -> None:
        eventually(lambda: len(site.sftp.logins) >= 2)
        site.sftp.faults.stall_login = False

    mender = threading.Thread(target=come_back)
    mender.start()
    result = site.run("sync", "--wait", "--json")
    mender.join()
    assert result.code == 3
    assert "wms.products" in result.json["errors"]
    assert "wms.customers" not in result.json["errors"]
    assert site.names("customer") == ["wms:C1", "wms:C2"]


def test_a_run_that_waits_stops_when_asked(site: Site) -> None:
    """SIGTERM ends the longest pause at once, with exit 130, and what was late is read by the next run."""
    waits(site, "invoices", "{for: 24h, poll: 24h}")
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    site.export("PROD_1.csv", PRODUCTS)
    command = [*CROSSDOCK, "-C", str(site.config), "sync", "--wait", "--json"]
    shown = site.folder / "shown"
    with processes.running(command, os.environ, err=shown) as run:
        eventually(lambda: len(site.sftp.logins) >= 3)
        eventually(lambda: nobody_logged_in(site))
        run.terminate()
    assert run.exitcode == 130, shown.read_text()
    assert "stopped before wms.invoices" in shown.read_text()
    assert list(Path(site.folder / "state.db.spool").glob("*")) == []
    site.export("INV_1.csv", INVOICES)
    assert site.sync().code == 0
    site.assert_everything_once()


def test_a_wait_is_checked_with_the_config(site: Site) -> None:
    """Mistakes are told with their place: a time without quotes, and two waits for the same files."""
    waits(site, "invoices", "{until: 14:30}")
    result = site.run("sync")
    assert result.code == 2
    assert f"{site.place('until')}: connections.wms.streams.invoices.wait.until: is a number to base 60" in result.err
    site.edit("{until: 14:30}", '{until: "14:30"}')
    site.edit("out/PROD_*", "out/INV_*")
    result = site.run("sync")
    assert result.code == 2
    assert "streams.invoices.wait: products reads the same files and waits for them differently" in result.err
