"""The allowance and the refused requests of all runs of a night as a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from crossdock.console.page_tables import Rectangle
from crossdock.console.request_allowance_plot import HEIGHT, WIDTH, Band, Plot, bands_of_samples, max_sample_tokens
from crossdock.runs import slowest_steps_and_allowance_summary
from crossdock.state import RunRecord
from crossdock.values.texts_of_numbers_and_times import count_with_noun, instant_text

NIGHT = timedelta(hours=24)
REFUSALS_HEIGHT = 40
_SHORT_S = 1200.0


class NightPlot(Struct, frozen=True):
    """*refusals* has a bar for each run, as wide as the run lasted and as high as many of its requests were refused."""

    plot: Plot
    refusals: Sequence[Rectangle]
    refusals_height: int
    most_refused: str
    description: str


def runs_within_day_of_newest(runs: Sequence[RunRecord], now: datetime) -> list[RunRecord]:
    """Return those of *runs* that began in the 24 hours before the latest one ended or *now*, the oldest first."""
    if not runs:
        return []
    newest = max(runs, key=lambda run: run.started_at)
    since = min(_end_of_run(newest, now), now) - NIGHT
    return sorted((run for run in runs if run.started_at >= since), key=lambda run: run.started_at)


def plot_allowance_and_refusals(runs: Sequence[RunRecord], now: datetime) -> NightPlot | None:
    """Draw *runs*, which are in order; None if none of them has sent anything."""
    found = {run.id: slowest_steps_and_allowance_summary.allowance_samples(run) for run in runs}
    every = [sample for samples in found.values() for sample in samples]
    if not every:
        return None
    began, ended = runs[0].started_at, max(_end_of_run(run, now) for run in runs)
    lasts, top, drawn = max((ended - began).total_seconds(), 1.0), max_sample_tokens(every), list[Band]()
    for run in runs:
        after = (run.started_at - began).total_seconds()
        drawn += bands_of_samples([(min(after + at, lasts), tokens) for at, tokens in found[run.id]], lasts, top)
    form = "%H:%MZ" if lasts >= _SHORT_S else "%H:%M:%SZ"
    times = [f"{began + timedelta(seconds=lasts * part / 4):{form}}" for part in range(5)]
    most = max(run.throttled for run in runs)
    refused, lowest = sum(run.throttled for run in runs), min(tokens for _, tokens in every)
    description = (
        f"Between {instant_text(began)} and {instant_text(ended)}, {count_with_noun(len(runs), 'run')} had between "
        f"{lowest:,} "
        f"and {top:,} tokens, and {count_with_noun(refused, 'request')} {'was' if refused == 1 else 'were'} refused."
    )
    bars = [_run_refusals_bar(run, began, lasts, most, now) for run in runs if run.throttled]
    plot = Plot(WIDTH, HEIGHT, f"{top:,} tokens", times, drawn)
    return NightPlot(plot, bars, REFUSALS_HEIGHT, f"{most:,} refused" if most else "", description)


def _end_of_run(run: RunRecord, now: datetime) -> datetime:
    if run.finished_at is not None:
        return run.finished_at
    return now if run.status == "running" else run.started_at


def _run_refusals_bar(run: RunRecord, began: datetime, lasts: float, most: int, now: datetime) -> Rectangle:
    first, last = ((at - began).total_seconds() / lasts for at in (run.started_at, _end_of_run(run, now)))
    height = max(2, round(REFUSALS_HEIGHT * run.throttled / most))
    return round(WIDTH * first), REFUSALS_HEIGHT - height, max(3, round(WIDTH * (last - first))), height
