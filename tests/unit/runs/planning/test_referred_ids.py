"""The ids that a payload holds are found in every resource and action."""

from __future__ import annotations

from typing import Any

import pytest

from crossdock.mapping.resource_types import WRITABLE_RESOURCE_TYPES
from crossdock.runs.planning.references import referred_resources_and_ids

LINES = [{"productId": "prd_1", "quantity": 2, "unitPrice": 1}, {"productId": "prd_2", "quantity": 1, "unitPrice": 1}]
ORDER = {"externalId": "wms:1", "customerId": "cus_1", "currency": "EUR", "items": LINES}
OF_LINES = {("customer", "cus_1"), ("product", "prd_1"), ("product", "prd_2")}


@pytest.mark.parametrize(
    ("resource", "payload", "expected"),
    [
        ("invoice", {**ORDER, "autoPostLedger": True}, OF_LINES),
        ("order", {**ORDER, "tracking": [{"carrier": "X", "number": "prd_9"}], "status": "open"}, OF_LINES),
        ("order", {"status": "shipped"}, set()),
        (
            "inventory_lot",
            {"productId": "prd_1", "binId": "bin_1", "lotNumber": "7"},
            {("product", "prd_1"), ("warehouse_bin", "bin_1")},
        ),
        ("inventory_lot", {"productId": "prd_1", "binId": None}, {("product", "prd_1")}),
        ("ledger_account", {"code": "4000", "parentId": "acc_1"}, {("ledger_account", "acc_1")}),
        ("product", {"externalId": "wms:1", "sku": "prd_1"}, set()),
        (
            "lot_movement",
            {"lotId": "lot_1", "toBinId": "bin_1"},
            {("inventory_lot", "lot_1"), ("warehouse_bin", "bin_1")},
        ),
        ("invoice_approval", {"invoiceId": "inv_1"}, {("invoice", "inv_1")}),
        ("invoice", {"customerId": 7, "items": "none"}, set()),
        ("invoice", {}, set()),
    ],
)
def test_references_are_found(resource: str, payload: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    """Also in lists; names and other texts that look like ids are none, and neither is what has another form."""
    assert set(referred_resources_and_ids(WRITABLE_RESOURCE_TYPES[resource], payload)) == expected


@pytest.mark.parametrize("resource", sorted(WRITABLE_RESOURCE_TYPES))
def test_each_kind_has_a_member_for_each_resource_that_it_refers_to(resource: str) -> None:
    """A resource that gets a new reference is covered."""
    kind = WRITABLE_RESOURCE_TYPES[resource]
    members = ("customerId", "productId", "binId", "parentId", "lotId", "toBinId", "invoiceId")
    payload = dict.fromkeys(members, "x") | {"items": [{"productId": "x"}]}
    assert {found for found, _ in referred_resources_and_ids(kind, payload)} == kind.parents
