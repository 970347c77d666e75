"""The migration of 305 days of retail exports: ``pytest tests/long/test_migration.py -rP``, about half an hour.

``CROSSDOCK_CHAOS_SEED`` gives another seed; ``-rP`` shows the figures.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.retail_migration import retail_migration
from tests.e2e.project_folder import DATA_BESIDE, DATA_VARIABLE, exports


@pytest.mark.retail
def test_305_days(tmp_path: Path) -> None:
    """As in the short form; ten loads are killed, and 500 records diverge."""
    if not exports():
        pytest.skip(f"no retail exports: {DATA_VARIABLE} is not set, and {DATA_BESIDE} has none")
    print(retail_migration(tmp_path / "trial", seed=chaos_seed(), days=305, late=15, kills=10, divergences=500))
