"""When the waves of a load end: one after the other, at the allowance and in the hours of the config."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crossdock.config.project.migration_config import Gate, MigrationConfig
from crossdock.migration.rehearsal import wave_forecasts
from crossdock.migration.waves import NumberedWave
from crossdock.pacing.token_bucket import Forecast
from crossdock.runs.plan_result import PlanResult

BEGAN = datetime(2027, 3, 1, 6, tzinfo=UTC)
KNOWN = Forecast(requests=0, at_once=1_000, rate_per_s=1.0, seconds=0.0)
HALF = [{"from": "08:00", "to": "10:00", "percent": 50}]


def ends(
    first: dict[str, int],
    second: dict[str, int],
    *,
    platform: Forecast = KNOWN,
    others: dict[str, Forecast] | None = None,
    hours: Any = (),
) -> list[timedelta | None]:
    """When the waves *first* and *second* end, from the beginning; each is its requests by target."""
    migration = MigrationConfig.model_validate(
        {"waves": {name: {"streams": [name]} for name in ("first", "second")}, "hours": hours}
    )
    waves = [
        NumberedWave(name, number, 2, frozenset({f"{name}.all"}), Gate())
        for number, name in enumerate(migration.waves, 1)
    ]
    planned = PlanResult(platform, other_forecasts=others or {})
    needed = {"first": first, "second": second}
    planned.requests = Counter(
        {(target, f"{name}.all"): number for name, wave in needed.items() for target, number in wave.items()}
    )
    found = list(wave_forecasts(migration, waves, planned, BEGAN))
    assert [each.requests for each in found] == [sum(first.values()), sum(second.values())]
    assert found[1].begins == found[0].ends
    return [None if each.ends is None else each.ends - BEGAN for each in found]


def test_what_can_be_sent_at_once_takes_no_time() -> None:
    """The tokens are used up by the first wave, and the second has the rest of them."""
    assert ends({"platform": 400}, {"platform": 700}) == [timedelta(), timedelta(seconds=100)]
    assert ends({"platform": 1_060}, {"platform": 60}) == [timedelta(minutes=1), timedelta(minutes=2)]


def test_an_unknown_burst_counts_as_none() -> None:
    """The rate alone gives an end; without one nobody knows it, nor that of the next wave."""
    rate_only = Forecast(requests=0, at_once=None, rate_per_s=2.0, seconds=None)
    assert ends({"platform": 120}, {}, platform=rate_only) == [timedelta(minutes=1), timedelta(minutes=1)]
    unknown = Forecast(requests=0, at_once=None, rate_per_s=None, seconds=None)
    assert ends({"platform": 1}, {"platform": 1}, platform=unknown) == [None, None]


def test_hours_slow_a_load_down() -> None:
    """Two hours at the full rate, then two at half of it, then the rest."""
    three_hours_at_full_rate = {"platform": 1_000 + 3 * 3600}
    assert ends(three_hours_at_full_rate, {"platform": 3600}, hours=HALF) == [timedelta(hours=4), timedelta(hours=5)]


@pytest.mark.parametrize(("to", "end"), [("07:00", timedelta(hours=1)), ("06:00", None)])
def test_hours_may_forbid_to_begin(to: str, end: timedelta | None) -> None:
    """Not even what could be sent at once is sent before they end; without an end, never."""
    hours = [{"from": "05:00", "to": to, "percent": 0}, {"from": "06:00", "to": "05:00", "percent": 0}]
    assert ends({"platform": 10}, {}, hours=hours[: 1 if end else 2])[0] == end


def test_the_slowest_target_ends_a_wave() -> None:
    """Targets have rate limits of their own."""
    slow = Forecast(requests=0, at_once=0, rate_per_s=0.5, seconds=0.0)
    found = ends({"platform": 1_000, "threepl": 30}, {"platform": 10}, others={"threepl": slow})
    assert found == [timedelta(minutes=1), timedelta(seconds=70)]


def test_what_an_earlier_run_left_belongs_to_the_first_wave() -> None:
    """Also of a stream that is in no wave: it is sent before anything is read."""
    migration = MigrationConfig.model_validate({"waves": {"first": {"streams": ["a"]}, "second": {"streams": ["b"]}}})
    waves = [NumberedWave(name, at, 2, frozenset({name[:1]}), Gate()) for at, name in enumerate(migration.waves, 1)]
    planned = PlanResult(KNOWN)
    planned.requests = Counter({("platform", "elsewhere"): 3})
    assert [each.requests for each in wave_forecasts(migration, waves, planned, BEGAN)] == [3, 0]
