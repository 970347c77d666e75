"""``crossdock schedule --once`` of a date for which there is nothing to do."""

from __future__ import annotations

import json

import pytest
from tests.e2e.warehouse import Site
from tests.integration.notifications.receivers import Receiver
from tests.servers import served

JOBS = """\
jobs:
  nightly: {schedule: {time_zone: UTC, at: "02:30", days: [mon]}}
  monthly: {schedule: {time_zone: UTC, at: "03:30", days: [mon]}}
"""


@pytest.fixture
def site(site: Site) -> Site:
    site.config.write_text(site.config.read_text() + JOBS)
    site.init()
    return site


@pytest.mark.parametrize(
    ("day", "text"), [("2026-03-01", "is due"), ("2199-01-01", "is due yet")]
)  # a Sunday; the future
def test_nothing_due_is_said_for_each_job(site: Site, day: str, text: str) -> None:
    """On stderr, exit 0."""
    result = site.run("schedule", "--once", day)
    assert (result.code, result.out) == (0, "")
    assert result.err.splitlines() == [f"{job} for {day}: nothing {text}" for job in ("nightly", "monthly")]


def test_all_runs_of_a_date_are_one_json_document(site: Site) -> None:
    """A list has the report of each job that was run; it is empty if nothing was."""
    site.fill()
    ran = site.run("schedule", "--once", "2026-03-02", "--json")
    assert [each["run"] for each in ran.json] == [1, 2]
    assert site.run("schedule", "--once", "2026-03-02", "--json").json == []
    assert site.run("schedule", "--once", "2026-03-01", "--json").json == []


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_a_date_of_no_usable_year_is_a_wrong_usage(site: Site, day: str) -> None:
    """It is refused with the years that can be used."""
    refused = site.run("schedule", "--once", day)
    assert (refused.code, f"--once {day} is not in the years 1900 to 9998" in refused.err) == (2, True)


def test_nothing_due_is_logged_as_json(site: Site) -> None:
    """As one object, with the job and the date."""
    (line,) = site.run("schedule", "--once", "2026-03-01", "--job", "nightly", "--log-format", "json").err.splitlines()
    entry = json.loads(line)
    assert (entry["job"], entry["business_date"]) == ("nightly", "2026-03-01")
    assert "nothing is due" in entry["message"]


@pytest.mark.nightly(but=["failed"])
@pytest.mark.parametrize(
    "content", ['SKU;NAME;PRICE\nP1;"Bolt;1.50\n', "SKU;NAME;PRICE\nP1;Bolt;x\n"], ids=["failed", "degraded"]
)
def test_people_are_told_later_of_what_they_could_not_be_told(site: Site, content: str) -> None:
    """By the next run that is started, also if nothing is to be run again, and only once."""
    with served(Receiver()) as hook:
        hook.statuses = [503, 503, 204]
        site.config.write_text(f"{site.config.read_text()}notify: {{webhook: {{url: '{hook.url}'}}}}\n")
        site.export("PROD_1.csv", content)
        for _ in range(3):
            site.run("schedule", "--once", "latest", "--job", "nightly")
    sent = [json.loads(post.body)["data"]["run"] for post in hook.posts]
    assert sent == [1, 1, 1]


def test_the_audit_log_has_only_what_was_done(site: Site) -> None:
    """An execution has one entry. What was done before, is paused or is not due changes nothing, and has none."""
    site.fill()

    def started() -> list[str]:
        rows = site.run("audit", "--json", "--action", "schedule").json
        return [each["subject"] for each in rows]

    site.run("schedule", "--once", "2026-03-01")
    assert started() == []
    site.run("schedule", "--once", "2026-03-02", "--job", "nightly")
    assert started() == ["run 1"]
    assert "has already been run" in site.run("schedule", "--once", "2026-03-02", "--job", "nightly").err
    site.run("jobs", "pause", "monthly")
    assert "the job is paused" in site.run("schedule", "--once", "2026-03-02", "--job", "monthly").err
    assert started() == ["run 1"]
