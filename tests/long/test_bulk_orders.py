"""Orders in lists, with 150 kills: ``pytest tests/long/test_bulk_orders.py -n 2 -rP``, twenty minutes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import get_args

import pytest
from tests.chaos.bulk_orders import Knows, orders_arrive_once
from tests.chaos.chance import chaos_seed

ROUNDS, KILLS = 10, 5


@pytest.mark.parametrize("knows", get_args(Knows))
def test_orders_arrive_once(tmp_path: Path, knows: Knows) -> None:
    """In every round each order arrives once, or is in doubt where the API has no way to find out."""
    counts = Counter[str]()
    for number in range(ROUNDS):
        counts += orders_arrive_once(tmp_path / str(number), knows, chaos_seed() + number, orders=400, kills=KILLS)
    print(f"{knows}: {dict(counts)}")
    assert counts["kills"] >= 2 * ROUNDS
