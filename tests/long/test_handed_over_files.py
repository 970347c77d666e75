"""Files for a warehouse at full size: a kill before, in and after each step, lost answers, full disks. Half an hour.

``pytest tests/long/test_handed_over_files.py -n 2 -rP``
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.handed_over_files import KILLS, STEPS, Fault, Trouble, orders_arrive_once
from tests.partners.file_depot import How

FILES = 2  # of each night, at least


@pytest.mark.parametrize("acknowledges", [True, False])
@pytest.mark.parametrize("polls", [True, False])
@pytest.mark.parametrize("how", get_args(How))
def test_orders_arrive_once(tmp_path: Path, how: How, polls: bool, acknowledges: bool) -> None:
    """At each step of two files the run is killed in three ways, or its answer is lost: none twice, none lost."""
    faults: list[Fault] = [*KILLS, "lost"]
    troubles = [Trouble(fault, at, polls=polls) for at in range(1, FILES * STEPS + 1) for fault in faults]
    troubles += [Trouble("full", at, polls=polls) for at in (2, 6)]
    met = orders_arrive_once(tmp_path, how, troubles, chaos_seed(), acknowledges=acknowledges)
    print(dict(met))
    assert sum(met[fault] for fault in KILLS) == len(KILLS) * FILES * STEPS
