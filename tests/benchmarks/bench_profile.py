"""Where the CPU time of a plan, a first load and a start goes: a table for each, beside that of its floor.

The floor of a plan is a process of ``pl.read_csv``, which a plan needs as well; that of a start is
``import polars, sqlalchemy``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path

from tests.benchmarks import results
from tests.benchmarks.delta_processes import Contestant, run
from tests.benchmarks.watch_cases import CASES, Place, Sizes

PROFILED = ("plan", "unchanged", "changed", "load")
LEAST = 0.02  # share of what has a row of its own
REPEATS = 3


def profile(ours: Contestant, repeats: int) -> Mapping[tuple[str, str], float]:
    """Return the CPU seconds of a command by package and library, the mean of several runs."""
    found = defaultdict[tuple[str, str], float](float)
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "samples.json")
            contestant = Contestant(ours.name, sampled(ours.command, path), ours.found, ours.wanted, ours.fresh)
            contestant.take_turn()
            for package, library, seconds in json.loads(path.read_text(encoding="utf-8")):
                found[package, library] += seconds / repeats
    return found


def sampled(command: Sequence[str], path: Path) -> list[str]:
    """Return *command*, which is ``PYTHON -m MODULE ...``, writing where its time goes."""
    interpreter, how, *rest = command
    assert how == "-m"
    return [interpreter, how, "tests.benchmarks.sampled", str(path), *rest]


def rows(found: Mapping[tuple[str, str], float]) -> list[tuple[str, ...]]:
    """Return the rows of a table: package, library, milliseconds and share, the largest first."""
    whole, by_size = sum(found.values()), sorted(found.items(), key=itemgetter(1), reverse=True)
    large = [(place, seconds) for place, seconds in by_size if seconds >= LEAST * whole]
    rest = whole - sum(seconds for _, seconds in large)
    shown = [*large, (("each below 2 %", ""), rest)]
    return [(*place, f"{1000 * seconds:,.0f}", f"{100 * seconds / whole:.0f} %") for place, seconds in shown]


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=PROFILED, help="of tests.benchmarks.watch")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Place(Path(folder), Sizes(records=40_000)) as place:
        for case in (each for each in CASES if each.name in options.cases):
            ours, peer = case.contestants(place)
            found = profile(ours, options.repeats)
            floor = min(run(peer.command).cpu_s for _ in range(options.repeats))
            results.write(
                f"Where the CPU time goes: {case.work}",
                ("asked for by", "done by", "ms", "share"),
                rows(found),
                f"{1000 * sum(found.values()):,.0f} ms in all; {case.peer} alone takes {1000 * floor:,.0f} ms.",
            )


if __name__ == "__main__":
    main()
