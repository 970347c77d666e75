"""Has crossdock become slower? Its CPU time in a handful of cases, each beside that of a peer in the same run.

A ratio is the user and system time of a process of crossdock over that of its peer's process. The two take turns, so
that what else the machine does hurts them alike; the first turn of each only compiles modules and fills caches. Of
the turns the least counts, on both sides, and not the median: what others do on the machine can only add to a
process's CPU time, and medians of the same work were seen to differ by more than 15 %. There are more turns, up to
three times as many, until the two least of each differ by at most 2 %.

Without ``--record`` each ratio is compared with the best in ``ratios.json``; the command ends with exit 1 if one is
more than 15 % above it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks import ratios, results
from tests.benchmarks.delta_processes import ROOT, Contestant
from tests.benchmarks.ratios import Measured, Verdict
from tests.benchmarks.watch_cases import CASES, Case, Place

ROUNDS, MOST = 5, 3  # at most so many times as many
STEADY_WITHIN = 0.02
NOTES = "CPU seconds of a process over those of its peer, by `python -m tests.benchmarks.watch --record`."


def in_turns(contestants: Sequence[Contestant], rounds: int) -> None:
    """Let each take a turn that does not count, and then at least *rounds* that do."""
    for each in contestants:
        each.take_turn()
        each.spent.clear()
    for number in range(1, MOST * rounds + 1):
        for each in contestants:
            each.take_turn()
        if number >= rounds and all(map(_is_steady, contestants)):
            return


def _is_steady(contestant: Contestant) -> bool:
    least, *others = sorted(contestant.cpu_s)
    return bool(others) and others[0] <= (1 + STEADY_WITHIN) * least


def measured(ours: Contestant, peer: Contestant) -> Measured:
    return Measured(min(ours.cpu_s), min(peer.cpu_s))


def measure(cases: Sequence[Case], rounds: int) -> dict[str, Measured]:
    """Measure each of *cases*, by its name."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, Place(Path(folder)) as place:
        for case in cases:
            ours, peer = case.contestants(place)
            in_turns([ours, peer], rounds)
            found[case.name] = measured(ours, peer)
            print(found[case.name].told(case), file=sys.stderr, flush=True)
    return found


def compared(cases: Sequence[Case] = CASES, rounds: int = ROUNDS) -> list[Verdict]:
    """Measure *cases*, print how each ratio is beside the best that is recorded, and return that."""
    verdicts = ratios.compare(measure(cases, rounds), ratios.load())
    print(*results.table(("case", "ratio", "best", "difference", ""), [each.row() for each in verdicts]), sep="\n")
    return verdicts


def record(cases: Sequence[Case], rounds: int) -> None:
    """Measure *cases*, add their ratios to the record, and write what is recorded into RESULTS.md."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude", "*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    records = ratios.add(measure(cases, rounds), f"{datetime.now(UTC):%Y-%m-%d}", described.stdout.strip())
    current = ("case", "work", "peer", "last", "best", "goal", "extra ms a request")
    results.write("Ratios", current, list(ratios.current(records)), NOTES)
    dates = ("date", "commit", *(case.name for case in CASES))
    results.write("Recorded ratios", dates, list(ratios.dates(records)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="add the ratios to ratios.json and RESULTS.md instead")
    parser.add_argument("--only", nargs="+", choices=[case.name for case in CASES], help="measure these cases")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    cases = [case for case in CASES if not given.only or case.name in given.only]
    if given.record:
        record(cases, given.rounds)
    elif any(each.is_slower for each in compared(cases, given.rounds)):
        sys.exit(1)


if __name__ == "__main__":
    main()
