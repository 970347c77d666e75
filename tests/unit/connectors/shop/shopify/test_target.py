"""The requests of the target for Shopify shops: names, keys, and what a parcel changes besides itself."""

from __future__ import annotations

from typing import Any

import pytest

from crossdock import RecordError
from crossdock.targets import Answer, ExpectedRecord, Update
from crossdock.testing.connector_context_and_reading import context
from crossdock.values import exact_json
from crossdock.values.record_keys import key_text
from crossdock_connectors.shop.shopify import CONNECTOR
from crossdock_connectors.shop.shopify.target import ShopifyTarget


@pytest.fixture(name="target")
def _target(monkeypatch: pytest.MonkeyPatch) -> ShopifyTarget:
    monkeypatch.setenv("SHOP_TOKEN", "shpat_secret")
    settings = {"base_url": "https://lamps.myshopify.com", "token": "env:SHOP_TOKEN"}
    return ShopifyTarget(context(CONNECTOR, settings).settings)


def variables(body: bytes | None) -> Any:
    return exact_json.loads(body or b"")["variables"]


@pytest.mark.parametrize(("resource", "what"), [("fulfillments", "tracking number"), ("stock", "SKU and the location")])
def test_a_key_that_says_too_little_is_refused(target: ShopifyTarget, resource: str, what: str) -> None:
    """The look-up needs both parts of the key."""
    target.check_key(resource, "depot", "1001|N1")
    with pytest.raises(RecordError, match=what):
        target.check_key(resource, "depot", "1001")
    with pytest.raises(RecordError, match="exceed 200 characters"):
        target.check_key(resource, "depot", f"1001|{'9' * 200}")


def test_only_stock_has_an_idempotency_key(target: ShopifyTarget) -> None:
    """It is in the body, where the mutation's directive takes it; `fulfillmentCreate` knows none."""
    update = Update({"quantity": 5}, {"quantity": 7}, {"quantity": 7})
    stock = target.with_key("stock", target.update("stock", "7-42", update), "key-1")
    assert variables(stock.body)["key"] == "key-1"
    assert variables(stock.body)["input"]["quantities"][0]["changeFromQuantity"] == 5
    look_up = target.look_up("fulfillments", "1001|N1", None)
    assert target.with_key("fulfillments", look_up, "key-1") == look_up


def test_look_ups_ask_for_the_parts_of_the_name(target: ShopifyTarget) -> None:
    """Stock that is known is looked up by its item, other stock by its SKU; a name without parts is no record's."""
    assert variables(target.look_up("fulfillments", "1001|N1", None).body) == {"id": "gid://shopify/Order/1001"}
    by_sku = variables(target.look_up("stock", key_text(("A|1", "42")), None).body)
    assert by_sku == {"found": 'sku:"A|1"', "location": "gid://shopify/Location/42"}
    by_id = variables(target.look_up("stock", None, "7-42").body)
    assert by_id == {"item": "gid://shopify/InventoryItem/7", "location": "gid://shopify/Location/42"}
    answer = Answer(200, {}, b'{"data": {"shop": {"id": "1"}}}')
    assert target.found("stock", answer, ExpectedRecord(name="0123456789abcdef")).kind == "absent"


def test_a_parcel_changes_the_stock_of_its_products(target: ShopifyTarget) -> None:
    """The shop takes its units from its own count; of a parcel without items, any product may be in it."""
    items = [{"sku": "A|1", "quantity": 1}, {"sku": "B", "quantity": 2}]
    assert list(target.also_changes("fulfillments", {"items": items})) == [("stock", "A%7C1|"), ("stock", "B|")]
    assert list(target.also_changes("fulfillments", {})) == [("stock", "")]
    assert list(target.also_changes("stock", {"quantity": 1})) == []


@pytest.mark.parametrize(
    ("resource", "payload", "kind", "target_id"),
    [
        ("fulfillments", {"fulfillment": {"id": "gid://shopify/Fulfillment/9"}, "userErrors": []}, "delivered", "9"),
        ("fulfillments", {"fulfillment": None, "userErrors": []}, "in_doubt", None),
        ("stock", {"inventoryAdjustmentGroup": None, "userErrors": []}, "delivered", "7-42"),
        ("stock", None, "in_doubt", None),
    ],
)
def test_a_mutation_is_delivered_if_the_shop_says_so(
    target: ShopifyTarget, resource: str, payload: Any, kind: str, target_id: str | None
) -> None:
    """A parcel needs the shop's id; a quantity that was there already has no group of changes."""
    mutation = "fulfillmentCreate" if resource == "fulfillments" else "inventorySetQuantities"
    answer = Answer(200, {}, exact_json.dumps({"data": {mutation: payload}}))
    outcome = target.outcome(resource, answer, ExpectedRecord(target_id="7-42" if resource == "stock" else None))
    assert (outcome.kind, outcome.target_id) == (kind, target_id)


@pytest.mark.parametrize("status", [200, 400, 402, 404, 500, 502, 503])
def test_a_look_up_that_fails_decides_nothing(target: ShopifyTarget, status: int) -> None:
    """An error page or an answer without data shows neither that the record is there nor that it is not."""
    for resource, name in (("fulfillments", "1001|N1"), ("stock", "LAMP|42")):
        found = target.found(resource, Answer(status, {}, b"<html>"), ExpectedRecord(name=name))
        assert found.kind == "unavailable"


@pytest.mark.parametrize(
    ("resource", "expected", "data"),
    [
        ("fulfillments", ExpectedRecord(name="1001|N1"), {"order": {"id": "1", "fulfillments": None}}),
        ("fulfillments", ExpectedRecord(name="1001|N1"), {}),
        (
            "stock",
            ExpectedRecord(name="LAMP|42"),
            {"inventoryItems": {"nodes": None, "pageInfo": {"hasNextPage": False}}},
        ),
        ("stock", ExpectedRecord(target_id="7-42"), {}),
    ],
)
def test_a_look_up_that_lacks_a_part_is_in_doubt(
    target: ShopifyTarget, resource: str, expected: ExpectedRecord, data: Any
) -> None:
    """It is asked again, and after repeated failures left to the next run, without the others."""
    outcome = target.found(resource, Answer(200, {}, exact_json.dumps({"data": data})), expected)
    assert (outcome.kind, "answered a look-up that cannot be read: /data/" in outcome.message) == ("in_doubt", True)


def test_a_look_up_may_be_throttled_or_refused(target: ShopifyTarget) -> None:
    """It is the first request about each record, so a wrong token shows there; a pause that is asked for is obeyed."""
    expected = ExpectedRecord(name="1001|N1")
    throttled = target.found("fulfillments", Answer(429, {"retry-after": "2.0"}, b"{}"), expected)
    assert (throttled.kind, throttled.retry_after_s) == ("throttled", 2.0)
    assert target.found("fulfillments", Answer(401, {}, b"{}"), expected).kind == "unauthorized"
