"""Short form of what exports are promised; ``pytest tests/long/test_dropped_files.py`` runs the long one."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.chance import chaos_seed
from tests.chaos.dropped_files import the_newest_row_wins

from crossdock.state import parse_database_url


def test_the_newest_row_wins(tmp_path: Path) -> None:
    """However exports are named, resent, corrected, late or growing: the platform is right, or a run names a file."""
    told = the_newest_row_wins(tmp_path, parse_database_url("sqlite:///state.db", tmp_path), chaos_seed(), 3, 4)
    assert told[0]
