"""Short form of what lists of hostile APIs are promised; ``pytest tests/long/test_lists.py`` runs the long one."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.chance import chaos_seed
from tests.chaos.lists import no_record_is_lost_silently

from crossdock.state import parse_url


def test_no_record_is_lost_silently(tmp_path: Path) -> None:
    """Whatever pages and totals an API gives: the platform equals its list, or a run says that it does not."""
    told = no_record_is_lost_silently(tmp_path, parse_url("sqlite:///state.db", tmp_path), chaos_seed(), 40)
    assert told[0]
    assert told[4]
