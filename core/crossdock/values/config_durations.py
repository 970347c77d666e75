"""Times of day and durations in config files."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

A_TIME = 'time from "00:00" to "23:59" (in quotes, or YAML makes the number 870 of 14:30)'
_TIME = re.compile("([01][0-9]|2[0-3]):[0-5][0-9]")
TIME_SCHEMA = {"type": "string", "pattern": f"^({_TIME.pattern})$"}
_UNITS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


def is_time(value: Any) -> bool:
    return isinstance(value, str) and _TIME.fullmatch(value) is not None


def check_time_of_day(value: Any) -> str:
    if not is_time(value):
        raise ValueError(f"{str(value)!r} is not a {A_TIME}")
    return str(value)


TimeOfDay = Annotated[str, BeforeValidator(check_time_of_day), WithJsonSchema(TIME_SCHEMA)]


def is_duration(value: Any, units: str) -> bool:
    """Return whether *value* is a number from 1 to 99999 and one of *units*, of s, m, h and d."""
    return isinstance(value, str) and re.fullmatch(_duration_pattern(units), value) is not None


def duration_schema(units: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{_duration_pattern(units)}$"})


def _duration_pattern(units: str) -> str:
    return f"([1-9][0-9]{{0,4}})([{units}])"


def parse_duration(duration: str) -> timedelta:
    return int(duration[:-1]) * _UNITS[duration[-1]]
