"""The slowest steps and the allowance of a run, in the same form on the terminal and in a report."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from crossdock.values.texts_of_numbers_and_times import duration_text

if TYPE_CHECKING:
    from crossdock.state import RunRecord

SLOWEST = 10  # most steps shown
_SHORT = timedelta(milliseconds=50)  # shorter steps would show as 0.0 s

Sample = tuple[float, int]  # seconds since the run began, and tokens


class StepTime(Struct, frozen=True):
    """The total of all steps of one name. *share* is its percentage of the run."""

    name: str
    lasted: timedelta
    share: float


class StepSpans(Struct, frozen=True):
    """When the steps of one name took place: the first began at *began*. *spans* are beginnings and durations."""

    total: StepTime
    began: timedelta
    spans: tuple[tuple[timedelta, timedelta], ...]


class AllowanceSummary(Struct, frozen=True):
    """The allowance in tokens. While it was *short*, below a quarter of the highest, it determined the speed."""

    lowest: int
    lowest_at: timedelta
    highest: int
    short: timedelta

    def __str__(self) -> str:
        if self.lowest == self.highest:
            return f"{self.lowest:,} tokens throughout"
        quarter = (
            f"below a quarter of that for {duration_text(self.short)}"
            if self.short
            else "never below a quarter of that"
        )
        return (
            f"lowest {self.lowest:,} tokens, after {duration_text(self.lowest_at)}; highest {self.highest:,}; {quarter}"
        )


def timing_document(run: RunRecord) -> dict[str, Any]:
    if run.timings is None:
        return {}
    steps = [
        {"step": s.name, "seconds": s.lasted.total_seconds(), "percent": round(s.share, 1)} for s in slowest_steps(run)
    ]
    tokens = allowance_summary(run)
    summary = tokens and {
        "lowest": tokens.lowest,
        "highest": tokens.highest,
        "seconds_below_a_quarter": tokens.short.total_seconds(),
    }
    return {"slowest_steps": steps, "allowance": summary, "apis": api_usage_by_connection(run)}


def api_usage_by_connection(run: RunRecord) -> dict[str, Any]:
    found: dict[str, Any] = (run.timings or {}).get("apis", {})
    return found


def step_spans_by_beginning(run: RunRecord) -> list[StepSpans]:
    """Return all steps in the order in which they began."""
    found: dict[str, list[tuple[timedelta, timedelta]]] = {}
    for name, began, lasted in (run.timings or {}).get("steps", ()):
        found.setdefault(name, []).append((timedelta(milliseconds=began), timedelta(milliseconds=lasted)))
    sums = {name: sum((lasted for _, lasted in spans), timedelta()) for name, spans in found.items()}
    whole = sum(sums.values(), timedelta()) or timedelta.resolution
    return sorted(
        (
            StepSpans(StepTime(name, sums[name], 100 * (sums[name] / whole)), min(spans)[0], tuple(sorted(spans)))
            for name, spans in found.items()
        ),
        key=lambda each: each.began,
    )


def slowest_steps(run: RunRecord) -> list[StepTime]:
    ordered = sorted((each.total for each in step_spans_by_beginning(run)), key=lambda step: step.lasted, reverse=True)
    return [step for step in ordered[:SLOWEST] if step.lasted >= _SHORT]


def allowance_samples(run: RunRecord) -> list[Sample]:
    return [(at / 1000, tokens) for at, tokens in (run.timings or {}).get("samples", ())]


def allowance_summary(run: RunRecord) -> AllowanceSummary | None:
    found = allowance_samples(run)
    if not found:
        return None
    at, lowest = min(found, key=lambda sample: sample[1])
    highest = max(tokens for _, tokens in found)
    short = sum(later - at for (at, before), (later, after) in pairwise(found) if 4 * max(before, after) < highest)
    return AllowanceSummary(lowest, timedelta(seconds=at), highest, timedelta(seconds=short))
