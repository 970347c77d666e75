"""Short form of what the books of shops are promised; ``pytest tests/long/test_shop_money.py`` runs the long one."""

from __future__ import annotations

from tests.chaos.chance import chaos_seed
from tests.chaos.shop_money import shopify_money, woocommerce_money


def test_the_books_of_shopify_equal_the_shop() -> None:
    """Invoices and credit notes are what buyers have paid and got back, after edits and refunds in every state."""
    happened = shopify_money(chaos_seed(), 40)
    assert happened["equal"] > 40
    assert min(happened[each] for each in ("edit", "pending refund", "failure refund", "settled")) > 0, happened


def test_the_books_of_woocommerce_equal_the_shop() -> None:
    """Whatever decimals the merchant chose for his currency."""
    happened = woocommerce_money(chaos_seed(), 40)
    assert happened["equal"] > 40, happened
    assert happened["refund"] > 0
