"""Other edits after the plan of an undo, and undos, repairs and waves that are killed at each step boundary:
``pytest tests/long/test_undo.py``, five minutes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from tests.chaos.killed_undos import (
    REPAIR_POINTS,
    UNDO_POINTS,
    WAVE_POINTS,
    Undone,
    killed_repair,
    killed_undo,
    killed_wave,
)
from tests.e2e.conftest import platform, site
from tests.e2e.test_undo import an_edit_after_the_plan_is_noticed, synced
from tests.e2e.warehouse import Site

__all__ = ["platform", "site", "synced"]  # fixtures


@pytest.mark.parametrize(("member", "key"), [("barcode", "P2"), ("name", "P3")])
def test_an_edit_after_the_plan_is_noticed(synced: Site, member: str, key: str) -> None:
    """Nothing is done then, whether the record would be restored or deleted; a new plan leaves it alone."""
    an_edit_after_the_plan_is_noticed(synced, member, key)


@pytest.mark.parametrize("undone", ["migration", "run"])
@pytest.mark.parametrize(("point", "nth", "side"), UNDO_POINTS)
def test_a_killed_undo_is_completed(tmp_path: Path, undone: Undone, point: str, nth: int, side: str) -> None:
    """Or nothing of it was done; nothing that it deletes is created before it has ended."""
    killed_undo(tmp_path, undone, point, nth, side)


@pytest.mark.parametrize("first", ["resume", "sync"])
@pytest.mark.parametrize(("point", "nth", "side"), REPAIR_POINTS)
def test_a_killed_repair_is_settled(
    tmp_path: Path, point: str, nth: int, side: str, first: Literal["resume", "sync"]
) -> None:
    """Whatever is run next, the platform becomes what the source says, and nothing is created twice."""
    killed_repair(tmp_path, point, nth, side, first)


@pytest.mark.parametrize(("point", "nth", "side"), WAVE_POINTS)
def test_a_killed_wave_is_settled(tmp_path: Path, point: str, nth: int, side: str) -> None:
    """Without reading the new export, so that it can be undone."""
    killed_wave(tmp_path, point, nth, side)
