"""More than a hundred damaged deliveries: ``pytest tests/long/test_legacy_files.py``, ten seconds."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.conftest import platform
from tests.e2e.test_legacy_files import damaged_deliveries_are_refused_whole

from crossdock.sandbox import SandboxServer

__all__ = ["platform"]  # a fixture


def test_damaged_deliveries_are_refused_whole(tmp_path: Path, platform: SandboxServer) -> None:
    """Each with its reason and place; nothing of it is delivered, and the good delivery after it is."""
    assert damaged_deliveries_are_refused_whole(tmp_path, platform, many=5) >= 100
