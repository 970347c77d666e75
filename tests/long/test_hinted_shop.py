"""Many shops whose hints are lost, doubled and reordered while runs list them, also in threads.

pytest tests/long/test_hinted_shop.py -n 2 -rP
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.hinted_shop import Listing, hinted_shop

from crossdock.state import StateUrl


@pytest.mark.parametrize("listing", get_args(Listing))
@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("races", [False, True])
def test_no_update_is_lost_and_none_goes_back(
    tmp_path: Path, state_url: StateUrl, listing: Listing, versioned: bool, races: bool
) -> None:
    """As tests/chaos/test_hinted_shop.py, with more shops, and with threads."""
    happened = hinted_shop(
        tmp_path,
        state_url,
        listing=listing,
        versioned=versioned,
        steps=150,
        seed=chaos_seed(),
        rounds=20,
        races=races,
    )
    assert happened["lost"] > 50
    assert happened["doubled"] > 50
