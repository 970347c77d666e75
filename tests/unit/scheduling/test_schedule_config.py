"""Schedules in a config file: what is valid, and what is refused with its position."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from crossdock.config.schedules.job_and_schedule_config import Schedule
from crossdock.errors import ConfigError
from crossdock.values import config_file
from crossdock.values.config_base_types import ConfigModel
from crossdock.values.schema_descriptions_from_docstrings import SchemaGeneratorWithDescriptions

GOOD = [
    'at: "02:30"',
    'at: ["14:00", "02:30"]\ndays: [weekdays, 31, last_working_day]',
    "every: 15m\ncatch_up: all\ncatch_up_within: 2d",
    'at: "23:59"\nbusiness_date: previous_day\nholidays: [2026-12-25, "2026-12-26"]\non_holiday: next_working_day',
    'at: "00:00"\nblackouts: [{from: "22:00", to: "06:00"}, {from: 2026-12-24T12:00:00Z, to: 2027-01-02T00:00:00Z}]',
    'at: "00:00"\nblackouts: [{from: "2026-12-24T12:00+01:00", to: "2026-12-24T12:00Z"}]\ncatch_up: none',
    'cron: "30 2 * * 1-5"\nholidays: [2026-12-25]\non_holiday: next_working_day\ncatch_up: all',
    "cron: '@daily'\nbusiness_date: previous_day",
]


class Job(ConfigModel):
    schedule: Schedule


def load(tmp_path: Path, text: str) -> Schedule:
    """The schedule that *text* describes, in Berlin unless it names a zone."""
    zone = "" if "time_zone" in text else "  time_zone: Europe/Berlin\n"
    path = tmp_path / "c.yaml"
    path.write_text(f"schedule:\n{zone}  " + text.replace("\n", "\n  "), encoding="utf-8")
    document = config_file.read_config_with_overrides(path)
    return document.validated_as_model(Job, document.data).schedule


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        pytest.param('at: "25:00"', ":3:3: schedule.at", '\'25:00\' is not a time from "00:00" to "23:59"', id="hour"),
        pytest.param('at: "02:60"', ":3:3", "'02:60' is not a time", id="minute"),
        pytest.param('at: "24:00"', ":3:3", "'24:00' is not a time", id="24:00"),
        pytest.param('at: "2:30"', ":3:3", "'2:30' is not a time", id="one digit"),
        pytest.param(
            "at: 14:30", ":3:3", 'number to base 60 in YAML: quote it if it is text, as in "12:30"', id="no quotes"
        ),
        pytest.param('at: ["02:30", "x"]', ":3:3", "'x' is not a time", id="one of several"),
        pytest.param("at: []", ":3:3: schedule.at", "name at least one", id="no time"),
        pytest.param(
            "days: mon", ":1:1: schedule", "needs exactly one of at, every and cron", id="neither at nor every"
        ),
        pytest.param(
            'at: "02:30"\nevery: 15m',
            ":1:1: schedule",
            "needs exactly one of at, every and cron",
            id="both at and every",
        ),
        pytest.param(
            'at: "02:30"\ncron: "@daily"', ":1:1: schedule", "exactly one of at, every and cron", id="at and cron"
        ),
        pytest.param(
            'cron: "30 25 * * *"', ":3:3: schedule.cron", "'25' is not a valid hour; expected 0 to 23", id="cron"
        ),
        pytest.param('cron: "0 30 2 * * *"', ":3:3: schedule.cron", "has 6 fields instead of", id="cron with seconds"),
        pytest.param("cron: 5", ":3:3: schedule.cron", "text", id="cron number"),
        pytest.param('cron: "@daily"\ndays: mon', ":1:1: schedule", "days does not apply to cron", id="cron and days"),
        pytest.param('cron: "* * * * *"\ncatch_up: all', ":1:1", "10080 runs, more than 10000", id="a flood by cron"),
        pytest.param("every: 0", ":3:3: schedule.every", "'0' is not a duration such as", id="every 0"),
        pytest.param("every: 0m", ":3:3", "'0m' is not a duration", id="every 0m"),
        pytest.param("every: -5m", ":3:3", "'-5m' is not a duration", id="backwards"),
        pytest.param("every: 15", ":3:3", "such as 90s, 15m, 6h or 2d", id="no unit"),
        pytest.param("every: 1.5h", ":3:3", "'1.5h' is not a duration", id="a fraction"),
        pytest.param("every: 25h", ":1:1", "at most 24h; for less frequent runs, use at and days", id="too seldom"),
        pytest.param("every: ٣m", ":3:3", "is not a duration", id="other digits"),
        pytest.param('at: "02:30"\ndays: monday', ":4:3: schedule.days", "did you mean mon?", id="long name"),
        pytest.param('at: "02:30"\ndays: last_workday', ":4:3", "did you mean last_working_day?", id="nearly"),
        pytest.param('at: "02:30"\ndays: [0]', ":4:3", "numbers from 1 to 31", id="day 0"),
        pytest.param('at: "02:30"\ndays: [32]', ":4:3", "'32' is not a day to run on", id="day 32"),
        pytest.param('at: "02:30"\ndays: [yes]', ":4:3", "'True' is not a day to run on", id="a truth"),
        pytest.param('at: "02:30"\ndays: []', ":4:3", "name at least one", id="no day"),
        pytest.param(
            'at: "02:30"\nholidays: ["2026-02-30"]',
            ":4:3: schedule.holidays",
            "'2026-02-30' is not a date",
            id="30 February",
        ),
        pytest.param('at: "02:30"\nholidays: [2026-02-30]', ":4:14", "looks like a date", id="30 February, no quotes"),
        pytest.param('at: "02:30"\nholidays: [20261225]', ":4:3", "is not a date such as 2026-12-25", id="a number"),
        pytest.param('at: "02:30"\nholidays: [2026-12-25T00:00:00Z]', ":4:3", "is not a date", id="an instant"),
        pytest.param('at: "02:30"\nholidays: 2026-12-25', ":4:3", "must be a list", id="no list"),
        pytest.param(
            'at: "02:30"\non_holiday: move',
            ":4:3: schedule.on_holiday",
            "'skip' or 'next_working_day'",
            id="on holiday",
        ),
        pytest.param('at: "02:30"\nbusiness_date: today', ":4:3", "'same_day' or 'previous_day'", id="business date"),
        pytest.param('at: "02:30"\ncatch_up: yes', ":4:3", "'all', 'latest' or 'none'", id="catch-up"),
        pytest.param('at: "02:30"\ncatch_up_within: 1w', ":4:3", "'1w' is not a duration", id="weeks"),
        pytest.param('at: "02:30"\ncatch_up_within: 100000d', ":4:3", "1 to 99999 and a unit", id="older than all"),
        pytest.param("every: 1m\ncatch_up: all", ":1:1", "10080 runs, more than 10000", id="a flood"),
        pytest.param(
            'at: ["01:00", "02:00"]\ncatch_up: all\ncatch_up_within: 9999d',
            ":1:1",
            "19998 runs",
            id="a flood of runs",
        ),
        pytest.param('at: "02:30"\ntimezone: UTC', ":4:3: schedule.timezone", "did you mean 'time_zone'?", id="key"),
        pytest.param('at: "02:30"\ntime_zone:', ":3:3: schedule.time_zone", "is empty", id="empty zone"),
        pytest.param(
            'at: "02:30"\ntime_zone: Europe/Berln', ":3:3", "did you mean Europe/Berlin or", id="misspelt zone"
        ),
        pytest.param('at: "02:30"\ntime_zone: berlin', ":3:3", "'berlin' is not an IANA time zone", id="a city"),
        pytest.param('at: "02:30"\ntime_zone: "+02:00"', ":3:3", "write it like Europe/Berlin", id="an offset"),
        pytest.param('at: "02:30"\ntime_zone: europe/berlin', ":3:3", "did you mean Europe/Berlin", id="small letters"),
        pytest.param('at: "02:30"\ntime_zone: localtime', ":3:3", "not an IANA time zone", id="the machine's zone"),
        pytest.param('at: "02:30"\ntime_zone: right/Europe/Berlin', ":3:3", "not an IANA time zone", id="leap seconds"),
        pytest.param('at: "02:30"\ntime_zone: ../../etc/passwd', ":3:3", "not an IANA time zone", id="a path"),
        pytest.param(
            'at: "02:30"\nblackouts: [{from: "08:00", to: "08:00"}]',
            ":4:15: schedule.blackouts.0",
            "is empty",
            id="empty window",
        ),
        pytest.param(
            'at: "02:30"\nblackouts: [{from: 08:00, to: 18:00}]',
            "schedule.blackouts.0.to",
            "is a number to base 60 in YAML: quote it",
            id="window without quotes",
        ),
        pytest.param(
            'at: "02:30"\nblackouts: [{from: "08:00", to: 2026-12-24T12:00:00Z}]',
            ":4:15",
            "must both be",
            id="mixed window",
        ),
        pytest.param(
            'at: "02:30"\nblackouts: [{from: 2026-12-24T12:00:00, to: "18:00"}]',
            "blackouts.0.from",
            "with its offset",
            id="no offset",
        ),
        pytest.param(
            'at: "02:30"\nblackouts: [{from: 2026-12-24, to: 2026-12-25}]',
            "blackouts.0.from",
            "nor an instant",
            id="dates",
        ),
        pytest.param(
            'at: "02:30"\nblackouts: [{from: 2026-12-24T12:00:00Z, to: 2026-12-24T12:30:00+01:00}]',
            ":4:15",
            "must come after",
            id="backwards window",
        ),
        pytest.param(
            'at: "02:30"\nblackouts: [{from: 2026-12-24T12:00:00Z, to: 9999-12-31T23:59:59-12:00}]',
            "blackouts.0.to",
            "1900 to 9998",
            id="beyond all days",
        ),
        pytest.param(
            'at: "02:30"\nblackouts: [{from: "18:00", to: "06:00"}, {from: "06:00", to: "18:00"}]',
            ":1:1",
            "leave no time of day",
            id="no time left",
        ),
        pytest.param(
            'at: "02:30"\nblackouts: [{from: "08:00"}]', "schedule.blackouts.0.to", "is missing", id="half a window"
        ),
    ],
)
def test_what_cannot_be_is_refused_at_load(tmp_path: Path, text: str, place: str, message: str) -> None:
    """The error names the position and what is expected."""
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, text)
    assert place in str(refused.value)
    assert message in str(refused.value)


@pytest.mark.parametrize("days", ["last_working_day", "[mon, first_working_day]"])
def test_a_month_without_a_working_day_is_refused(tmp_path: Path, days: str) -> None:
    """A list of holidays that takes a whole month leaves no last working day."""
    february = ", ".join(f"2026-02-{day:02}" for day in range(1, 29))
    with pytest.raises(ConfigError, match="2026-02 has no working day"):
        load(tmp_path, f'at: "02:30"\ndays: {days}\nholidays: [{february}]')
    assert load(tmp_path, f'at: "02:30"\ndays: mon\nholidays: [{february}]').days == ("mon",)


@pytest.mark.parametrize("text", GOOD)
def test_a_schedule_is_the_same_when_its_values_are_read_again(tmp_path: Path, text: str) -> None:
    """What the effective config shows of a schedule is a schedule."""
    once = load(tmp_path, text)
    shown = json.loads(once.model_dump_json(by_alias=True))
    assert Schedule.model_validate(shown) == once
    assert hash(once) == hash(Schedule.model_validate(shown))


def test_the_json_schema_takes_what_the_model_takes() -> None:
    """The schema accepts valid schedules, rejects invalid ones, and describes every key."""
    schema = Schedule.model_json_schema(schema_generator=SchemaGeneratorWithDescriptions)
    for text in GOOD:
        said = {"time_zone": "Europe/Berlin", **yaml.load(text, yaml.BaseLoader)}
        said["days"] = [
            31 if day == "31" else day for day in said.get("days", ["mon"])
        ]  # BaseLoader leaves all as text
        jsonschema_rs.validate(schema, said)
    bad: list[dict[str, Any]] = [
        {"at": "25:00"},
        {"at": []},
        {"every": "0m"},
        {"every": 15},
        {"days": 32},
        {"x": 1},
        {"cron": "1 2 3"},
    ]
    for said in bad:
        assert not jsonschema_rs.is_valid(schema, {"time_zone": "UTC", **said})
    assert all(shown.get("description") for name, shown in schema["properties"].items() if name != "time_zone")
