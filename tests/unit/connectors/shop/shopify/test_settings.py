"""Settings of a connection to a Shopify shop."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from crossdock_connectors.shop.settings import CHARGES
from crossdock_connectors.shop.shopify.queries import VERSION
from crossdock_connectors.shop.shopify.settings import ShopifySettings

BASE = {"kind": "shopify", "base_url": "https://lamps.myshopify.com", "token": "env:TOKEN"}


def made(**settings: Any) -> ShopifySettings:
    return ShopifySettings.model_validate({**BASE, **settings})


def test_three_keys_are_enough() -> None:
    """Everything else has a default, and the version of the API is crossdock's."""
    assert made().endpoint == f"/admin/api/{VERSION}/graphql.json"
    assert (made().guests, made().invoices, made().refunds, made().bulk) == ("email", "paid", "credit_note", True)


def test_charges_and_statuses_add_to_the_usual_ones() -> None:
    """A configured one replaces one, the others stay."""
    settings = made(charges={"tax": {"sku": "VAT", "name": "VAT 19 %"}}, statuses={"ON_HOLD": "held"})
    assert (settings.product_by_charge_kind["tax"].sku, settings.product_by_charge_kind["tip"]) == (
        "VAT",
        CHARGES["tip"],
    )
    assert (
        settings.platform_status_by_shop_status["ON_HOLD"],
        settings.platform_status_by_shop_status["FULFILLED"],
    ) == ("held", "shipped")
    assert settings.product_by_charge_kind.keys() == CHARGES.keys()


@pytest.mark.parametrize(
    "wrong",
    [
        {"page_size": 0}, {"page_size": 251}, {"bulk_timeout_s": 0}, {"currency": "EUR"}, {"invoices": "later"},
        {"charges": {"rebate": {"sku": "R", "name": "R"}}}, {"first": "yesterday"}, {"shop": "lamps"},
        {"base_url": "http://lamps.myshopify.com"}, {"base_url": "https://user:secret@lamps.myshopify.com"},
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_setting_is_refused(wrong: dict[str, Any]) -> None:
    """With the name of the setting, before anything is requested."""
    with pytest.raises(ValidationError):
        made(**wrong)
