"""Times of day and durations: what is valid."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from crossdock.config.schedules.job_and_schedule_config import JobConfig
from crossdock.values.config_base_types import is_duration, parse_duration


@given(number=st.integers(1, 99_999), unit=st.sampled_from("smhd"))
def test_a_duration_is_as_long_as_it_says(number: int, unit: str) -> None:
    """A number and a unit; only the units that are asked for count."""
    names = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
    assert is_duration(f"{number}{unit}", "smhd")
    assert is_duration(f"{number}{unit}", "smh") == (unit != "d")
    assert parse_duration(f"{number}{unit}") == timedelta(**{names[unit]: number})


@pytest.mark.parametrize("value", ["", "m", "0m", "05m", "100000s", "5w", "5 m", "5m\n", "-5m", "1.5h", "٣m", 5, None])
def test_what_is_not_a_duration(value: Any) -> None:
    """Other units, other digits, and values that are not text."""
    assert not is_duration(value, "smhd")


@pytest.mark.parametrize("said", ["24:00", "6:00", 360])
def test_the_time_by_which_a_job_is_done_is_a_time(said: Any) -> None:
    """The error is the same as for the times of a schedule."""
    schedule = {"time_zone": "UTC", "at": "02:30"}
    assert JobConfig.model_validate({"schedule": schedule, "done_by": "06:00"}).done_by == "06:00"
    with pytest.raises(ValidationError, match=f"'{said}' is not a time .*in quotes"):
        JobConfig.model_validate({"schedule": schedule, "done_by": said})
