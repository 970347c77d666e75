"""A thousand orders from the platform to a warehouse and back, in four kinds of files. A quarter of an hour.

``pytest tests/long/test_warehouse_days.py -n 2 -rP``
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.warehouse_days import orders_go_and_come_back
from tests.partners.order_depot import Kind


@pytest.mark.parametrize("kind", get_args(Kind))
def test_orders_go_and_come_back(tmp_path: Path, kind: Kind) -> None:
    """By a book that the warehouse keeps: each order once, changes in order, tracking and stock equal."""
    print(dict(orders_go_and_come_back(tmp_path, kind, orders=1_000, seed=chaos_seed())))
