"""The ratios that `tests.benchmarks.watch` has measured, in ``ratios.json``, and what they tell.

A line of a case that is no longer true of what crossdock does, because the work has become another one, is removed by
hand; the best of what is left then counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.benchmarks.watch_cases import CASES, Case

RATIOS = Path(__file__).with_name("ratios.json")
WORSE_BY = 0.15  # than the best, and it is slower


@dataclass(frozen=True)
class Measured:
    """CPU seconds of a process of crossdock and of its peer."""

    cpu_s: float
    peer_cpu_s: float

    @property
    def ratio(self) -> float:
        return self.cpu_s / self.peer_cpu_s

    def told(self, case: Case) -> str:
        """A line about *case*."""
        extra = f", {extra_ms(self, case):.2f} ms more for each request" if case.requests else ""
        return f"{case.work}: {self.cpu_s:.2f} s; {case.peer}: {self.peer_cpu_s:.2f} s; {self.ratio:.2f}{extra}"


@dataclass(frozen=True)
class Recorded:
    """One of the ratios of a case."""

    date: str
    commit: str
    ratio: float
    cpu_s: float
    peer_cpu_s: float


def extra_ms(one: Measured | Recorded, case: Case) -> float:
    """What each request costs more than the peer's, with the start of the process."""
    return (one.cpu_s - one.peer_cpu_s) * 1_000 / case.requests


Records = Mapping[str, Sequence[Recorded]]


def best(history: Sequence[Recorded]) -> float:
    return min(each.ratio for each in history)


def load() -> dict[str, list[Recorded]]:
    """What has been recorded of each case, the oldest first."""
    if not RATIOS.exists():
        return {}
    document = json.loads(RATIOS.read_text(encoding="utf-8"))
    return {name: [Recorded(**each) for each in history] for name, history in document.items()}


def add(found: Mapping[str, Measured], date: str, commit: str) -> dict[str, list[Recorded]]:
    """Record what was *found*; all that is recorded then."""
    records = load()
    for name, each in found.items():
        one = Recorded(date, commit, round(each.ratio, 3), round(each.cpu_s, 3), round(each.peer_cpu_s, 3))
        records.setdefault(name, []).append(one)
    lines = (
        f"  {json.dumps(name)}: [\n    " + ",\n    ".join(json.dumps(asdict(one)) for one in history) + "\n  ]"
        for name, history in records.items()
    )
    RATIOS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return records


@dataclass(frozen=True)
class Verdict:
    """A ratio beside the best one that is recorded; *best* is None if none is."""

    case: str
    ratio: float
    best: float | None

    @property
    def difference(self) -> float:
        return self.ratio / self.best - 1 if self.best else 0.0

    @property
    def is_slower(self) -> bool:
        return self.difference > WORSE_BY

    def row(self) -> tuple[str, ...]:
        """Case, ratio, best, difference, and what it means."""
        if self.best is None:
            return self.case, f"{self.ratio:.2f}", "", "", "no record"
        means = "slower" if self.is_slower else "ok, better than before" if self.difference < 0 else "ok"
        return self.case, f"{self.ratio:.2f}", f"{self.best:.2f}", f"{self.difference:+.1%}", means


def compare(found: Mapping[str, Measured], records: Records) -> list[Verdict]:
    return [
        Verdict(name, each.ratio, best(records[name]) if records.get(name) else None) for name, each in found.items()
    ]


def current(records: Records, cases: Sequence[Case] = CASES) -> Iterator[tuple[str, ...]]:
    """A row for each case: work, peer, last and best ratio, goal, extra milliseconds of each request."""
    for case in cases:
        if history := records.get(case.name):
            last = history[-1]
            goal = "" if case.goal is None else f"{case.goal:g}"
            extra = f"{extra_ms(last, case):.2f}" if case.requests else ""
            yield case.name, case.work, case.peer, f"{last.ratio:.2f}", f"{best(history):.2f}", goal, extra


def dates(records: Records, cases: Sequence[Case] = CASES) -> Iterator[tuple[str, ...]]:
    """A row for each date and commit: its ratio of each case."""
    taken = {(each.date, each.commit): None for history in records.values() for each in history}
    for date, commit in sorted(taken, key=lambda one: one[0]):
        figures = (
            [f"{each.ratio:.2f}" for each in records.get(case.name, ()) if (each.date, each.commit) == (date, commit)]
            for case in cases
        )
        yield date, commit, *(each[-1] if each else "" for each in figures)
