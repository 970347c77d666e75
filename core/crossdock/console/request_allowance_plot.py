"""The allowance during a run as a drawing: its shapes and marks as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from msgspec import Struct

from crossdock.runs.slowest_steps_and_allowance_summary import Sample
from crossdock.values.texts_of_numbers_and_times import duration_text

WIDTH, HEIGHT, GAP = 600, 120, 24  # units; a larger gap between samples breaks the area

Point = tuple[int, int]


class Band(Struct, frozen=True):
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


class Plot(Struct, frozen=True):
    """The allowance over time. *top* is the number of tokens at the upper edge; *times* have equal distances."""

    width: int
    height: int
    top: str
    times: Sequence[str]
    bands: Sequence[Band]


def plot_allowance(samples: Sequence[Sample], seconds: float) -> Plot:
    """Draw a band from the lowest to the highest sample at each point, with a gap where the allowance is unknown."""
    end, top = max(samples[-1][0], seconds, 1), max_sample_tokens(samples)
    times = ("0", *(duration_text(end * part / 4) for part in range(1, 5)))
    return Plot(WIDTH, HEIGHT, f"{top:,} tokens", times, bands_of_samples(samples, end, top))


def max_sample_tokens(samples: Sequence[Sample]) -> int:
    return max(1, *(tokens for _, tokens in samples))


def bands_of_samples(samples: Sequence[Sample], end: float, top: int) -> list[Band]:
    """Draw *samples* on a time axis that ends at *end*; *top* tokens are at the upper edge."""
    found: list[dict[int, Point]] = []
    before = -WIDTH
    for at, tokens in samples:
        x, y = round(WIDTH * at / end), HEIGHT - round(HEIGHT * tokens / top)
        if x - before > GAP:
            found.append({})
        upper, lower = found[-1].get(x, (y, y))
        found[-1][x] = min(upper, y), max(lower, y)
        before = x
    return [Band.from_vertical_ranges(ranges) for ranges in found]
