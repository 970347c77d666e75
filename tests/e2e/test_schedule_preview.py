"""``crossdock schedule --preview`` of crontab lines, and how a wrong one is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tests.e2e.warehouse import Site

BERLIN = ZoneInfo("Europe/Berlin")
JOB = '  nightly: {{schedule: {{time_zone: Europe/Berlin, cron: "{}", business_date: previous_day}}}}\n'


def schedule(site: Site, cron: str) -> None:
    site.config.write_text(f"{site.config.read_text()}jobs:\n{JOB.format(cron)}")


def test_a_crontab_line_is_previewed(site: Site) -> None:
    """Each run of the next days, for the day before; in UTC as JSON, in local time for people."""
    schedule(site, "30 12,18 * * *")
    site.init()
    result = site.run("schedule", "--preview", "3", "--json")
    assert result.code == 0, result.err
    rows = json.loads(result.out)
    assert all(row["begins"].endswith("Z") for row in rows)
    begins = [datetime.fromisoformat(row["begins"]).astimezone(BERLIN) for row in rows]
    assert len(rows) in {5, 6, 7}  # the clocks may be changed within the three days
    assert {(at.hour, at.minute) for at in begins} == {(12, 30), (18, 30)}
    assert all(
        row["business_date"] == (at.date() - timedelta(days=1)).isoformat()
        for row, at in zip(rows, begins, strict=True)
    )
    assert begins == sorted(begins)
    assert begins[0].astimezone(UTC) > datetime.now(UTC) - timedelta(minutes=10)
    assert " 12:30:00+0" in site.run("schedule", "--preview", "3").out


def test_the_effective_config_shows_the_line(site: Site) -> None:
    """As it was written."""
    schedule(site, "@daily")
    assert site.run("config", "show", "--json").json["jobs"]["nightly"]["schedule"]["cron"] == "@daily"


def test_a_wrong_crontab_line_is_refused(site: Site) -> None:
    """Exit 2, with its position and what is wrong with which field."""
    schedule(site, "30 2 * * mon-fry")
    result = site.run("schedule", "--preview", "3")
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        f"crossdock: {site.place('cron: ', within='jobs:')}: jobs.nightly.schedule.cron: '30 2 * * mon-fry': 'mon-fry' "
        "is not a valid day-of-week; expected 0 to 7 (0 and 7 are Sunday) or sun to sat [config_invalid]\n"
    )
