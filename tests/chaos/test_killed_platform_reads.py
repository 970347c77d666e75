"""Reading the platform in processes that are killed while its records change."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos import killed_platform_reads
from tests.chaos.chance import chaos_seed


@pytest.mark.nightly
def test_kills_while_the_platform_changes(tmp_path: Path) -> None:
    """Each record that exists is copied once, in its last version."""
    killed_platform_reads.killed_reads(tmp_path, seed=chaos_seed(), records=150, kills=2)
