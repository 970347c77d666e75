"""How long requests take at the rate of the allowance, with hours in which less is sent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.config.project.migration_config import MigrationConfig
from crossdock.migration.load_progress_and_duration import (
    next_change_of_hours,
    next_start_of_allowed_hours,
    time_to_send_requests,
)


def config(*hours: tuple[str, str, int], zone: str = "UTC") -> MigrationConfig:
    listed: list[dict[str, Any]] = [{"from": begin, "to": end, "percent": percent} for begin, end, percent in hours]
    return MigrationConfig.model_validate({"waves": {"a": {"streams": ["x"]}}, "hours": listed, "time_zone": zone})


def at(hour: int, minute: int = 0, day: int = 15) -> datetime:
    return datetime(2027, 1, day, hour, minute, tzinfo=UTC)


HOUR = timedelta(hours=1)
DAY = ("08:00", "18:00", 20)
NIGHT_OFF = ("22:00", "06:00", 0)


@pytest.mark.parametrize(
    ("requests", "hours", "now", "expected"),
    [
        pytest.param(0, [DAY], at(9), timedelta(), id="nothing is left"),
        pytest.param(7_200, [], at(9), 2 * HOUR, id="no hours: at the rate"),
        pytest.param(720, [DAY], at(9), HOUR, id="a fifth of the rate"),
        pytest.param(720 + 3_600, [DAY], at(17), 2 * HOUR, id="an hour of a fifth, an hour of all"),
        pytest.param(3_600, [NIGHT_OFF], at(23), 8 * HOUR, id="hours over midnight: nothing until 6"),
        pytest.param(24 * 3_600, [("00:00", "12:00", 0)], at(12), 36 * HOUR, id="two half days"),
        pytest.param(1, [("00:00", "12:00", 0), ("12:00", "00:00", 0)], at(9), None, id="never"),
    ],
)
def test_time_left(requests: int, hours: list[tuple[str, str, int]], now: datetime, expected: timedelta | None) -> None:
    """One request a second, as the hours allow."""
    assert time_to_send_requests(requests, 1.0, config(*hours), now) == expected


def test_a_percentage_by_hand() -> None:
    """The lower one of it and of the hours counts."""
    assert time_to_send_requests(360, 1.0, config(DAY), at(9), most=10) == HOUR
    assert time_to_send_requests(720, 1.0, config(DAY), at(9), most=50) == HOUR


def test_hours_are_local() -> None:
    """In New York 08:00 is 13:00 UTC in January."""
    assert time_to_send_requests(3_600 + 720, 1.0, config(DAY, zone="America/New_York"), at(12)) == 2 * HOUR


def test_changes() -> None:
    """The next instant at which hours begin or end, and at which something is allowed again."""
    assert next_change_of_hours(config(), at(9)) is None
    assert next_change_of_hours(config(DAY), at(8)) == at(18)
    assert next_change_of_hours(config(DAY), at(18)) == at(8, day=16)
    assert next_start_of_allowed_hours(config(NIGHT_OFF), at(23)) == at(6, day=16)
    assert next_start_of_allowed_hours(config(("20:00", "22:00", 0), NIGHT_OFF), at(21)) == at(6, day=16)


@given(first=st.integers(0, 50_000), more=st.integers(0, 50_000), percent=st.integers(1, 100), hour=st.integers(0, 23))
def test_parts_add_up(first: int, more: int, percent: int, hour: int) -> None:
    """Sending some and then the others takes as long as sending all."""
    hours = config(("08:00", "18:00", percent), NIGHT_OFF)
    begun = time_to_send_requests(first, 0.5, hours, at(hour))
    assert begun is not None
    rest, whole = (
        time_to_send_requests(more, 0.5, hours, at(hour) + begun),
        time_to_send_requests(first + more, 0.5, hours, at(hour)),
    )
    assert rest is not None
    assert whole is not None
    assert abs(whole - begun - rest) < timedelta(seconds=1) or more == 0
