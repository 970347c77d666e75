"""Orders out over a bad network: ``pytest tests/long/test_threepl_orders_out.py -n 2``, less than a minute."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.test_threepl_orders_out import NewVendor, every_order_is_there_once, new_vendor

__all__ = ["new_vendor"]  # a fixture


@pytest.mark.parametrize("seed", range(1, 10))
def test_every_order_is_there_once(tmp_path: Path, new_vendor: NewVendor, seed: int) -> None:
    """Whatever the network does, each 3PL has one order of each."""
    every_order_is_there_once(tmp_path, new_vendor, seed)
