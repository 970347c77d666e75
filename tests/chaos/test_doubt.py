"""Answers lost on targets without idempotency keys: nothing twice, nothing lost, and doubt where doubt is."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.doubt_systems import Doubtful, Opener, partner, platform
from tests.e2e.project_folder import balance

SYSTEMS = pytest.mark.parametrize(
    ("system", "share"), [pytest.param(platform, 1, id="platform"), pytest.param(partner, 2, id="partner")]
)  # the share is that of the size


@dataclass(slots=True)
class Figures:
    """What was done. *injected* is what the target says that it did to us, by name."""

    records: int
    injected: Counter[str]
    in_doubt: int
    happened: int
    lost: int
    twice: int
    requests: int


def parked(system: Doubtful, *, records: int) -> Figures:
    """Send records that nobody can ask for again, and decide about each in doubt by what really happened."""
    report, struck = _troubled(system, records, exit_code=1)
    unsettled, created = _in_doubt(system), system.created()
    made = dict(created)
    keys = {f"N{n}" for n in range(records)}
    figures = Figures(
        records=records,
        injected=struck,
        in_doubt=len(unsettled),
        happened=len(unsettled & made.keys()),
        lost=len(keys - made.keys() - unsettled),
        twice=len(created) - len(made),
        requests=report["requests"],
    )
    _enough(system, figures)
    assert (figures.lost, figures.twice) == (0, 0), figures
    assert figures.in_doubt == struck.total() == report["streams"][system.stream]["records"]["carried_on"]
    assert figures.requests == records, "one that is in doubt was sent again"
    assert _sync(system, exit_code=1)["requests"] == 0, "what is in doubt was touched"
    for key in sorted(unsettled):
        word = ("--delivered-as", made[key], "--yes") if key in made else ("--not-delivered",)
        assert system.run("records", "resolve", system.stream, key, *word).exit_code == 0
    assert _sync(system)["requests"] == figures.in_doubt - figures.happened
    _settled(system)
    return figures


def verified(system: Doubtful, *, records: int) -> Figures:
    """Send records that can be looked up; every doubt is gone at the end."""
    report, struck = _troubled(system, records, exit_code=0)
    names = Counter(key for key, _ in system.created())
    figures = Figures(
        records=records,
        injected=struck,
        in_doubt=len(_in_doubt(system)),
        happened=len(names),
        lost=records - len(names),
        twice=names.total() - len(names),
        requests=report["requests"],
    )
    _enough(system, figures)
    assert (figures.in_doubt, figures.lost, figures.twice) == (0, 0, 0), figures
    _settled(system)
    return figures


def _troubled(system: Doubtful, records: int, *, exit_code: int) -> tuple[dict[str, Any], Counter[str]]:
    """The report of a sync of so many records among faults, and how often each fault struck."""
    system.export(records)
    system.begin_faults()
    report = _sync(system, exit_code=exit_code)
    return report, system.end_faults()


def _sync(system: Doubtful, *, exit_code: int = 0) -> dict[str, Any]:
    done = system.run("sync", "--json")
    assert done.exit_code == exit_code, f"{done.stderr}{done.stdout}"
    balance(done.document)
    return done.document


def _in_doubt(system: Doubtful) -> set[str]:
    listed = system.run("records", "list", "--state", "in-doubt", "--limit", "100000", "--json")
    return {each["key"] for each in json.loads(listed.stdout)}


def _settled(system: Doubtful) -> None:
    """Nothing is open, everything is there once, and another sync sends nothing."""
    assert json.loads(system.run("records", "list", "--json").stdout) == []
    assert system.is_whole()
    assert _sync(system)["requests"] == 0


def _enough(system: Doubtful, figures: Figures) -> None:
    planned = 0.4 * figures.records * sum(system.faults.values())
    assert figures.injected.total() >= planned, f"seed {chaos_seed()}: too few faults, {planned:.0f}: {figures}"


@pytest.mark.nightly(but=["platform"])
@SYSTEMS
def test_records_in_doubt_are_as_many_as_answers_were_lost(tmp_path: Path, system: Opener, share: int) -> None:
    """Without keys and look-ups each ambiguous answer is one in doubt, never sent again; a person settles them all."""
    began = time.monotonic()
    with system(tmp_path, look_up=False) as opened:
        figures = parked(opened, records=60 // share)
    print(f"\ndoubt, parked: seed {chaos_seed()}, {figures}, {time.monotonic() - began:.1f} s")


@pytest.mark.nightly(but=["partner"])
@SYSTEMS
def test_records_in_doubt_are_looked_up(tmp_path: Path, system: Opener, share: int) -> None:
    """Without keys but with look-ups no doubt is left, nothing is there twice, nothing is lost."""
    began = time.monotonic()
    with system(tmp_path, look_up=True) as opened:
        figures = verified(opened, records=120 // share)
    print(f"\ndoubt, verified: seed {chaos_seed()}, {figures}, {time.monotonic() - began:.1f} s")
