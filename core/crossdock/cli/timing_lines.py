"""Where the time of a run went and what its allowance was, the same on the terminal and in a report."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossdock.state import RunRecord

SLOWEST = 10  # steps that are shown
_SHORT = timedelta(milliseconds=50)  # what would be shown as 0.0 s

Sample = tuple[float, int]  # seconds since the run began, and tokens


@dataclass(frozen=True, slots=True)
class Slow:
    """All steps of one name, and their percentage of the run."""

    name: str
    lasted: timedelta
    share: float


@dataclass(frozen=True, slots=True)
class AllowanceSummary:
    """What could have been sent.

    Attributes:
        lowest_at: When it was that low for the first time, since the run began.
        short: How long it was below a quarter of the highest, so that the limit decided how fast the run was.
    """

    lowest: int
    lowest_at: timedelta
    highest: int
    short: timedelta

    def __str__(self) -> str:
        if self.lowest == self.highest:
            return f"{self.lowest:,} tokens throughout"
        quarter = f"below a quarter of that for {span(self.short)}" if self.short else "never below a quarter of that"
        return f"lowest {self.lowest:,} tokens, after {span(self.lowest_at)}; highest {self.highest:,}; {quarter}"


def facts(run: RunRecord) -> dict[str, Any]:
    """What ``--json`` prints of it; nothing if nobody kept it."""
    if run.timings is None:
        return {}
    steps = [{"step": s.name, "seconds": s.lasted.total_seconds(), "percent": round(s.share, 1)} for s in slowest(run)]
    spent = allowance(run)
    told = spent and {
        "lowest": spent.lowest,
        "highest": spent.highest,
        "seconds_below_a_quarter": spent.short.total_seconds(),
    }
    return {"slowest_steps": steps, "allowance": told}


def slowest(run: RunRecord) -> list[Slow]:
    """The steps that took longest, at most `SLOWEST`; without those too short to be shown."""
    sums: dict[str, timedelta] = {}
    for name, _, lasted in (run.timings or {}).get("steps", ()):
        sums[name] = sums.get(name, timedelta()) + timedelta(milliseconds=lasted)
    whole = sum(sums.values(), timedelta())
    ordered = sorted(sums.items(), key=lambda item: item[1], reverse=True)
    return [Slow(name, lasted, 100 * (lasted / whole)) for name, lasted in ordered[:SLOWEST] if lasted >= _SHORT]


def samples(run: RunRecord) -> list[Sample]:
    """The allowance in the course of time."""
    return [(at / 1000, tokens) for at, tokens in (run.timings or {}).get("samples", ())]


def allowance(run: RunRecord) -> AllowanceSummary | None:
    """Its sum; None where nobody knew it."""
    told = samples(run)
    if not told:
        return None
    at, lowest = min(told, key=lambda sample: sample[1])
    highest = max(tokens for _, tokens in told)
    short = sum(later - at for (at, before), (later, after) in pairwise(told) if 4 * max(before, after) < highest)
    return AllowanceSummary(lowest, timedelta(seconds=at), highest, timedelta(seconds=short))


def span(lasted: timedelta) -> str:
    """For example ``3.2 s`` and ``1:02:03``."""
    seconds = lasted.total_seconds()
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=round(seconds)))
