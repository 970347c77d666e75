"""The mappings of the 3PLs, their settings, and what their targets make of answers: all of it pure."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from crossdock import RawBatch, Record, RecordError, Reference
from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.targets import Answer, ExpectedRecord
from crossdock.values import exact_json
from crossdock.values.record_keys import key_text
from crossdock_connectors.threepl.amazon_mcf import mapping as amazon
from crossdock_connectors.threepl.amazon_mcf.settings import AmazonMcfSettings
from crossdock_connectors.threepl.amazon_mcf.target import AmazonFulfillmentOrder, AmazonMoney, AmazonTarget
from crossdock_connectors.threepl.record_values import ProductSkus, key_of_external_id, possible_external_ids_of_key
from crossdock_connectors.threepl.shipbob import mapping as shipbob
from crossdock_connectors.threepl.shipbob.settings import Bills, ShipBobSettings
from crossdock_connectors.threepl.shipbob.target import OrderedProduct, ShipBobOrder, ShipBobTarget
from crossdock_connectors.threepl.shipbob.target import read_refusal_in_body as shipbob_refusal

OWN = ProductSkus(None, {})
SHIPBOB = {"kind": "shipbob", "token": "env:TOKEN", "owner": "10", "channel": 1}


def record(item: Any, *key: str) -> Record:
    batch = RawBatch.json([item], source="page")
    return Record(key_text(key or ("1",)), (batch.load().drop("_line").to_dicts()[0],), "page", (1,))


@given(st.text(min_size=1).filter(lambda key: "\x00" not in key))
def test_a_name_gives_its_key_back(key: str) -> None:
    """Whatever the key is, it is found in the external id of the order, and not in that of another namespace."""
    name = f"platform:{key_text((key,))}"
    assert key_of_external_id(name, "platform") == key
    assert key_of_external_id(name, "plat") is None


@given(st.lists(st.text(min_size=1).filter(lambda part: "\x00" not in part and "|" not in part), min_size=1))
def test_a_key_gives_its_name_back(parts: list[str]) -> None:
    """An order can be asked for by the key that its name has given, whether the record's key has one part or more."""
    name = f"platform:{key_text(parts)}"
    key = key_of_external_id(name, "platform")
    assert key is not None
    names = possible_external_ids_of_key(key, "platform")
    assert name in names
    assert all("," not in each for each in names)
    assert {key_of_external_id(each, "platform") for each in names} == {key}


@pytest.mark.parametrize(
    "name", [None, 5, "", "platform", "platform:", "by hand", "Platform:1", "platform:%31", "platform:a b"]
)
def test_other_names_are_not_ours(name: Any) -> None:
    """An order with any other name is not ours."""
    assert key_of_external_id(name, "platform") is None


@pytest.mark.parametrize("status", ["CompletePartialled", "COMPLETE_PARTIALLED", "COMPLETEPARTIALLED"])
def test_amazon_spells_a_status_in_two_ways(status: str) -> None:
    """The enumeration and the examples of Amazon's document mean the same."""
    shipment = {"fulfillmentShipmentStatus": "SHIPPED", "fulfillmentShipmentPackage": []}
    order = record({"fulfillmentOrder": {"fulfillmentOrderStatus": status}, "fulfillmentShipments": [shipment]})
    assert amazon.status_and_parcels_of_order(order, AmazonMcfSettings.known_statuses)["status"] == "shipped_short"


@pytest.mark.parametrize(
    ("lost", "expected"),
    [({"unfulfillableQuantity": 1}, "shipped_short"), ({"cancelledQuantity": 2}, "shipped_short"), ({}, "shipped")],
)
def test_a_complete_order_of_amazon_may_lack_units(lost: dict[str, int], expected: str) -> None:
    """Amazon's tutorial "Track a partially fulfilled order" shows the status Complete beside unfulfillable units."""
    shipment = {"fulfillmentShipmentStatus": "SHIPPED", "fulfillmentShipmentPackage": []}
    items = [{"sellerSku": "LAMP", "quantity": 3, "cancelledQuantity": 0, "unfulfillableQuantity": 0, **lost}]
    order = {"fulfillmentOrder": {"fulfillmentOrderStatus": "Complete"}, "fulfillmentShipments": [shipment]}
    progress = amazon.status_and_parcels_of_order(
        record({**order, "fulfillmentOrderItems": items}), AmazonMcfSettings.known_statuses
    )
    assert progress["status"] == expected


def test_an_unknown_status_is_refused() -> None:
    """The reason names the place, and not the value."""
    with pytest.raises(RecordError, match="not in the setting statuses") as caught:
        amazon.status_and_parcels_of_order(record({"fulfillmentOrder": {"fulfillmentOrderStatus": "Lost"}}), {})
    assert caught.value.pointer == "/fulfillmentOrder/fulfillmentOrderStatus"


def test_statuses_add_to_the_usual_ones() -> None:
    """A configured status replaces one, the others stay."""
    settings = ShipBobSettings.model_validate({**SHIPBOB, "statuses": {"Exception": "on_hold"}})
    assert settings.platform_status_by_3pl_status["Exception"] == "on_hold"
    assert settings.platform_status_by_3pl_status["Fulfilled"] == "shipped"


def lot(**members: Any) -> Record:
    about = {"owner": "10", "inventory_id": 5, "sku": "LAMP", "lot": "L1", "location_id": 8, "state": "fulfillable"}
    return record({**about, "quantity": 3, **members})


def test_a_lot_names_product_and_bin() -> None:
    """By default the product is in ShipBob's own list; else it is another connection's, by our SKU."""
    draft = shipbob.inventory_lot(lot(), OWN, {"fulfillable": "available"}, "EA")
    assert (draft.product_id, draft.bin_id) == (
        Reference("product", ("10", "5")),
        Reference("warehouse_bin", ("10", "8")),
    )
    assert (draft.quantity, draft.status) == (Decimal(3), "available")
    other = shipbob.inventory_lot(lot(), ProductSkus("erp", {"LAMP": "OURS"}), {}, None)
    assert other.product_id == Reference("product", "OURS", "erp")


@pytest.mark.parametrize(
    ("members", "pointer"),
    [({"quantity": -1}, "/quantity"), ({"quantity": None}, "/quantity"), ({"sku": None}, "/sku")],
)
def test_a_bad_lot_is_refused(members: dict[str, Any], pointer: str) -> None:
    """A negative quantity, none at all, and a lot without a product are dead letters that say where."""
    with pytest.raises(RecordError) as caught:
        shipbob.inventory_lot(lot(**members), OWN, {}, None)
    assert (caught.value.code, caught.value.pointer) == ("bad_value", pointer)


def test_parcels_are_listed_once() -> None:
    """Sent shipments without a number and cancelled ones give no parcel, which the report counts; two may share one."""
    tracking = {"carrier": "UPS", "tracking_number": "1Z"}
    shipments = [
        {"status": "Completed", "tracking": tracking, "products": []},
        {"status": "Completed", "tracking": tracking, "products": []},
        {"status": "Completed", "tracking": {"carrier": None, "tracking_number": "2Z"}, "products": []},
        {"status": "Cancelled", "tracking": {"carrier": "UPS", "tracking_number": "3Z"}, "products": []},
        {"status": "Processing", "products": []},
        {"status": "Completed", "tracking": None, "products": []},
    ]
    order = record({"status": "PartiallyFulfilled", "products": [], "shipments": shipments})
    found = shipbob.status_and_parcels_of_order(order, ShipBobSettings.known_statuses)["tracking"]
    assert [(each.carrier, each.number) for each in found] == [("UPS", "1Z"), ("unknown", "2Z")]
    assert order.parts == {"carrier assumed": 1, "parcel without a number": 1}


@pytest.mark.parametrize(
    ("shipments", "pointer"),
    [
        (None, "/shipments"),
        ([None], "/shipments/0"),
        ([{"status": None, "products": []}], "/shipments/0/status"),
        ([{"status": "Teleported", "products": []}], "/shipments/0/status"),
        ([{"status": "Completed", "products": None}], "/shipments/0/products"),
        ([{"status": "Completed", "products": [{"inventory_items": None}]}], "/shipments/0/products/0/inventory_items"),
    ],
)
def test_a_part_of_a_shipment_that_is_not_there_is_refused(shipments: Any, pointer: str) -> None:
    """What is missing, null or unknown in an order that was shipped is a dead letter that says where, never nothing."""
    order = record({"status": "Fulfilled", "products": [], "shipments": shipments})
    with pytest.raises(RecordError) as caught:
        shipbob.status_and_parcels_of_order(order, ShipBobSettings.known_statuses)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize("status", ["Processing", "Exception", "ImportReview", "Cancelled"])
def test_an_order_that_was_not_shipped_may_have_no_shipments(status: str) -> None:
    """Its shipments may be null, and it has no parcels."""
    order = record({"status": status, "products": [], "shipments": None})
    assert shipbob.status_and_parcels_of_order(order, ShipBobSettings.known_statuses)["tracking"] is None


def test_shipbob_may_spell_a_status_in_another_case() -> None:
    """The units of a completed shipment count, and the parcel of a cancelled one does not, in any case."""
    shipments = [
        {"status": "completed", "products": [{"inventory_items": [{"quantity": 1}]}]},
        {"status": "CANCELLED", "tracking": {"carrier": "UPS", "tracking_number": "1Z"}, "products": []},
    ]
    order = record({"status": "fulfilled", "products": [{"quantity": 2}], "shipments": shipments})
    found = shipbob.status_and_parcels_of_order(order, ShipBobSettings.known_statuses)
    assert found == {"status": "shipped_short", "tracking": None}


def shipment(status: str, sku: str, units: int, number: int = 1) -> dict[str, Any]:
    """A shipment of one product, with the units of its inventory items."""
    return {
        "id": number,
        "status": status,
        "products": [{"sku": sku, "inventory_items": [{"id": 5, "quantity": units}]}],
    }


@pytest.mark.parametrize(
    ("products", "shipments", "status"),
    [
        pytest.param([("TRIO", 2)], [("Completed", 3), ("Cancelled", 3)], "shipped_short", id="a bundle is missing"),
        pytest.param([("TRIO", 2)], [("Completed", 3), ("Cancelled", 3), ("Completed", 3)], "shipped", id="replaced"),
        pytest.param([("LAMP", 1)], [("Cancelled", 1), ("Completed", 1)], "shipped", id="sent again"),
        pytest.param([("LAMP", 2)], [("Completed", 2), ("Cancelled", 0)], "shipped", id="nothing was cancelled"),
        pytest.param([("LAMP", 2)], [("Completed", 2), ("Cancelled", 2)], "shipped", id="one too many was cancelled"),
        pytest.param([("TRIO", 1), ("CHAIR", 1)], [("Completed", 3)], "shipped", id="nothing tells"),
    ],
)
def test_a_fulfilled_order_of_shipbob_with_a_cancelled_shipment_may_be_short(
    products: list[tuple[str, int]], shipments: list[tuple[str, int]], status: str
) -> None:
    """A bundle has more inventory items than were ordered; a shipment that was cancelled and not replaced tells."""
    lines = [{"sku": sku, "quantity": quantity} for sku, quantity in products]
    sent = [shipment(state, products[0][0], units, number) for number, (state, units) in enumerate(shipments)]
    order = record({"status": "Fulfilled", "products": lines, "shipments": sent})
    assert shipbob.status_and_parcels_of_order(order, ShipBobSettings.known_statuses)["status"] == status


def test_units_of_cases_are_not_compared_with_those_that_were_shipped() -> None:
    """A case that is ordered is several items that are shipped; that it may be short is counted."""
    lines = [{"sku": "LAMP", "quantity": 2, "quantity_unit_of_measure_code": "CS"}]
    order = record({"status": "Fulfilled", "products": lines, "shipments": [shipment("Completed", "LAMP", 12)]})
    assert shipbob.status_and_parcels_of_order(order, ShipBobSettings.known_statuses)["status"] == "shipped"
    assert order.parts["completeness not known"] == 1


def bill(amount: str, *charges: tuple[str, str]) -> Record:
    """A bill of this total, with transactions of these amounts and taxes."""
    transactions = [
        {"transaction_fee": "Shipping", "amount": Decimal(net), "taxes": [{"tax_amount": Decimal(tax)}]}
        for net, tax in charges
    ]
    return record({"amount": Decimal(amount), "currency_code": "AUD", "transactions": transactions})


BILLS = Bills(customer="C1", customer_namespace="erp", products={"Shipping": "FEE"}, product_namespace="erp")


@pytest.mark.parametrize(
    ("amount", "prices"), [("120", ["100", "20"]), ("132", ["110", "22"]), ("120.004", ["100", "20"])]
)
def test_the_lines_of_a_bill_add_up_to_its_total(amount: str, prices: list[str]) -> None:
    """By the total of the bill, its taxes are in the amounts or come on top; less than a cent is rounding, counted."""
    found = bill(amount, ("100", "10"), ("20", "2"))
    assert [each.unit_price for each in shipbob.invoice_of_bill(found, BILLS).items] == list(map(Decimal, prices))
    assert found.parts == ({"total rounded by ShipBob": 1} if amount == "120.004" else {})


@pytest.mark.parametrize("charges", [[], [("100", "0")], [("100", "20"), ("20", "0.01")]])
def test_a_bill_without_some_of_its_charges_is_refused(charges: list[tuple[str, str]]) -> None:
    """A total that differs from the charges is a dead letter, and no invoice of less."""
    with pytest.raises(RecordError, match="its transactions add up to") as caught:
        shipbob.invoice_of_bill(bill("150", *charges), BILLS)
    assert caught.value.pointer == "/amount"


SENT_TWICE = [{"fulfillmentShipmentStatus": "SHIPPED", "fulfillmentShipmentPackage": []}] * 2


@pytest.mark.parametrize(
    ("shipments", "pointer"),
    [
        (None, "/fulfillmentShipments"),
        ([], "/fulfillmentShipments"),
        ([{"fulfillmentShipmentStatus": "PENDING"}], "/fulfillmentShipments"),
        ([None], "/fulfillmentShipments/0"),
        ([{"fulfillmentShipmentStatus": "SHIPPED"}], "/fulfillmentShipments/0/fulfillmentShipmentPackage"),
    ],
)
@pytest.mark.parametrize("status", ["Complete", "COMPLETE_PARTIALLED"])
def test_a_complete_order_of_amazon_has_its_shipments(status: str, shipments: Any, pointer: str) -> None:
    """Without them, or their packages, it is a dead letter and not settled: its parcels would never be read."""
    item = {"fulfillmentOrder": {"fulfillmentOrderStatus": status}, "fulfillmentShipments": shipments}
    with pytest.raises(RecordError) as caught:
        amazon.status_and_parcels_of_order(record(item), AmazonMcfSettings.known_statuses)
    assert caught.value.pointer == pointer
    assert not amazon.is_order_finished(item)


@pytest.mark.parametrize(
    ("status", "shipments", "settled"),
    [
        ("Received", None, False),
        ("Processing", None, False),
        ("Cancelled", None, True),
        ("Unfulfillable", None, True),
        ("Invalid", None, True),
        ("Complete", SENT_TWICE, True),
    ],
)
def test_other_orders_of_amazon_need_no_shipments(status: str, shipments: Any, *, settled: bool) -> None:
    """An order that is not shipped may lack them; a shipment that states to have no package is counted."""
    item = {"fulfillmentOrder": {"fulfillmentOrderStatus": status}, "fulfillmentShipments": shipments}
    order = record(item)
    assert amazon.status_and_parcels_of_order(order, AmazonMcfSettings.known_statuses)["tracking"] is None
    assert order.parts == ({"parcel without a number": 2} if shipments else {})
    assert amazon.is_order_finished(item) is settled


@pytest.mark.parametrize(
    ("settings", "place", "message"),
    [
        ({"receipts": "lot"}, "receipts", "must be nothing"),
        ({"stock_leaves": "movement"}, "receipts", "must be lot"),
        ({"stock_leaves": "nothing", "receipts": "movement"}, "announced_lots", "needs it"),
        ({"announced_lots": "erp"}, "announced_lots", "belongs to receipts"),
    ],
)
def test_stock_is_not_counted_twice(settings: dict[str, Any], place: str, message: str) -> None:
    """Settings by which the same units would come twice are refused, with the key to correct."""
    with pytest.raises(ValidationError, match=message) as caught:
        ShipBobSettings.model_validate({**SHIPBOB, **settings})
    assert caught.value.errors()[0]["ctx"]["key"] == (place,)


def test_a_receipt_can_move_announced_lots() -> None:
    """The announced lot is named by our SKU and the lot number, and goes to the location that received it."""
    row = {"owner": "10", "sku": "LAMP", "lot": "L1", "location_id": 8, "quantities": [2, 3]}
    draft = shipbob.movement_of_receipt(record(row), ProductSkus(None, {"LAMP": "OURS"}), "erp")
    assert draft.lot_id == Reference("inventory_lot", ("OURS", "L1"), "erp")
    assert (draft.to_bin_id, draft.quantity) == (Reference("warehouse_bin", ("10", "8")), Decimal(5))


# ---- orders out


@pytest.mark.parametrize("units", [0, -1, Decimal("1.5"), "2", True, None])
def test_units_are_whole(units: Any) -> None:
    """Anything but a whole number from one on is refused; a decimal without a fraction is one."""
    with pytest.raises(ValidationError):
        OrderedProduct(reference_id="LAMP", quantity=units)
    assert OrderedProduct(reference_id="LAMP", quantity=Decimal("2.0")).quantity == 2


@given(st.decimals(min_value=0, max_value=10**9, places=4))
def test_amazons_amounts_are_exact_texts(amount: Decimal) -> None:
    """An amount is the same number as a text, without an exponent."""
    text = AmazonMoney(currency_code="USD", value=amount).value
    assert Decimal(text) == amount
    assert "E" not in text


@pytest.mark.parametrize(("model", "personal"), [
    (ShipBobOrder, {"recipient"}),
    (AmazonFulfillmentOrder, {"destinationAddress", "notificationEmails"}),
])  # fmt: skip
def test_personal_members_are_marked(model: Any, personal: set[str]) -> None:
    """Who gets an order is never shown."""
    (resource,) = [
        each
        for target in (ShipBobTarget(1), AmazonTarget("US"))
        for each in target.resources.values()
        if each.draft is model
    ]
    assert resource.personal == personal
    assert (resource.write_once, resource.deletes) == (True, True)


def answer(status: int, body: Any) -> Answer:
    return Answer(status, {}, exact_json.dumps(body))


@pytest.fixture
def connected(request: pytest.FixtureRequest) -> Any:
    """A target that has its API, which is used for what shows throttling alone."""
    connector = load_connector(request.param["kind"])
    settings = connector.settings.model_validate(request.param)
    assert connector.target is not None
    assert connector.api is not None
    target, api = connector.target(settings), connector.api(settings)
    assert target is not None
    target.connect("depot", "tenant", lambda: api, None)  # type: ignore[arg-type]  # no time passes
    return target


AMAZON = {
    "kind": "amazon_mcf", "marketplace": "US", "refresh_token": "env:A", "client_id": "env:B", "client_secret": "env:C",
}  # fmt: skip
NEW = ExpectedRecord("/order", None, "shop:1")


@pytest.mark.parametrize("connected", [AMAZON], indirect=True)
def test_amazon_answers_a_create_with_nothing(connected: Any) -> None:
    """The id of an order is its external id; a name that is taken is a conflict."""
    assert (connected.outcome("orders", answer(200, {}), NEW).target_id) == "shop:1"
    errors = [{"code": "InvalidInput", "message": "A create request already exists for it: shop:1", "details": ""}]
    outcome = connected.outcome("orders", answer(400, {"errors": errors}), NEW)
    assert (outcome.kind, outcome.reason, outcome.pointer) == ("rejected", "conflict", "/sellerFulfillmentOrderId")


@pytest.mark.parametrize("connected", [SHIPBOB], indirect=True)
def test_shipbob_says_which_member_is_wrong(connected: Any) -> None:
    """The reason has the vendor's words and the member; a name that is taken is a conflict."""
    outcome = connected.outcome("orders", answer(400, {"products.0.quantity": ["must be positive"]}), NEW)
    assert (outcome.reason, outcome.pointer) == ("rejected", "/products/0/quantity")
    assert outcome.message == "products.0.quantity: must be positive"
    taken = {"reference_id": ["An order with reference id shop:1 already exists."]}
    outcome = connected.outcome("orders", answer(422, taken), NEW)
    assert (outcome.reason, outcome.pointer) == ("conflict", "/reference_id")
    assert connected.outcome("orders", Answer(400, {}, b"<html>"), NEW).message == "HTTP 400"


@pytest.mark.parametrize("body", [None, [], "text", {}, {"errors": 5}, {"message": 7}, {"a": [1, {}]}])
def test_a_strange_refusal_has_no_reason(body: Any) -> None:
    """A body of another shape is not read."""
    assert shipbob_refusal(body) is None


@pytest.mark.parametrize("connected", [SHIPBOB, AMAZON], indirect=True, ids=["shipbob", "amazon_mcf"])
def test_a_cancelled_order_is_gone_for_who_cancels_it(connected: Any) -> None:
    """By its id it is absent after a cancellation. By its name it is never absent, so no second order is sent."""
    held = {"id": 7, "reference_id": "shop:1", "status": "Cancelled"}
    held |= {"sellerFulfillmentOrderId": "shop:1", "fulfillmentOrderStatus": "CANCELLED"}
    wrapped = {"payload": {"fulfillmentOrder": held}}
    is_amazon = isinstance(connected, AmazonTarget)
    by_id = answer(200, wrapped if is_amazon else held)
    by_name = answer(200, wrapped if is_amazon else [held])
    target_id = "shop:1" if is_amazon else "7"
    assert connected.found("orders", by_id, ExpectedRecord("", target_id, "shop:1")).kind == "absent"
    found = connected.found("orders", by_name, ExpectedRecord("", None, "shop:1"))
    assert found.kind == ("found" if is_amazon else "removed"), "several orders of ShipBob may have one name"
    endpoint = connected.resources["orders"].endpoint
    assert (endpoint.rule("create"), endpoint.rule("delete")) == ("resend", "verify")
