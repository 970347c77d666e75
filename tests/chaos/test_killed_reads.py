"""Reading an API in processes that are killed: in a first load, and while its records change."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos import killed_reads
from tests.chaos.chance import chaos_seed

from crossdock.runs.parts_between_checkpoints import PART_ROWS


@pytest.mark.nightly
def test_a_first_load_that_is_killed_reads_little_twice(tmp_path: Path) -> None:
    """Each kill costs a part and a page at most, and each record is created once."""
    read, least = killed_reads.first_load(tmp_path, records=2_000, page_size=250, kills=1)
    assert least < read <= least + PART_ROWS // 250 + 1


@pytest.mark.nightly(but=["0"])
@pytest.mark.parametrize("number", range(2))
def test_kills_while_records_change(tmp_path: Path, number: int) -> None:
    """Listed by time of change and by id: nothing is lost, stale or doubled."""
    killed_reads.killed_anywhere(tmp_path, seed=chaos_seed() + number, records=200, kills=2)
