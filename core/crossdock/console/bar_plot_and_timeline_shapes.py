"""Plots as plain values, which `page_templates/plots.html` draws. Their colours are those of the style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from msgspec import Struct

from crossdock.console.page_tables import Drawing, Rectangle
from crossdock.runs.slowest_steps_and_allowance_summary import StepSpans
from crossdock.values.texts_of_numbers_and_times import count_with_noun

HEIGHT, SLOT, GAP = 60, 20, 4  # units; a slot has a bar and the gap after it
LINE = 1_000  # units: the length of a time axis
_THINNEST = 2


class Value(NamedTuple):
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


def bar_plot(title: str, values: Sequence[Value], *, marks_last: bool = False) -> BarPlot:
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
        SLOT * len(values) - GAP,
        HEIGHT,
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
    height = max(1, round(HEIGHT * number / top)) if number else 0
    return SLOT * place, HEIGHT - height, SLOT - GAP, height


def timeline_of_one_step(step: StepSpans, whole: timedelta) -> Drawing:
    """Draw when the steps of one name took place, on a time axis as long as the run."""
    return Drawing(LINE, 10, [_span_rectangle(began, lasted, whole) for began, lasted in step.spans])


def _span_rectangle(began: timedelta, lasted: timedelta, whole: timedelta) -> Rectangle:
    first = min(round(LINE * (began / whole)), LINE - _THINNEST)
    return first, 0, min(max(round(LINE * (lasted / whole)), _THINNEST), LINE - first), 10
