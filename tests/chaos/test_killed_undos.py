"""A killed undo or repair is completed without a source; ``tests/long/test_undo.py`` kills at each boundary."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.killed_undos import killed_repair, killed_undo


def test_a_killed_undo_is_completed(tmp_path: Path) -> None:
    """Its streams are not synced before; afterwards nothing of the run is there, and each record was deleted once."""
    killed_undo(tmp_path, "run", "sent", 3, "after")


@pytest.mark.nightly
def test_a_killed_repair_is_settled(tmp_path: Path) -> None:
    """Without reading a source; a new export delivers the rest, and nothing is created twice."""
    killed_repair(tmp_path, "sent", 2, "after", "resume")
