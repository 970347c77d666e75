"""``crossdock schedule --once`` of a date for which there is nothing to do."""

from __future__ import annotations

import json

import pytest
from tests.e2e.warehouse import Site

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


def test_nothing_due_is_logged_as_json(site: Site) -> None:
    """As one object, with the job and the date."""
    (line,) = site.run("schedule", "--once", "2026-03-01", "--job", "nightly", "--log-format", "json").err.splitlines()
    entry = json.loads(line)
    assert (entry["job"], entry["business_date"]) == ("nightly", "2026-03-01")
    assert "nothing is due" in entry["message"]
