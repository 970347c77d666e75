"""A run compared with the last ones of the same job: what was read, delivered and updated, and how long it took."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from msgspec import Struct

from crossdock.state import RunRecord
from crossdock.state.tables.run_history import COMPLETED
from crossdock.values.texts_of_numbers_and_times import duration_text

EARLIER = 14  # runs that one is compared with: a daily job has two weekends among them
_ENOUGH = 5  # completed runs, below which nothing is unusual


class Measure(Struct, frozen=True):
    """One number of each run, oldest first; None if it is unknown. *remark* says what is unusual about the last."""

    name: str
    values: tuple[int | None, ...]
    texts: tuple[str, ...]
    remark: str = ""


class Comparison(Struct, frozen=True):
    """*runs* and what they are compared by, oldest first; the last one is the run itself."""

    runs: tuple[RunRecord, ...]
    measures: tuple[Measure, ...]

    @property
    def remarks(self) -> list[str]:
        return [each.remark for each in self.measures if each.remark]


def compare_last_run_with_earlier(runs: Sequence[RunRecord]) -> Comparison | None:
    """Compare the last of *runs* with the others; None without others.

    A number of records is unusual if it is below half of the median of the completed runs, and below each of them: so
    a quiet Sunday is not, where the last two Sundays were as quiet. A duration is unusual above twice the median, and
    above each.
    """
    if len(runs) < 2:
        return None
    return Comparison(tuple(runs), tuple(_measure(name, runs, number, text) for name, number, text in _MEASURES))


def _measure(
    name: str, runs: Sequence[RunRecord], number: Callable[[RunRecord], int | None], text: Callable[[int], str]
) -> Measure:
    values = tuple(map(number, runs))
    earlier = [
        value
        for run, value in zip(runs[:-1], values[:-1], strict=True)
        if run.status in COMPLETED and value is not None
    ]
    last, remark = values[-1], ""
    if last is not None and runs[-1].status != "running" and len(earlier) >= _ENOUGH:
        usual = median(earlier)
        of = f"the median of the {len(earlier)} completed runs before is {text(round(usual))}"
        if number is _duration_ms:
            if last > 2 * usual and last > max(earlier):
                remark = f"The {name} of {text(last)} is unusually long: {of}."
        elif 2 * last < usual and last < min(earlier):
            remark = f"A sudden drop of {name} to {text(last)}: {of}."
    return Measure(name, values, tuple("" if value is None else text(value) for value in values), remark)


def _sum_of_streams(run: RunRecord, number: Callable[[Mapping[str, Any]], int]) -> int | None:
    return None if run.tally is None else sum(number(stream) for stream in run.tally.values())


def _rows_read(run: RunRecord) -> int | None:
    return _sum_of_streams(run, lambda stream: stream["rows"]["read"])


def _delivered_count(run: RunRecord) -> int | None:
    return _sum_of_streams(run, lambda stream: stream["records"]["delivered"])


def _updated_count(run: RunRecord) -> int | None:
    return _sum_of_streams(run, lambda stream: stream["records"]["updated"])


def _duration_ms(run: RunRecord) -> int | None:
    return run.duration_ms


def _count_text(number: int) -> str:
    return f"{number:,}"


def _duration_text(milliseconds: int) -> str:
    return duration_text(milliseconds / 1000)


_MEASURES: Sequence[tuple[str, Callable[[RunRecord], int | None], Callable[[int], str]]] = (
    ("rows read", _rows_read, _count_text),
    ("records delivered", _delivered_count, _count_text),
    ("records updated", _updated_count, _count_text),
    ("duration", _duration_ms, _duration_text),
)
