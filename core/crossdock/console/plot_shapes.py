"""Plots as plain values, which the templates draw: bars, timelines, and the allowance of a run or a night."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Self

from msgspec import Struct

from crossdock.console.page_tables import Drawing, Rectangle
from crossdock.runs import tables_and_sentences_of_run
from crossdock.runs.tables_and_sentences_of_run import Sample, StepSpans
from crossdock.state import RunRecord
from crossdock.values.texts_of_numbers_and_times import count_with_noun, duration_text, instant_text

ALLOWANCE_PLOT_WIDTH, ALLOWANCE_PLOT_HEIGHT, LARGEST_GAP_WITHIN_BAND = (
    600,
    120,
    24,
)  # units; a larger gap between samples breaks the area

Point = tuple[int, int]


class AllowanceBand(Struct, frozen=True):
    """An area without a gap. *corners* run from the first highest sample around to the first lowest one."""

    first: int
    width: int
    corners: Sequence[Point]

    @classmethod
    def from_vertical_ranges(cls, ranges: dict[int, Point]) -> Self:
        first, last = min(ranges), max(ranges)
        outline = [(x, upper) for x, (upper, _) in ranges.items()]
        outline += [(x, lower) for x, (_, lower) in reversed(ranges.items())]
        return cls(first, max(1, last - first), outline)


class AllowancePlot(Struct, frozen=True):
    """The allowance over time. *top* is the number of tokens at the upper edge; *times* have equal distances."""

    width: int
    height: int
    top: str
    times: Sequence[str]
    bands: Sequence[AllowanceBand]


def plot_allowance(samples: Sequence[Sample], seconds: float) -> AllowancePlot:
    """Draw a band from the lowest to the highest sample at each point, with a gap where the allowance is unknown."""
    end, top = max(samples[-1][0], seconds, 1), max_sample_tokens(samples)
    times = ("0", *(duration_text(end * part / 4) for part in range(1, 5)))
    return AllowancePlot(
        ALLOWANCE_PLOT_WIDTH, ALLOWANCE_PLOT_HEIGHT, f"{top:,} tokens", times, bands_of_samples(samples, end, top)
    )


def max_sample_tokens(samples: Sequence[Sample]) -> int:
    return max(1, *(tokens for _, tokens in samples))


def bands_of_samples(samples: Sequence[Sample], end: float, top: int) -> list[AllowanceBand]:
    """Draw *samples* on a time axis that ends at *end*; *top* tokens are at the upper edge."""
    found: list[dict[int, Point]] = []
    before = -ALLOWANCE_PLOT_WIDTH
    for at, tokens in samples:
        x, y = (
            round(ALLOWANCE_PLOT_WIDTH * at / end),
            ALLOWANCE_PLOT_HEIGHT - round(ALLOWANCE_PLOT_HEIGHT * tokens / top),
        )
        if x - before > LARGEST_GAP_WITHIN_BAND:
            found.append({})
        upper, lower = found[-1].get(x, (y, y))
        found[-1][x] = min(upper, y), max(lower, y)
        before = x
    return [AllowanceBand.from_vertical_ranges(ranges) for ranges in found]


BAR_PLOT_HEIGHT, BAR_SLOT_WIDTH, GAP_BETWEEN_BARS = 60, 20, 4  # units; a slot has a bar and the gap after it
TIMELINE_LENGTH = 1_000  # units: the length of a time axis
_LEAST_SPAN_WIDTH = 2


class BarValue(NamedTuple):
    """What a bar shows: the place on the axis, the number (None if it is unknown) and the number as text."""

    label: str
    number: int | None
    text: str


class Bar(Struct, frozen=True):
    """A bar with its text; the *kind* is a class of the style sheet."""

    rectangle: Rectangle
    text: str
    kind: str


class BarPlot(Struct, frozen=True):
    """Bars from zero. *top* is the value at the upper edge; *description* says in words what is drawn."""

    title: str
    description: str
    top: str
    width: int
    height: int
    bars: Sequence[Bar]
    ends: tuple[str, str]


def bar_plot(title: str, values: Sequence[BarValue], *, marks_last: bool = False) -> BarPlot:
    """Draw *values*, of which there is at least one, the last one in another colour if *marks_last*."""
    known = [each for each in values if each.number is not None]
    top = max(known, key=lambda each: each.number or 0, default=None)
    described = (
        f"{count_with_noun(len(known), 'value')}, the highest {top.text} ({top.label})." if top else "Nothing is known."
    )
    last = len(values) - 1
    return BarPlot(
        title,
        described,
        top.text if top else "",
        BAR_SLOT_WIDTH * len(values) - GAP_BETWEEN_BARS,
        BAR_PLOT_HEIGHT,
        [
            Bar(
                _bar_rectangle(place, each.number, (top and top.number) or 0),
                f"{each.label}: {each.text}",
                "this" if marks_last and place == last else "",
            )
            for place, each in enumerate(values)
            if each.number is not None
        ],
        (values[0].label, values[-1].label),
    )


def _bar_rectangle(place: int, number: int, top: int) -> Rectangle:
    height = max(1, round(BAR_PLOT_HEIGHT * number / top)) if number else 0
    return BAR_SLOT_WIDTH * place, BAR_PLOT_HEIGHT - height, BAR_SLOT_WIDTH - GAP_BETWEEN_BARS, height


def timeline_of_one_step(step: StepSpans, whole: timedelta) -> Drawing:
    """Draw when the steps of one name took place, on a time axis as long as the run."""
    return Drawing(TIMELINE_LENGTH, 10, [_span_rectangle(began, lasted, whole) for began, lasted in step.spans])


def _span_rectangle(began: timedelta, lasted: timedelta, whole: timedelta) -> Rectangle:
    first = min(round(TIMELINE_LENGTH * (began / whole)), TIMELINE_LENGTH - _LEAST_SPAN_WIDTH)
    return first, 0, min(max(round(TIMELINE_LENGTH * (lasted / whole)), _LEAST_SPAN_WIDTH), TIMELINE_LENGTH - first), 10


NIGHT = timedelta(hours=24)
REFUSALS_HEIGHT = 40
_SHORT_S = 1200.0


class NightPlot(Struct, frozen=True):
    """*refusals* has a bar for each run, as wide as the run lasted and as high as many of its requests were refused."""

    plot: AllowancePlot
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
    found = {run.id: tables_and_sentences_of_run.allowance_samples(run) for run in runs}
    every = [sample for samples in found.values() for sample in samples]
    if not every:
        return None
    began, ended = runs[0].started_at, max(_end_of_run(run, now) for run in runs)
    lasts, top, drawn = max((ended - began).total_seconds(), 1.0), max_sample_tokens(every), list[AllowanceBand]()
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
    plot = AllowancePlot(ALLOWANCE_PLOT_WIDTH, ALLOWANCE_PLOT_HEIGHT, f"{top:,} tokens", times, drawn)
    return NightPlot(plot, bars, REFUSALS_HEIGHT, f"{most:,} refused" if most else "", description)


def _end_of_run(run: RunRecord, now: datetime) -> datetime:
    if run.finished_at is not None:
        return run.finished_at
    return now if run.status == "running" else run.started_at


def _run_refusals_bar(run: RunRecord, began: datetime, lasts: float, most: int, now: datetime) -> Rectangle:
    first, last = ((at - began).total_seconds() / lasts for at in (run.started_at, _end_of_run(run, now)))
    height = max(2, round(REFUSALS_HEIGHT * run.throttled / most))
    return (
        round(ALLOWANCE_PLOT_WIDTH * first),
        REFUSALS_HEIGHT - height,
        max(3, round(ALLOWANCE_PLOT_WIDTH * (last - first))),
        height,
    )
