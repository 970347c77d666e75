"""What effects of a sandbox amount to, and how two of them differ."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

from crossdock.testing.sandbox_effects_comparison import (
    count_effects_by_body,
    count_stored_records_by_body,
    describe_count_differences,
)


def effect(operation: str, resource: str, own_id: str, **body: Any) -> dict[str, Any]:
    return {"operation": operation, "resource": resource, "id": own_id, "body": {"id": own_id, **body}}


CUSTOMER = effect("create", "customer", "cus_1", externalId="shop:7", name="Ada", createdAt="now")
INVOICE = {"customerId": "cus_1", "items": [{"unitPrice": Decimal("9.50")}]}


def test_ids_are_replaced_and_equal_invoices_counted() -> None:
    """Members that the platform adds are left out; two invoices with equal bodies are two."""
    happened = [
        CUSTOMER,
        effect("create", "invoice", "inv_1", **INVOICE),
        effect("create", "invoice", "inv_2", **INVOICE),
    ]
    assert count_stored_records_by_body(happened) == {
        'customer {"externalId":"shop:7","name":"Ada"}': 1,
        'invoice {"customerId":"shop:7","items":[{"unitPrice":9.5}]}': 2,
    }


def test_the_last_body_is_stored_and_every_effect_is_done() -> None:
    """An update replaces the body, and a deleted record is not stored; each is an effect of its own."""
    updated = effect("update", "customer", "cus_1", externalId="shop:7", name="Bo")
    deleted = effect("delete", "customer", "cus_1", externalId="shop:7", name="Bo")
    assert list(count_stored_records_by_body([CUSTOMER, updated])) == ['customer {"externalId":"shop:7","name":"Bo"}']
    assert not count_stored_records_by_body([CUSTOMER, updated, deleted])
    assert [each.split()[0] for each in count_effects_by_body([CUSTOMER, updated, deleted])] == [
        "create",
        "update",
        "delete",
    ]


def test_differences_are_counted_by_kind() -> None:
    """What is missing, what is there more than once, and what was never expected."""
    assert describe_count_differences(Counter("aab"), Counter("aab")) == ""
    assert describe_count_differences(Counter("ab"), Counter("bb")).split("\n")[1:] == [
        "  1 missing, such as a",
        "  1 delivered more than once, such as b",
    ]
    assert "1 unexpected, such as c" in describe_count_differences(Counter("a"), Counter("ac"))
