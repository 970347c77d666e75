"""More orders at ShipBob: ``pytest tests/long/test_threepl_shipbob.py``, ten seconds."""

from __future__ import annotations

import pytest
from tests.e2e import test_threepl_shipbob as short
from tests.e2e.test_threepl_shipbob import (
    clock,
    fake,
    sandbox,
    server,
    stage,
    test_each_shipment_changes_the_order_once_whatever_the_platform_does,
    test_orders_go_out_once,
)

__all__ = [
    "clock",
    "fake",
    "sandbox",
    "server",
    "stage",
    "test_each_shipment_changes_the_order_once_whatever_the_platform_does",
    "test_orders_go_out_once",
]


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short, "ORDERS", 30)
    monkeypatch.setattr(short, "SHIPPED", 18)
