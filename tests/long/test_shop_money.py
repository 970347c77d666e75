"""The books of shops at full size: ``pytest tests/long/test_shop_money.py -rP``, some minutes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.shop_money import shopify_money, woocommerce_money


@pytest.mark.parametrize("trial", [shopify_money, woocommerce_money])
def test_two_thousand_orders(trial: Callable[[int, int], Counter[str]]) -> None:
    """As in the short form."""
    print(dict(trial(chaos_seed(), 2_000)))
