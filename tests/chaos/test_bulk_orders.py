"""Orders in lists: exactly once, however requests end. The long form is in `tests.long.test_bulk_orders`."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from tests.chaos.bulk_orders import Knows, orders_arrive_once
from tests.chaos.chance import chaos_seed


@pytest.mark.nightly(but=["repeated", "look_up"])
@pytest.mark.parametrize("knows", get_args(Knows))
def test_orders_arrive_once(tmp_path: Path, knows: Knows) -> None:
    """Lost answers, half executed requests, a refusal of all for one, and a kill: no order twice, none lost."""
    counts = orders_arrive_once(tmp_path, knows, chaos_seed(), orders=80, kills=1)
    assert counts["kills"]
