"""Jobs of a config file: their order and their deadlines."""

from __future__ import annotations

from datetime import datetime
from itertools import permutations
from typing import Any

import pytest
from tests.unit.scheduling.wallclock import utc

from crossdock.config.schedules.job_and_schedule_config import JobConfig, jobs_in_order


def job(**said: Any) -> JobConfig:
    return JobConfig.model_validate({"schedule": {"time_zone": "Europe/Berlin", "at": "22:00"}, **said})


@pytest.mark.parametrize("names", list(permutations("abc")))
def test_a_job_comes_after_those_it_names(names: tuple[str, ...]) -> None:
    """In whatever order the file has them."""
    after: dict[str, list[str]] = {"a": [], "b": ["a"], "c": ["a", "b"]}
    assert jobs_in_order({name: job(after=after[name]) for name in names}) == ["a", "b", "c"]


def test_jobs_that_name_no_other_keep_the_order_of_the_file() -> None:
    """The order is stable."""
    assert jobs_in_order({"b": job(), "a": job()}) == ["b", "a"]


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ({"a": ["b"], "b": ["a"]}, "jobs wait for each other: a -> b -> a"),
        ({"a": ["nightli"], "nightly": []}, "job 'a' is set to run after 'nightli'.*'nightly'"),
    ],
)
def test_an_impossible_order_is_refused(after: dict[str, list[str]], message: str) -> None:
    """With the jobs that it is about."""
    with pytest.raises(ValueError, match=message):
        jobs_in_order({name: job(after=names) for name, names in after.items()})


@pytest.mark.parametrize(
    ("done_by", "due", "deadline"),
    [
        pytest.param(None, utc(2026, 6, 1, 20), None, id="none"),
        pytest.param("23:00", utc(2026, 6, 1, 20), utc(2026, 6, 1, 21), id="the same day"),
        pytest.param("06:00", utc(2026, 6, 1, 20), utc(2026, 6, 2, 4), id="the next day"),
        pytest.param("22:00", utc(2026, 6, 1, 20), utc(2026, 6, 1, 20), id="at once"),
        pytest.param("02:30", utc(2026, 3, 28, 21), utc(2026, 3, 29, 1), id="a skipped time"),
    ],
)
def test_a_deadline_is_the_next_showing_of_its_time(
    done_by: str | None, due: datetime, deadline: datetime | None
) -> None:
    """In Berlin, from when the run is due."""
    assert job(done_by=done_by).deadline(due) == deadline
