"""What ``crossdock schedule`` logs: sentences as ever, or one JSON object a line, with the run that it is about."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.e2e.warehouse import CUSTOMERS, INVOICES, PERSON, PRODUCTS, Site
from tests.waiting import eventually

from crossdock.project import project

EVERY_DAY = "days: [mon, tue, wed, thu, fri, sat, sun]"
JOBS = "jobs:\n  nightly:\n    schedule: {{time_zone: UTC, {when}, {days}, business_date: same_day}}\n"
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def schedule(site: Site, when: str) -> None:
    with site.config.open("a") as file:
        file.write(JOBS.format(when=when, days=EVERY_DAY))


@pytest.fixture
def day(site: Site) -> str:
    """The business date of a night that was due; its invoices are late, and it goes on without them."""
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


def test_each_line_tells_which_run_it_is_about(site: Site, day: str) -> None:
    """From the first line of a night on; what the run warns of is among them, and what is shown is no log."""
    result = site.run("schedule", "--once", day, "--log-format", "json", "--json")
    assert result.code == 0, result.err
    known = {"job": "nightly", "business_date": day, "run": 1}
    begins, warning, ended = lines(result.err)
    assert begins == {"level": "info", "message": f"nightly for {day}: begins", **known}
    text = warning.pop("message")
    assert warning == {"level": "warning", **known}
    assert re.fullmatch(r"wms\.invoices: no new file out/INV_\* until .*; continued without it", text)
    seconds = ended.pop("seconds")
    assert 0 < seconds == pytest.approx(result.json["seconds"], abs=0.001)
    told = f"nightly for {day}: done after {seconds:.0f} s"
    assert ended == {"level": "info", "message": told, **known, "status": "done"}
    again = site.run("schedule", "--once", day, "--log-format", "json")
    (told_again,) = lines(again.err)
    del known["run"]
    assert told_again == {"level": "info", "message": f"nightly for {day}: has been run already", **known}


def test_a_night_that_did_not_end_well_is_an_error(site: Site, day: str) -> None:
    """With its run and why; what was rejected is a warning. Nobody's name is shown."""
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


def test_a_night_that_could_not_begin_is_an_error(site: Site, day: str) -> None:
    """It has no run, and its exit code is the one without the option."""
    site.setenv("CROSSDOCK_API_KEY", None)
    failed = site.run("schedule", "--once", day, "--log-format", "json")
    (line,) = lines(failed.err)
    assert (line["level"], line["status"], "run" in line) == ("error", "failed", False)
    assert "CROSSDOCK_API_KEY" in line["message"]
    told = site.run("schedule", "--once", day)
    assert told.err.startswith("crossdock: ")
    assert told.code == failed.code != 0


def test_sentences_read_as_they_always_did(site: Site, day: str) -> None:
    """Without the option a night by hand tells its warnings and nothing else."""
    result = site.run("schedule", "--once", day, "--json")
    assert result.code == 0
    (warning,) = result.err.splitlines()
    assert re.fullmatch(
        r"crossdock: warning: wms\.invoices: no new file out/INV_\* until .*; continued without it", warning
    )
    assert site.run("schedule", "--once", day).err == f"nightly for {day}: has been run already\n"


def test_a_night_of_long_ago_is_not_run(site: Site, day: str) -> None:
    """One that retention has removed counts as run, and it is said why nothing happens."""
    with closing(project.load(site.config).open_state()) as state, state.begin() as tx:
        tx.scheduled_runs.end_until("nightly", datetime.now(UTC))
    result = site.run("schedule", "--once", day)
    assert (result.code, result.out) == (0, "")
    assert result.err == f"nightly for {day}: is not run: it is longer ago than 'retention' keeps nights\n"
    assert site.effects() == []


def served(site: Site, *options: str) -> str:
    """What a scheduler logs that runs a night, is asked to read a broken config, and to end."""
    site.init()
    site.fill()
    schedule(site, "every: 2s")
    command = [sys.executable, "-m", "crossdock", "-C", str(site.config), "schedule", "--health", "0", *options]
    log = site.folder / "log"
    with log.open("wb") as err, subprocess.Popen(command, stderr=err, env=os.environ) as process:
        try:
            eventually(lambda: ": done after" in log.read_text())
            site.edit("jobs:", "jbos:")
            process.send_signal(signal.SIGHUP)
            eventually(lambda: "SIGHUP" in log.read_text())
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=20) == 0
        finally:
            process.kill()
    return log.read_text()


def test_a_service_logs_objects(site: Site) -> None:
    """All that it writes from its begin to its end, on a line each; what is about no night names none."""
    found = lines(served(site, "--log-format", "json"))
    serving, watching, begins, done, *_ = found
    hangup, ending = [line for line in found if line["message"].startswith("SIG")]
    assert serving["message"].startswith("serving http://127.0.0.1:")
    assert watching == {"level": "info", "message": "watching nightly"}
    today = begins["business_date"]
    assert begins == {
        "level": "info",
        "message": f"nightly for {today}: begins",
        "job": "nightly",
        "business_date": today,
        "run": 1,
    }
    assert (done["run"], done["status"], done["level"]) == (1, "done", "info")
    assert hangup["message"].startswith("SIGHUP: the config is not read again: ")
    assert (hangup["level"], ending["level"]) == ("error", "info")
    assert hangup.keys() == ending.keys() == {"level", "message"}
    assert ending["message"] == "SIGTERM: finishing what is on its way; once more ends at once"


def test_a_service_logs_sentences(site: Site) -> None:
    """As people have always read them."""
    serving, watching, begins, done, *rest = served(site).splitlines()
    assert serving.startswith("crossdock: serving http://127.0.0.1:")
    assert watching == "crossdock: watching nightly"
    found = re.fullmatch(r"crossdock: nightly for (\d{4}-\d\d-\d\d): begins", begins)
    assert found
    assert re.fullmatch(rf"crossdock: nightly for {found[1]}: done after \d s", done)
    assert any(line.startswith("crossdock: SIGHUP: the config is not read again: ") for line in rest)
    ending = rest.index("SIGTERM: finishing what is on its way; once more ends at once")
    assert rest[ending - 1] == ""
