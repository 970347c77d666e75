"""When the records of a stream are mapped again."""

from __future__ import annotations

from typing import Any

import pytest

from crossdock.sources import HttpSettings
from crossdock_connectors.record_mapping_in_code import version_of_mapping_and_settings
from crossdock_connectors.shop.settings import MAPPED as MAPPED_NAMES
from crossdock_connectors.shop.shopify.settings import ShopifySettings

BASE = {"kind": "shopify", "base_url": "https://lamps.myshopify.com", "token": "env:TOKEN"}
MAPPED: list[dict[str, Any]] = [
    {"charges": {"fee": {"sku": "F", "name": "Fee"}}}, {"currency": "presentment"}, {"guests": "one"},
    {"invoices": "placed"}, {"locations": {"7": "BER"}}, {"lot": "L"}, {"product_key": "sku"},
    {"product_namespace": "erp"}, {"progress": "other"}, {"refunds": "reject"}, {"statuses": {"OPEN": "new"}},
    {"cities": {"SG": "SG"}}, {"clean": False}, {"differences": "line"}, {"incomplete_addresses": "reject"},
    {"stock_quantity": "available"}, {"unit_of_measure": "EA"}, {"warehouse": "W"},
]  # fmt: skip
READ: list[dict[str, Any]] = [
    {"base_url": "https://other.myshopify.com"}, {"bulk": False}, {"bulk_timeout_s": 60}, {"file_hosts": ["a.example"]},
    {"first": "2026-01-01T00:00:00Z"}, {"page_size": 10}, {"test_orders": True}, {"timeout_s": 5},
    {"token": "env:OTHER"}, {"total_timeout_s": 9}, {"webhooks": {"secrets": ["env:S"]}},
    {"client_id": "env:ID", "client_secret": "env:S", "token": None},
    {"app": "public", "client_id": "env:ID", "client_secret": "env:S", "token": None, "tokens": "t.json"},
    {"redirect_url": "https://a.example"}, {"scopes": ["read_orders"]},
]  # fmt: skip


def version(mapping: int = 1, **settings: Any) -> str:
    return version_of_mapping_and_settings(ShopifySettings.model_validate({**BASE, **settings}), MAPPED_NAMES, mapping)


@pytest.mark.parametrize("changed", MAPPED, ids=lambda changed: next(iter(changed)))
def test_a_setting_that_the_mapping_uses_maps_again(changed: dict[str, Any]) -> None:
    """Drafts would differ, so the records are compared again."""
    assert version(**changed) != version()


@pytest.mark.parametrize("changed", READ, ids=lambda changed: next(iter(changed)))
def test_other_settings_do_not(changed: dict[str, Any]) -> None:
    """How records are read changes no draft."""
    assert version(**changed) == version()


def test_a_new_mapping_maps_again() -> None:
    """The number of the mapping is part of the version."""
    assert version(2) != version(1)


def test_each_setting_is_in_one_of_the_lists() -> None:
    """A new setting must be decided about."""
    known = {name for each in (*MAPPED, *READ) for name in each}
    assert ShopifySettings.model_fields.keys() - HttpSettings.model_fields.keys() - {"kind"} <= known


def test_the_version_stays() -> None:
    """Another one with the same settings would map all records again after an update."""
    assert version() == "1:ddfe3c57a339ba9ab4e25c466c13058f"
