"""The fake of ShipBob keeps its stock: what it says of products, lots and receiving, and what its warehouse does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.partners import shipbob_schema as schema
from tests.partners import shipbob_stock_answers as stock_answers
from tests.partners import shipbob_stock_schema as stock_schema
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.shipbob import ShipBob
from tests.partners.shipbob_client import CHANNELS, LOCATIONS, client, conforms, effects, order, placed, stocked
from tests.partners.shipbob_stockroom import RefusedError, stock_of
from tests.partners.shipbob_warehouse import Warehouse

from crossdock.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))


@pytest.fixture
def fake(clock: ManualClock) -> ShipBob:
    return ShipBob({"ours": [1, 2], "rival": [3]}, CHANNELS, LOCATIONS, limit=100_000, now=clock.now)


@pytest.fixture
def http(fake: ShipBob) -> Iterator[httpx.Client]:
    with serving(PartnerServer(fake)) as server, client(server) as http:
        yield http


def items(http: httpx.Client, path: str, **params: Any) -> Any:
    return http.get(path, params=params).json()["items"]


def shipments(http: httpx.Client, order_id: int) -> list[tuple[str, list[tuple[str, str | None, int, int]]]]:
    """Each shipment's status and units: SKU, lot, ordered, committed."""
    found = http.get(f"/order/{order_id}").json()
    conforms(found, schema.ORDER)
    return [
        (
            shipment["status"],
            [
                (product["sku"], unit["lot"], unit["quantity"], unit["quantity_committed"])
                for product in shipment["products"]
                for unit in product["inventory_items"]
            ],
        )
        for shipment in found["shipments"]
    ]


def status(http: httpx.Client, order_id: int) -> str:
    return str(http.get(f"/order/{order_id}").json()["status"])


def announcement(inventory_id: int, *lots: tuple[str | None, int]) -> dict[str, Any]:
    boxed = [
        {"inventory_id": inventory_id, "quantity": units, "lot_number": lot, "lot_date": "2027-01-31T00:00:00Z"}
        for lot, units in lots
    ]
    return {
        "fulfillment_center": {"id": 8},
        "package_type": "Package",
        "box_packaging_type": "EverythingInOneBox",
        "expected_arrival_date": "2026-03-05T00:00:00Z",
        "purchase_order_number": "PO-1",
        "boxes": [{"tracking_number": "T", "box_items": boxed}],
    }


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/product", stock_schema.PRODUCT),
        ("/inventory", stock_schema.INVENTORY),
        ("/inventory-level", stock_schema.LEVEL),
        ("/inventory-level/lots", stock_schema.LOTS),
    ],
)
def test_lists_with_cursors_have_each_record_once(
    http: httpx.Client, fake: ShipBob, path: str, shape: dict[str, Any]
) -> None:
    """Each page has the documented shape; ``next`` leads to the last page, and there is null."""
    for number in range(5):
        stocked(fake, f"SKU{number}", 1, lot="L1")
    pages = [http.get(path, params={"PageSize": 2}).json()]
    while pages[-1]["next"]:
        pages.append(http.get(pages[-1]["next"]).json())
    for page in pages:
        conforms(page, schema.page(shape))
    said = [str(item) for page in pages for item in page["items"]]
    assert [len(page["items"]) for page in pages] == [2, 2, 1]
    assert [f"SKU{number}" in text for number, text in enumerate(said)] == [True] * 5
    assert http.get(pages[0]["last"]).json() == pages[2]
    assert http.get(pages[2]["prev"]).json() == pages[1]
    assert http.get(pages[1]["first"]).json() == pages[0]


@pytest.mark.parametrize("params", [{"Cursor": "x"}, {"PageSize": 251}])
def test_a_wrong_cursor_or_size_is_refused(http: httpx.Client, params: dict[str, Any]) -> None:
    """The answer is 400."""
    assert http.get("/product", params=params).status_code == 400


def test_locations_and_channels_have_the_documented_shape(http: httpx.Client) -> None:
    """Locations are a bare array; channels are those of the token."""
    locations, channels = http.get("/location").json(), http.get("/channel").json()
    conforms(locations, schema.many(stock_schema.LOCATION))
    conforms(channels, schema.page(schema.CHANNEL))
    assert ([one["id"] for one in locations], [one["id"] for one in channels["items"]]) == ([8, 9], [1, 2])


def test_two_merchants_have_the_same_sku(http: httpx.Client, fake: ShipBob) -> None:
    """A list has the items of both; only the product names the channel, the item its merchant, levels nothing."""
    first, second = stocked(fake, "LAMP", 5), stocked(fake, "LAMP", 7, channel=2)
    stocked(fake, "LAMP", 9, channel=3)
    levels = items(http, "/inventory-level")
    assert [(level["inventory_id"], level["total_on_hand_quantity"]) for level in levels] == [(first, 5), (second, 7)]
    assert [item["user_id"] for item in items(http, "/inventory", InventoryIds=second)] == [20]
    (product,) = items(http, "/product", ChannelIds=2, sku="LAMP")
    assert [one["channel_id"] for one in product["variants"][0]["channel_metadata"]] == [2]
    assert product["variants"][0]["inventory"] == {"inventory_id": second, "on_hand_qty": 7}


def test_an_order_is_shipped_in_parts(http: httpx.Client, fake: ShipBob) -> None:
    """Each part is a shipment with its own lots and tracking, the lot that expires first to the front."""
    lamp = fake.warehouse.add_product(1, "LAMP", lot_tracked=True).inventory_id
    fake.warehouse.adjust_stock(lamp, 8, 2, "LATE", datetime(2028, 1, 1, tzinfo=UTC))
    fake.warehouse.adjust_stock(lamp, 8, 2, "SOON", datetime(2027, 1, 1, tzinfo=UTC))
    stocked(fake, "SHADE", 4)
    made = placed(http, order("R1", LAMP=3, SHADE=1))["id"]
    fake.warehouse.ship(made, {"LAMP": 1}, tracking_number="T1")
    assert status(http, made) == "PartiallyFulfilled"
    fake.warehouse.ship(made, tracking_number="T2")
    assert shipments(http, made) == [
        ("Completed", [("LAMP", "SOON", 1, 1)]),
        ("Completed", [("LAMP", "SOON", 1, 1), ("LAMP", "LATE", 1, 1), ("SHADE", None, 1, 1)]),
    ]
    found = http.get(f"/order/{made}").json()
    assert (found["status"], [one["tracking"]["tracking_number"] for one in found["shipments"]]) == (
        "Fulfilled",
        ["T1", "T2"],
    )
    (lots,) = items(http, "/inventory-level/lots", InventoryIds=lamp)
    assert [(lot["lot_number"], lot["on_hand_quantity"]) for lot in lots["lots"]] == [("SOON", 0), ("LATE", 1)]
    with pytest.raises(ValueError, match="Fulfilled"):
        fake.warehouse.ship(made)


def test_an_order_is_shipped_short(http: httpx.Client, fake: ShipBob) -> None:
    """It is Fulfilled with fewer units than ordered, and the rest is a cancelled shipment that holds no stock."""
    lamp = stocked(fake, "LAMP", 5)
    made = placed(http, order("R1", LAMP=3))["id"]
    fake.warehouse.short_ship(made, {"LAMP": 2})
    assert status(http, made) == "Fulfilled"
    assert shipments(http, made) == [("Completed", [("LAMP", None, 2, 2)]), ("Cancelled", [("LAMP", None, 1, 0)])]
    assert fake.effects[-1]["missing"] == [{"sku": "LAMP", "quantity": 1}]
    (level,) = items(http, "/inventory-level", InventoryIds=lamp)
    assert (level["total_on_hand_quantity"], level["total_committed_quantity"]) == (3, 0)


def test_another_product_is_sent_instead(http: httpx.Client, fake: ShipBob) -> None:
    """The order names what was ordered, its shipment what is sent, and only that one leaves the stock."""
    stocked(fake, "LAMP", 5)
    stocked(fake, "LAMP-NEW", 5)
    made = placed(http, order("R1", LAMP=2))["id"]
    fake.warehouse.substitute(made, "LAMP", "LAMP-NEW")
    fake.warehouse.ship(made)
    assert shipments(http, made) == [("Completed", [("LAMP-NEW", None, 2, 2)])]
    assert [product["sku"] for product in http.get(f"/order/{made}").json()["products"]] == ["LAMP"]
    assert stock_of(fake.effects) == {(1, "LAMP", None, 8): 5, (1, "LAMP-NEW", None, 8): 3}


def test_an_order_on_hold_waits(http: httpx.Client, fake: ShipBob) -> None:
    """Its shipment is OnHold and cannot be shipped until it is released."""
    stocked(fake, "LAMP", 5)
    made = placed(http, order("R1", LAMP=2))["id"]
    fake.warehouse.put_on_hold(made)
    assert (status(http, made), shipments(http, made)[0][0]) == ("Exception", "OnHold")
    with pytest.raises(ValueError, match="OnHold"):
        fake.warehouse.ship(made)
    fake.warehouse.release_hold(made)
    fake.warehouse.ship(made)
    assert status(http, made) == "Fulfilled"


def test_stock_that_arrives_goes_to_the_oldest_order(http: httpx.Client, fake: ShipBob, clock: ManualClock) -> None:
    """An order that lacks units is in exception, and is processed, and changed, once they are there."""
    lamp = stocked(fake, "LAMP", 1)
    first, second = (placed(http, order(reference, LAMP=2))["id"] for reference in ("R1", "R2"))
    assert (status(http, first), status(http, second)) == ("Exception", "Exception")
    (level,) = items(http, "/inventory-level")
    assert (level["total_exception_quantity"], level["total_sellable_quantity"]) == (3, -3)
    clock.advance(5)
    fake.warehouse.adjust_stock(lamp, 8, 1)
    assert (status(http, first), status(http, second)) == ("Processing", "Exception")
    assert http.get(f"/order/{first}").json()["shipments"][0]["last_update_at"] == "2026-03-01T12:00:05+00:00"


def test_stock_that_is_lost_is_taken_from_the_newest_order(http: httpx.Client, fake: ShipBob) -> None:
    """A count that finds fewer units than are committed puts the newest order into exception; none can be negative."""
    lamp = stocked(fake, "LAMP", 4)
    first, second = (placed(http, order(reference, LAMP=2))["id"] for reference in ("R1", "R2"))
    fake.warehouse.adjust_stock(lamp, 8, -1, reason="damaged")
    assert (status(http, first), status(http, second)) == ("Processing", "Exception")
    with pytest.raises(ValueError, match="impossible"):
        fake.warehouse.adjust_stock(lamp, 8, -4)


def test_goods_are_announced_and_received(http: httpx.Client, fake: ShipBob) -> None:
    """What was announced is awaited; what arrived may differ, by lots too, and only stowed units are on hand."""
    lamp = fake.warehouse.add_product(1, "LAMP", lot_tracked=True).inventory_id
    body = announcement(lamp, ("A", 10), ("B", 5))
    answer = http.post("/receiving", json=body)
    conforms(answer.json(), stock_schema.WRO)
    assert (answer.status_code, answer.json()["status"], fake.effects[-1]["body"]) == (201, "Awaiting", body)
    (level,) = items(http, "/inventory-level")
    assert (level["total_awaiting_quantity"], level["total_on_hand_quantity"]) == (15, 0)
    path = f"/receiving/{answer.json()['id']}"
    fake.warehouse.receive(answer.json()["id"], {(lamp, "A"): 9}, stowed={(lamp, "A"): 4}, final=False)
    (level,) = items(http, "/inventory-level")
    assert (level["total_awaiting_quantity"], level["total_on_hand_quantity"]) == (11, 4)
    fake.warehouse.receive(answer.json()["id"], {(lamp, "C"): 2})
    received = http.get(path).json()
    conforms(received, stock_schema.WRO)
    assert [one["status"] for one in received["status_history"]] == ["Awaiting", "Processing", "Completed"]
    (quantities,) = received["inventory_quantities"]
    assert [quantities[f"{name}_quantity"] for name in ("expected", "received", "stowed")] == [15, 11, 6]
    boxes = http.get(f"{path}/boxes").json()
    conforms(boxes, schema.many(stock_schema.BOX))
    assert [(one["lot_number"], one["quantity"], one["stowed_quantity"]) for one in boxes[0]["box_items"]] == [
        ("A", 10, 4),
        ("B", 5, 0),
        ("C", 0, 2),
    ]
    assert stock_of(fake.effects) == {(1, "LAMP", "A", 8): 4, (1, "LAMP", "C", 8): 2}
    with pytest.raises(ValueError, match="Completed"):
        fake.warehouse.receive(answer.json()["id"], {(lamp, "A"): 1})


def test_an_announcement_can_be_cancelled_until_goods_arrive(http: httpx.Client, fake: ShipBob) -> None:
    """A cancelled one is awaited no more; a second time, and once it is counted, it is refused with 422."""
    lamp = fake.warehouse.add_product(1, "LAMP").inventory_id
    first, second = (http.post("/receiving", json=announcement(lamp, (None, 5))).json()["id"] for _ in range(2))
    assert http.post(f"/receiving/{first}:cancel").json()["status"] == "Cancelled"
    assert items(http, "/inventory-level")[0]["total_awaiting_quantity"] == 5
    fake.warehouse.receive(second, {(lamp, None): 1}, final=False)
    assert [http.post(f"/receiving/{number}:cancel").status_code for number in (first, second)] == [422, 422]
    assert [one["id"] for one in http.get("/receiving", params={"Statuses": "Processing,Awaiting"}).json()] == [second]
    assert [one["id"] for one in http.get("/receiving").json()] == [second, first]


def test_only_own_items_can_be_announced(http: httpx.Client, fake: ShipBob) -> None:
    """An item of a foreign channel is not found, and one announcement is for one merchant's channel."""
    ours, theirs, foreign = (fake.warehouse.add_product(channel, "LAMP").inventory_id for channel in (1, 2, 3))
    assert http.post("/receiving", json=announcement(foreign, (None, 1))).status_code == 404
    mixed = announcement(ours, (None, 1))
    mixed["boxes"] += announcement(theirs, (None, 1))["boxes"]
    assert http.post("/receiving", json=mixed).status_code == 400
    assert effects(fake, "wro_created") == []


SKUS = ("LAMP", "SHADE")
LOTS = (None, "L1", "L2")
UNITS = st.integers(1, 6)
STEPS = st.one_of(
    st.tuples(st.just("order"), st.sampled_from(SKUS), UNITS),
    st.tuples(st.just("ship"), st.integers(0, 5), UNITS),
    st.tuples(st.just("short_ship"), st.integers(0, 5), UNITS),
    st.tuples(st.just("substitute"), st.integers(0, 5), st.sampled_from(SKUS)),
    st.tuples(st.just("cancel"), st.integers(0, 5)),
    st.tuples(st.just("hold"), st.integers(0, 5), st.booleans()),
    st.tuples(st.just("adjust"), st.sampled_from(SKUS), st.sampled_from(LOTS), st.integers(-6, 6)),
    st.tuples(st.just("receive"), st.sampled_from(SKUS), st.sampled_from(LOTS), UNITS, UNITS),
)


def carry_out(warehouse: Warehouse, step: tuple[Any, ...]) -> None:
    """One step; one that the warehouse refuses leaves no trace."""
    done, orders = len(warehouse.effects), list(warehouse.orders)
    by_order = {"ship", "short_ship", "substitute", "cancel", "hold"}
    if step[0] in by_order and not orders:
        return
    try:
        match step:
            case ("order", sku, units):
                warehouse.create_order(CHANNELS[0], order(f"R{len(orders)}", **{sku: units}))
            case ("ship", number, units):
                warehouse.ship(orders[number % len(orders)], dict.fromkeys(SKUS[:1], units))
            case ("short_ship", number, units):
                warehouse.short_ship(orders[number % len(orders)], None if units > 3 else {SKUS[0]: units})
            case ("substitute", number, by):
                warehouse.substitute(orders[number % len(orders)], SKUS[by == SKUS[0]], by)
            case ("cancel", number):
                warehouse.cancel(orders[number % len(orders)])
            case ("hold", number, on_hold):
                hold = warehouse.put_on_hold if on_hold else warehouse.release_hold
                hold(orders[number % len(orders)])
            case ("adjust", sku, lot, change):
                warehouse.adjust_stock(warehouse.product(1, sku).inventory_id, 8, change, lot)
            case ("receive", sku, lot, announced, arrived):
                item = warehouse.product(1, sku).inventory_id
                wro = warehouse.create_wro(announcement(item, (lot, announced)))
                warehouse.receive(wro.id, {(item, lot): arrived}, stowed={(item, lot): min(announced, arrived)})
    except (ValueError, RefusedError):
        assert len(warehouse.effects) == done


@given(st.lists(STEPS, max_size=30))
def test_stock_adds_up(steps: list[tuple[Any, ...]]) -> None:
    """After any steps lots are what effects add up to, none is negative, and what is committed is an order's."""
    warehouse = Warehouse(CHANNELS, LOCATIONS, ManualClock().now)
    for sku in SKUS:
        warehouse.add_product(1, sku, lot_tracked=True)
    for step in steps:
        carry_out(warehouse, step)
        held: Counter[Any] = Counter()
        for _, line in warehouse.open_lines():
            assert line.missing >= 0
            held.update(line.held)
        assert +warehouse.stock.committed == +held
        told: Counter[Any] = Counter()
        for product in warehouse.products.values():
            for lot in stock_answers.lots_view(product, warehouse, stock_answers.awaited(warehouse))["lots"]:
                for place in lot["locations"]:
                    on_hand, committed = place["on_hand_quantity"], place["committed_quantity"]
                    assert 0 <= committed <= on_hand
                    assert place["fulfillable_quantity"] == on_hand - committed
                    told[1, product.sku, lot["lot_number"], place["location_id"]] += on_hand
        assert +told == +stock_of(warehouse.effects)
