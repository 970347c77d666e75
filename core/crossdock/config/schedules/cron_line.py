"""Crontab lines, parsed by cronsim. `due_times` decides which instants they mean."""

from __future__ import annotations

from datetime import date, datetime, time

from cronsim import CronSim, CronSimError

_EXPECTED = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, in a month that has the day",
    "month": "1 to 12 or jan to dec",
    "day-of-week": "0 to 7 (0 and 7 are Sunday) or sun to sat",
}
_START = datetime(2000, 1, 1)  # noqa: DTZ001  a local time
_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class CronLine:
    """A crontab line of five fields, or a nickname such as ``@daily``.

    Attributes:
        times: The times of day that the first two fields name, in order.
        has_wildcard_time: True if the minute or the hour begins with ``*``. Debian's cron then follows the clocks:
            what they skip does not run, what they repeat runs twice.

    Raises:
        ValueError: If *text* is not a crontab line, or names no date that exists.
    """

    def __init__(self, text: str) -> None:
        line = _NICKNAMES.get(text.strip().lower(), text)
        fields = line.split()
        if len(fields) != len(_EXPECTED):
            known = ", ".join(_NICKNAMES)
            raise ValueError(f"{text!r} has {len(fields)} fields instead of {' '.join(_EXPECTED)}; or use {known}")
        try:
            self._fields = CronSim(line, _START)
        except (CronSimError, ValueError) as error:
            name = str(error).removeprefix("Bad ")
            found = dict(zip(_EXPECTED, fields, strict=True)).get(name, text)
            expected = _EXPECTED.get(name, "")
            raise ValueError(f"{text!r}: {found!r} is not a valid {name}; expected {expected}") from None
        if next(CronSim(line, _START), None) is None:
            raise ValueError(f"{text!r} matches no date that exists")
        self.times = tuple(
            time(hour, minute) for hour in sorted(self._fields.hours) for minute in sorted(self._fields.minutes)
        )
        self.has_wildcard_time = fields[0].startswith("*") or fields[1].startswith("*")

    def matches(self, day: date) -> bool:
        return day.month in self._fields.months and self._fields.match_day(day)
