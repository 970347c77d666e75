"""What ``crossdock schedule`` logs: sentences, or one JSON object per line with the run that it belongs to."""

from __future__ import annotations

import json
import os
import re
import signal
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.chaos.processes import CROSSDOCK
from tests.chaos.soon_asking import SOON_ASKING
from tests.e2e.processes import SchedulerProcesses
from tests.e2e.warehouse import CUSTOMERS, INVOICES, PERSON, PRODUCTS, Site

from crossdock.config.project import project

EVERY_DAY = "days: [mon, tue, wed, thu, fri, sat, sun]"
JOBS = "jobs:\n  nightly:\n    schedule: {{time_zone: UTC, {when}, {days}, business_date: same_day}}\n"
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def schedule(site: Site, when: str) -> None:
    with site.config.open("a") as file:
        file.write(JOBS.format(when=when, days=EVERY_DAY))


@pytest.fixture
def day(site: Site) -> str:
    """The business date of a run that was due; its invoices are late, and it continues without them."""
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    site.edit(
        "mode: append", "mode: append\n        wait: {for: 1s, poll: 1s, then: without}", within="      invoices:"
    )
    schedule(site, 'at: "00:00"')
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    site.export("PROD_1.csv", PRODUCTS)
    return yesterday


def lines(text: str) -> list[dict[str, Any]]:
    """Every line of *text* as an object with what each of them has."""
    found: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
    for line in found:
        assert INSTANT.fullmatch(line.pop("time"))
    return found


def test_each_line_names_its_run(site: Site, day: str) -> None:
    """From the first line of a run on, warnings included; stdout has the report alone."""
    result = site.run("schedule", "--once", day, "--log-format", "json", "--json")
    assert result.code == 0, result.err
    known = {"job": "nightly", "business_date": day, "run": 1}
    started, warning, ended = lines(result.err)
    assert started == {"level": "info", "message": f"nightly for {day}: started", **known}
    text = warning.pop("message")
    assert warning == {"level": "warning", **known}
    assert re.fullmatch(r"wms\.invoices: no new file out/INV_\* until .*; continued without it", text)
    seconds = ended.pop("seconds")
    assert 0 < seconds == pytest.approx(result.json[0]["seconds"], abs=0.001)
    text = f"nightly for {day}: done after {seconds:.1f} s"
    assert ended == {"level": "info", "message": text, **known, "status": "done"}
    again = site.run("schedule", "--once", day, "--log-format", "json")
    (again_logged,) = lines(again.err)
    del known["run"]
    assert again_logged == {"level": "info", "message": f"nightly for {day}: has already been run", **known}


def test_a_run_that_failed_is_an_error(site: Site, day: str) -> None:
    """With its run and reason; a run with rejected records is a warning. No personal data is shown."""
    site.export("INV_1.csv", INVOICES.replace("2;C2;P1;1;", "2;C2;P1;x;"))
    degraded = site.run("schedule", "--once", day, "--log-format", "json", "--json")
    assert degraded.code == 1
    assert [line["level"] for line in lines(degraded.err)] == ["info", "warning"]
    before = (datetime.fromisoformat(day) - timedelta(days=1)).date().isoformat()
    site.export("INV_2.csv", f"{INVOICES}9;C1\n")
    refused = site.run("schedule", "--once", before, "--log-format", "json")
    assert refused.code == 4
    ended = lines(refused.err)[-1]
    assert (ended["level"], ended["status"], ended["run"]) == ("error", "incomplete", 2)
    assert "INV_2.csv" in ended["message"]
    assert PERSON not in degraded.err + refused.err


def test_a_run_that_could_not_start_is_an_error(site: Site, day: str) -> None:
    """It has no run id, and the exit code is the same as without the option."""
    site.setenv("CROSSDOCK_API_KEY", None)
    failed = site.run("schedule", "--once", day, "--log-format", "json")
    (line,) = lines(failed.err)
    assert (line["level"], line["status"], "run" in line) == ("error", "failed", False)
    assert "CROSSDOCK_API_KEY" in line["message"]
    plain = site.run("schedule", "--once", day)
    assert plain.err.startswith("crossdock: ")
    assert plain.code == failed.code != 0


def test_without_the_option_warnings_are_sentences(site: Site, day: str) -> None:
    """A manual run writes its warnings to stderr, and nothing else."""
    result = site.run("schedule", "--once", day, "--json")
    assert result.code == 0
    (warning,) = result.err.splitlines()
    assert re.fullmatch(
        r"crossdock: warning: wms\.invoices: no new file out/INV_\* until .*; continued without it", warning
    )
    assert site.run("schedule", "--once", day).err == f"nightly for {day}: has already been run\n"


def test_a_run_before_the_retention_period_is_not_run(site: Site, day: str) -> None:
    """A run that retention has removed counts as done, and the reason is shown."""
    with closing(project.load(site.config).open_state()) as state, state.begin() as tx:
        tx.scheduled_runs.mark_unrecorded_runs_finished_until("nightly", datetime.now(UTC))
    result = site.run("schedule", "--once", day)
    assert (result.code, result.out) == (0, "")
    assert result.err == f"nightly for {day}: not run: older than the retention period\n"
    assert site.effects() == []


def served(site: Site, *options: str, anew: bool = False) -> str:
    """What a scheduler logs that does a run, reloads an invalid config, and ends."""
    site.init()
    site.fill()
    schedule(site, "every: 1s")
    command = [*(CROSSDOCK if anew else SOON_ASKING), "-C", str(site.config), "schedule", "--health", "0", *options]
    with SchedulerProcesses(command, site.folder / "log", anew=anew) as processes:
        processes.start()
        processes.until(lambda: ": done after" in processes.log)
        site.edit("jobs:", "jbos:")
        (pid,) = processes.pids
        os.kill(pid, signal.SIGHUP)
        processes.until(lambda: "SIGHUP: the config" in processes.log)
        assert processes.stop() == [0]
        return processes.log


@pytest.mark.nightly
def test_a_service_logs_objects(site: Site) -> None:
    """One object per line from start to end; only lines about a run have its members."""
    found = lines(served(site, "--log-format", "json", anew=True))
    serving, watching, started, done, *_ = found
    hangup, ending = [line for line in found if line["message"].startswith("SIG")]
    assert serving["message"].startswith("serving http://127.0.0.1:")
    assert watching == {"level": "info", "message": "watching nightly"}
    today = started["business_date"]
    assert started == {
        "level": "info",
        "message": f"nightly for {today}: started",
        "job": "nightly",
        "business_date": today,
        "run": 1,
    }
    assert (done["run"], done["status"], done["level"]) == (1, "done", "info")
    assert hangup["message"].startswith("SIGHUP: the config was not reloaded: ")
    assert (hangup["level"], ending["level"]) == ("error", "info")
    assert hangup.keys() == ending.keys() == {"level", "message"}
    assert ending["message"] == "SIGTERM: finishing requests in flight; repeat to stop at once"


def test_a_service_logs_sentences(site: Site) -> None:
    """One sentence per line."""
    serving, watching, started, done, *rest = served(site).splitlines()
    assert serving.startswith("crossdock: serving http://127.0.0.1:")
    assert watching == "crossdock: watching nightly"
    found = re.fullmatch(r"crossdock: nightly for (\d{4}-\d\d-\d\d): started", started)
    assert found
    assert re.fullmatch(rf"crossdock: nightly for {found[1]}: done after \d+(\.\d s| min .*)", done)
    assert any(line.startswith("crossdock: SIGHUP: the config was not reloaded: ") for line in rest)
    ending = rest.index("SIGTERM: finishing requests in flight; repeat to stop at once")
    assert rest[ending - 1] == ""
