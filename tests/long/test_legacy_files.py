"""More than a hundred damaged and forty hostile deliveries: ``pytest tests/long/test_legacy_files.py``, two minutes."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.conftest import platform
from tests.e2e.test_legacy_files import damaged_deliveries_are_refused_whole, hostile_sheets_are_refused
from tests.unit.formats.hostile_sheets import HARMLESS, HOSTILE

from crossdock.sandbox import SandboxServer

__all__ = ["platform"]  # a fixture


def test_damaged_deliveries_are_refused_whole(tmp_path: Path, platform: SandboxServer) -> None:
    """Each with its reason and place; nothing of it is delivered, and the good delivery after it is."""
    assert damaged_deliveries_are_refused_whole(tmp_path, platform, many=5) >= 100


def test_hostile_sheets_do_not_keep_other_streams_from_being_delivered(tmp_path: Path, platform: SandboxServer) -> None:
    """As in the short form, with every way to grow that is known."""
    hostile_sheets_are_refused(tmp_path, platform, [name for name in HOSTILE if name not in HARMLESS])
