"""The migration of retail exports, in small; the full size is in tests/long."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.retail_migration import retail_migration
from tests.e2e.project_folder import DATA_BESIDE, DATA_VARIABLE, exports


@pytest.mark.retail
def test_a_migration_is_loaded_reconciled_repaired_and_undone(tmp_path: Path) -> None:
    """Kills lose and double nothing, every divergence is found and no other, and the undo leaves what was before."""
    if not exports():
        pytest.skip(f"no retail exports: {DATA_VARIABLE} is not set, and {DATA_BESIDE} has none")
    print(retail_migration(tmp_path / "trial", seed=chaos_seed(), days=2, late=1, kills=3, divergences=60))
