"""Hints that are lost, doubled and reordered, between runs and in the middle of them, against a sequential model."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.hinted_shop import Listing, hinted_shop

from crossdock.state import StateUrl

FAULTS = ("lost", "doubled", "changed in list", "changed in fetch", "worked while a run listed")


@pytest.mark.parametrize(
    ("state_url", "listing", "versioned"),
    [  # all that the engine distinguishes, half of it on each database; tests/long has all on both
        ("sqlite", "all", False),
        ("sqlite", "changes", True),
        ("sqlite", "snapshot", False),
        pytest.param("postgresql", "all", True, marks=pytest.mark.postgres),
        pytest.param("postgresql", "changes", False, marks=pytest.mark.postgres),
        pytest.param("postgresql", "snapshot", True, marks=pytest.mark.postgres),
    ],
    indirect=["state_url"],
)
def test_no_update_is_lost_and_none_goes_back(
    tmp_path: Path, state_url: StateUrl, listing: Listing, versioned: bool
) -> None:
    """Whatever becomes of hints, the next run has brought everything, and no older version was ever written."""
    happened = hinted_shop(
        tmp_path, state_url, listing=listing, versioned=versioned, steps=60, seed=chaos_seed(), rounds=2
    )
    assert all(happened[fault] for fault in FAULTS), happened
