"""Files that are missing, short, swapped or unchanged: people are told the same night, and the run is not green."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.e2e.warehouse import CUSTOMERS, Site
from tests.integration.notifications.receivers import Receiver
from tests.integration.scheduler.scheduled_runs_race import Inline
from tests.servers import served

from crossdock.config.notify_config import NotifyConfig
from crossdock.config.project import project
from crossdock.runs import sync_and_replay
from crossdock.runs.run_report import Report
from crossdock.services.notifications.mail_and_webhook_notifier import Notifier
from crossdock.services.observability.health_and_metrics import Metrics
from crossdock.services.scheduler.monitored_scheduler import MonitoredScheduler
from crossdock.services.scheduler.scheduler import WorkerPool
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import SilentProgress

NIGHT = timedelta(hours=24)
KINDS = ["failed", "degraded", "recovered"]


def rows(number: int, *, swapped: bool = False, price: str = "1.50") -> str:
    lines = (f"P{each};{price};{each}.25" if swapped else f"P{each};{each}.25;{price}" for each in range(number))
    return "SKU;NAME;PRICE\n" + "\n".join(lines) + "\n"


class Nights:
    """A service that runs a job each night, on a manual clock, and the messages that people get."""

    def __init__(self, site: Site, receiver: Receiver) -> None:
        self.site, self._receiver = site, receiver
        self.clock = ManualClock(datetime.now(UTC).replace(hour=1, minute=0, second=0, microsecond=0))
        self.notifier = Notifier(NotifyConfig.model_validate({"webhook": {"url": receiver.url}}), self.clock)
        loaded = project.load(site.config)
        self.metrics = Metrics(self.clock)
        self.service = MonitoredScheduler(
            loaded,
            self.clock,
            threading.Event(),
            self.metrics,
            notifier=self.notifier,
            trace=lambda _: None,
            workers=WorkerPool(Inline()),
        )
        self.service.report_ended_and_start_due()  # the job counts from now

    def sync(self) -> Report:
        """A manual sync."""
        loaded = project.load(self.site.config)
        return sync_and_replay.sync(
            loaded, [], clock=self.clock, progress=SilentProgress(), interrupt=threading.Event()
        )

    def night(self) -> dict[str, Any]:
        """The next run, as ``show`` prints it, with the ``notices`` that were sent."""
        sent = len(self._receiver.posts)
        self.clock.advance(NIGHT.total_seconds())
        self.service.report_ended_and_start_due()
        newest = self.site.run("runs", "--limit", "1", "--json").json[0]["run"]
        shown: dict[str, Any] = self.site.run("show", str(newest), "--json").json
        return shown | {"notices": [json.loads(post.body) for post in self._receiver.posts[sent:]]}


@pytest.fixture
def nights(site: Site) -> Iterator[Nights]:
    """Nights of a stream of snapshots and one of customers, which are appended."""
    site.edit("mode: append", "mode: snapshot", within="products:")
    site.edit("in_flight: 4", "in_flight: 4\n  max_clock_skew_s: null")
    schedule = "{time_zone: UTC, at: '02:00', catch_up: latest}"
    jobs = f"jobs:\n  nightly: {{streams: [wms.products, wms.customers], schedule: {schedule}}}\n"
    site.config.write_text(site.config.read_text() + jobs)
    site.init()
    with served(Receiver()) as receiver:
        made = Nights(site, receiver)
        with closing(made.service):
            yield made


def inputs(shown: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    stream = shown["streams"]["wms.products"]
    return stream["input"], stream["files"]


def texts(shown: dict[str, Any]) -> str:
    return "\n".join(notice["text"] for notice in shown["notices"])


def test_a_missing_snapshot_is_reported_the_same_night(nights: Nights) -> None:
    """Without a new file the run is incomplete and a notice names the newest file; other streams go on."""
    nights.site.export("PROD_1.csv", rows(40))
    first = nights.night()
    assert (first["status"], first["notices"], inputs(first)) == (
        "done", [], ("new", [{"name": "PROD_1.csv", "rows": 40}])
    )  # fmt: skip
    nights.site.export("CUST_1.csv", CUSTOMERS)
    second = nights.night()
    assert (second["status"], inputs(second)) == ("incomplete", ("none", []))
    assert "out/PROD_*: no new file since the job's last run (" in second["errors"]["wms.products"]
    assert "newest: PROD_1.csv of 20" in second["errors"]["wms.products"]
    assert second["streams"]["wms.customers"]["records"]["created"] == 2
    assert "Job nightly did not finish" in texts(second)
    assert "out/PROD_*: no new file since" in texts(second)
    third = nights.night()
    assert third["status"] == "incomplete"
    nights.site.export("PROD_2.csv", rows(40))
    fourth = nights.night()
    assert (fourth["status"], inputs(fourth)[0]) == ("done", "unchanged")
    assert "recovered" in texts(fourth)


def test_an_unchanged_export_is_no_missing_one(nights: Nights) -> None:
    """The same content under a new modification time arrived; the very same file did not, also a night later."""
    path = nights.site.export("PROD_1.csv", rows(40))
    assert nights.night()["status"] == "done"
    newer = path.stat().st_mtime + 60
    os.utime(path, (newer, newer))
    again = nights.night()
    assert (again["status"], inputs(again)) == ("done", ("unchanged", [{"name": "PROD_1.csv", "rows": None}]))
    assert nights.night()["status"] == "incomplete"
    shown = nights.site.run("show", "2").out
    assert "wms.products: file unchanged: PROD_1.csv has the content that was read before" in shown
    shown = nights.site.run("show", "3").out
    assert "wms.products: no new file (newest: PROD_1.csv of 20" in shown


@pytest.mark.nightly
def test_a_file_that_a_manual_sync_read_counts(nights: Nights) -> None:
    """What came since the job's last run is not missing, whoever read it; a manual sync itself misses nothing."""
    nights.site.export("PROD_1.csv", rows(40))
    assert nights.night()["status"] == "done"
    assert nights.sync().exit_code == 0
    nights.clock.advance(60)
    nights.site.export("PROD_2.csv", rows(41))
    assert nights.sync().exit_code == 0
    last = nights.night()
    assert (last["status"], inputs(last)[0]) == ("done", "none")


@pytest.mark.nightly
def test_a_short_snapshot_is_reported_the_same_night(nights: Nights) -> None:
    """Records are not removed, all is done, and a notice gives the numbers of rows."""
    for number, count in enumerate((100, 101, 99)):
        nights.site.export(f"PROD_{number}.csv", rows(count))
        assert nights.night()["notices"] == []
    nights.site.export("PROD_9.csv", rows(60))
    short = nights.night()
    assert short["status"] == "done"
    (notice,) = short["notices"]
    assert notice["data"]["kinds"] == ["degraded"]
    assert "completed with warnings" in notice["text"]
    assert "wms.products: the snapshot has 60 rows; the previous ones had 99, 101, 100" in notice["text"]
    assert any("has 60 rows" in note for note in short["streams"]["wms.products"]["notes"])


@pytest.mark.nightly
def test_a_snapshot_with_other_keys_is_reported_the_same_night(nights: Nights) -> None:
    """A changed column of the key makes new records of all; the next night with these keys is a usual one."""
    nights.site.export("PROD_1.csv", rows(40))
    assert nights.night()["notices"] == []
    nights.site.export("PROD_2.csv", rows(40).replace("\nP", "\nQ"))
    text = "the snapshot lists 40 new records, and 40 of 40 known ones are gone"
    assert text in nights.site.run("plan", "wms.products").err
    (notice,) = nights.night()["notices"]
    assert notice["data"]["kinds"] == ["degraded"]
    assert text in notice["text"]
    nights.site.export("PROD_3.csv", rows(41).replace("\nP", "\nQ"))
    assert text not in texts(nights.night())


@pytest.mark.nightly
def test_mass_updates_are_reported_the_same_night(nights: Nights) -> None:
    """Swapped columns update nothing; the notice says how many updates need an approval."""
    nights.site.export("PROD_1.csv", rows(150))
    assert nights.night()["status"] == "done"
    nights.site.export("PROD_2.csv", rows(150, swapped=True))
    swapped = nights.night()
    assert swapped["status"] == "incomplete"
    assert "150 of 150 known records would be updated" in texts(swapped)
    assert {effect["operation"] for effect in nights.site.effects("product")} == {"create"}


def test_the_last_success_does_not_move(nights: Nights) -> None:
    """The metric keeps the time of the last complete run."""
    nights.site.export("PROD_1.csv", rows(4))
    nights.night()
    before = last_success(nights)
    nights.night()
    assert last_success(nights) == before
    nights.site.export("PROD_2.csv", rows(5))
    nights.night()
    assert last_success(nights) == before + 2 * NIGHT.total_seconds()


def last_success(nights: Nights) -> float:
    name = "crossdock_last_success_timestamp_seconds"
    (line,) = (
        line for line in nights.metrics.prometheus_exposition()[0].decode().splitlines() if line.startswith(f"{name}{{")
    )
    return float(line.split()[-1])


def test_a_manual_sync_misses_what_the_config_requires(site: Site) -> None:
    """With ``required: true`` or ``expect`` it ends with exit 3, as the plan does, and delivers everything else."""
    site.init()
    site.fill()
    assert site.sync().code == 0
    assert site.sync().code == 0, "nothing is required by default"
    site.edit("mode: append", "mode: append\n        required: true", within="customers:")
    keys = 'expect: {every: 1d}\n        order: {name: "PROD_{number}.csv"}'
    site.edit("mode: append", f"mode: append\n        {keys}", within="products:")
    site.export("INV_2.csv", "INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY\n9;C1;P1;1;1.50;EUR\n")
    planned, synced = site.run("plan"), site.sync()
    for result in (planned, synced):
        assert result.code == 3
        assert "wms.customers: out/CUST_*: no new file; newest: CUST_1.csv of 20" in result.err
        assert "wms.products" not in result.err, "its file is of today"
    assert synced.records("invoices") == {"read": 1, "created": 1}
    old = (datetime.now(UTC) - timedelta(days=2)).timestamp()
    os.utime(site.export("PROD_2.csv", "SKU;NAME;PRICE\nP9;Nut;1\n"), (old, old))
    assert "wms.products" not in site.sync().err, "it has just arrived"
    site.edit("every: 1d", "every: 1m")
    assert "wms.products: out/PROD_*: no new file since 20" in site.sync().err


def test_expectations_are_checked_with_the_config(site: Site) -> None:
    """A time without quotes, an unknown interval, and two ways to say it are told with their place."""
    site.edit("mode: append", "mode: append\n        expect: {by: 14:30, every: 1w}", within="products:")
    result = site.run("sync")
    assert result.code == 2
    assert "connections.wms.streams.products.expect.by: is a number to base 60 in YAML: quote it" in result.err
    site.edit("{by: 14:30, every: 1w}", '{by: "14:30", every: 1w}')
    result = site.run("sync")
    assert "'1w' is not an interval such as 6h, 1d or 7d" in result.err
    site.edit('expect: {by: "14:30", every: 1w}', 'required: false\n        expect: {by: "05:00"}')
    result = site.run("sync")
    assert result.code == 2
    assert "give either required or expect" in result.err


def test_an_unchanged_export_ends_the_wait(nights: Nights) -> None:
    """A run that waits for a snapshot goes on when it is exported again; without it, it fails once, after the wait."""
    nights.site.edit("mode: snapshot", "mode: snapshot\n        wait: {for: 1h}")
    nights.service.reload_when_idle(project.load(nights.site.config), nights.notifier)
    path = nights.site.export("PROD_1.csv", rows(4))
    assert nights.night()["status"] == "done"
    newer = path.stat().st_mtime + 60
    os.utime(path, (newer, newer))
    again = nights.night()
    assert (again["status"], inputs(again)[0]) == ("done", "unchanged")
    late = nights.night()
    assert late["status"] == "incomplete"
    assert late["errors"]["wms.products"].startswith("out/PROD_*: no new file arrived by ")


def test_a_stream_that_may_go_without_its_file_requires_none(nights: Nights) -> None:
    """``wait: {then: without}`` keeps its meaning for a snapshot in a job."""
    nights.site.edit("mode: snapshot", "mode: snapshot\n        wait: {for: 1m, then: without}")
    nights.service.reload_when_idle(project.load(nights.site.config), nights.notifier)
    nights.site.export("PROD_1.csv", rows(4))
    assert nights.night()["status"] == "done"
    assert nights.night()["status"] == "done"
