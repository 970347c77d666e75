"""Each difference alone: ``pytest tests/long/test_reconcile.py``, half a minute."""

from __future__ import annotations

import pytest
from tests.e2e.conftest import platform, site
from tests.e2e.test_reconcile import EACH, Seeded, differences_are_found_and_repaired, names_of, synced
from tests.e2e.warehouse import Site

__all__ = ["platform", "site", "synced"]  # fixtures


@pytest.mark.parametrize("seeded", EACH, ids=lambda seeded: names_of([seeded]))
def test_a_difference_is_found_and_repaired(synced: Site, seeded: Seeded) -> None:
    """Exactly the seeded difference is found; its repair leaves none, and invoices as they were."""
    differences_are_found_and_repaired(synced, [seeded])
