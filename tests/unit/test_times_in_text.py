"""Instants and durations as people read them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.values.texts_of_numbers_and_times import duration_text, instant_text

CLI = Path(__file__).parents[2] / "core" / "crossdock" / "cli"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"), (1.24, "1.2 s"), (59.94, "59.9 s"), (59.96, "1 min 0 s"), (60, "1 min 0 s"), (184, "3 min 4 s"),
        (3599.4, "59 min 59 s"), (3599.6, "1 h"), (7_500, "2 h 5 min"), (7_199, "2 h"),
        (90_061, "25 h 1 min"), (3_600_000, "1,000 h"),
    ],
)  # fmt: skip
def test_a_duration_has_at_most_two_units(seconds: float, text: str) -> None:
    """It is rounded first, so that none says 60; a timedelta is shown like its seconds."""
    assert duration_text(seconds) == duration_text(timedelta(seconds=seconds)) == text


@given(st.floats(0, 10**9))
def test_any_duration_has_the_form(seconds: float) -> None:
    """Tenths of a second, minutes and seconds, or hours and minutes."""
    found = re.fullmatch(r"(\d\d?)\.\d s|(\d\d?) min (\d\d?) s|[\d,]+ h(?: (\d\d?) min)?", duration_text(seconds))
    assert found
    assert all(int(part) < 60 for part in found.groups() if part)


def test_an_instant_names_its_zone() -> None:
    """UTC is Z, other zones have their offset; fractions of seconds are not shown."""
    at = datetime(2026, 3, 1, 5, 0, 7, 999_999, UTC)
    assert instant_text(at) == "2026-03-01 05:00:07Z"
    assert instant_text(at.astimezone(ZoneInfo("Europe/Berlin"))) == "2026-03-01 06:00:07+01:00"


@given(st.datetimes(timezones=st.just(UTC)))
def test_an_instant_can_be_read_back(at: datetime) -> None:
    """To the second."""
    assert datetime.fromisoformat(instant_text(at)) == at.replace(microsecond=0)


def test_commands_have_no_other_form() -> None:
    """No command formats times itself."""
    own = re.compile(r"strftime|[^m]isoformat\(|%H:%M|\.[0-9]f\} s")
    found = {path.name for path in CLI.glob("*.py") if own.search(path.read_text(encoding="utf-8"))}
    assert found <= {"schedule.py"}
