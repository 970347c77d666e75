"""Orders out to ShipBob and shipments back: whole syncs with a fake of ShipBob and a sandbox, judged by effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.platform_faults import end_faults, set_faults
from tests.partners import threepl_vendors as vendors
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.shipbob import ShipBob
from tests.partners.shipbob_client import CHANNELS, LOCATIONS, client, effects, order, placed, stocked
from tests.partners.shipbob_state import Order as ShipBobOrder
from tests.partners.shipbob_stockroom import stock_of
from tests.partners.threepl_stage import Stage

from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import ManualClock

ORDERS, SHIPPED = 10, 10  # tests/long has more
UNPACED = SandboxSettings(rate_per_min=600_000, burst=100_000)
PLATFORM_FAULTS = {"lost_answer": 0.2, "error_after_commit": 0.1, "cut_body": 0.1, "throttle": 0.2}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))


@pytest.fixture
def fake(clock: ManualClock) -> ShipBob:
    return ShipBob({"token-of-ours": [1, 2, 3]}, CHANNELS, LOCATIONS, now=clock.now)


@pytest.fixture
def server(fake: ShipBob) -> Iterator[PartnerServer]:
    with serving(PartnerServer(fake)) as server:
        yield server


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox", UNPACED) as sandbox:
        yield sandbox


@pytest.fixture
def stage(tmp_path: Path, server: PartnerServer, clock: ManualClock, sandbox: SandboxServer) -> Stage:
    depot = vendors.shipbob(server.url, product_namespace="shop")
    made = Stage(tmp_path, sandbox, depot, vendors.SHIPBOB_ORDER, {"token": "token-of-ours"}, clock)
    made.export_shop(["LAMP", "CHAIR"])
    return made


def test_orders_go_out_once(stage: Stage, fake: ShipBob) -> None:
    """Each order is at ShipBob once, under its name, with exact prices; a second sync sends nothing."""
    stocked(fake, "LAMP", 100)
    stage.export_orders("1", {f"SO-{number}": {"LAMP": number} for number in range(1, ORDERS)}, price="0.10")
    report = stage.sync("shop")
    assert (report.exit_code, report.balanced) == (0, True), report.errors
    created = effects(fake, "order_created")
    assert sorted(each["body"]["reference_id"] for each in created) == sorted(f"shop:SO-{n}" for n in range(1, ORDERS))
    assert {str(line["unit_price"]) for each in created for line in each["body"]["products"]} == {"0.1"}
    assert stage.sync("shop").counters.requests == 0


@pytest.mark.nightly
def test_shipments_in_parts_come_back_to_the_order(stage: Stage, fake: ShipBob, clock: ManualClock) -> None:
    """Each part that is shipped adds its parcel, and the status follows; a sync without changes sends nothing."""
    stocked(fake, "LAMP", 100)
    stage.export_orders("1", {"SO-1": {"LAMP": 5}, "SO-2": {"LAMP": 1}})
    assert stage.sync().exit_code == 0
    ids = {order.body["reference_id"]: number for number, order in fake.warehouse.orders.items()}
    clock.advance(3600)
    fake.warehouse.ship(ids["shop:SO-1"], {"LAMP": 2}, tracking_number="1Z-A")
    clock.advance(3600)
    report = stage.sync()
    assert (report.exit_code, report.balanced) == (0, True), report.errors
    order = stage.stored("order")["shop:SO-1"]
    assert order["status"] == "partially_shipped"
    assert [(each["carrier"], each["number"]) for each in order["tracking"]] == [("UPS", "1Z-A")]
    assert "tracking" not in stage.stored("order")["shop:SO-2"]
    fake.warehouse.ship(ids["shop:SO-1"], tracking_number="1Z-B")
    clock.advance(3600)
    assert stage.sync().exit_code == 0
    order = stage.stored("order")["shop:SO-1"]
    assert (order["status"], [each["number"] for each in order["tracking"]]) == ("shipped", ["1Z-A", "1Z-B"])
    clock.advance(3600)
    assert stage.sync().counters.requests == 0


def test_each_shipment_changes_the_order_once_whatever_the_platform_does(
    stage: Stage, fake: ShipBob, clock: ManualClock, sandbox: SandboxServer
) -> None:
    """Where answers are lost or wrong and 429s come, each change of status and parcels has one effect, in order."""
    stocked(fake, "LAMP", 1_000)
    stage.export_orders("1", {f"SO-{number}": {"LAMP": 2} for number in range(SHIPPED)})
    assert stage.sync().exit_code == 0
    names = {number: order.body["reference_id"] for number, order in fake.warehouse.orders.items()}
    faults = [{"name": name, "probability": share, "route": "PATCH order"} for name, share in PLATFORM_FAULTS.items()]
    set_faults(sandbox.base_url, faults, seed=5)
    for part in ("A", "B"):
        clock.advance(3600)
        for number, name in names.items():
            fake.warehouse.ship(number, {"LAMP": 1}, tracking_number=f"{name}-{part}")
        clock.advance(3600)
        report = stage.sync()
        assert (report.exit_code, report.balanced) == (0, True), (report.errors, stage.dead_letters())
    struck = end_faults(sandbox.base_url)
    changes: dict[str, list[Any]] = {name: [] for name in names.values()}
    for effect in stage.effects("order"):
        if effect["operation"] == "update":
            body = effect["body"]
            told = body["status"], [parcel["number"] for parcel in body["tracking"]]
            changes[body["externalId"]].append(told)
    assert changes == {
        name: [("partially_shipped", [f"{name}-A"]), ("shipped", [f"{name}-A", f"{name}-B"])] for name in names.values()
    }
    assert min(struck[fault] for fault in PLATFORM_FAULTS) > 0, struck
    clock.advance(3600)
    assert stage.sync().counters.requests == 0


@pytest.mark.nightly
def test_a_wrong_member_is_named_as_shipbob_writes_it(
    tmp_path: Path, server: PartnerServer, fake: ShipBob, clock: ManualClock
) -> None:
    """The place of a value that ShipBob does not know is that of the member that would be sent."""
    wrong = {"shipping_terms": {"object": {"carrier_type": "SKU", "payment_term": {"const": "Collect"}}}}
    with SandboxServer(tmp_path / "sandbox", UNPACED) as sandbox:
        depot = vendors.shipbob(server.url, product_namespace="shop")
        order_map = {**vendors.SHIPBOB_ORDER, **wrong}
        stage = Stage(tmp_path, sandbox, depot, order_map, {"token": "token-of-ours"}, clock)
        stage.export_orders("1", {"SO-1": {"LAMP": 1}})
        assert stage.sync("shop.orders_out").exit_code == 1
        (reason,) = stage.dead_letters().values()
    assert reason.startswith("invalid_draft /shipping_terms/carrier_type: ")
    assert effects(fake, "order_created") == []


def on_hand(stage: Stage) -> Counter[tuple[str, str, str]]:
    """Units on the platform by SKU, lot number and location."""
    names = {body["id"]: body for kind in ("product", "warehouse_bin") for body in stage.stored(kind).values()}
    found: Counter[tuple[str, str, str]] = Counter()
    for lot in stage.stored("inventory_lot").values():
        place = names[lot["productId"]]["sku"], lot["lotNumber"], names[lot["binId"]]["code"]
        found[place] += lot["quantity"]
    return +found


def by_effects(fake: ShipBob, channels: set[int]) -> Counter[tuple[str, str, str]]:
    """Units of the merchant of these channels, by what happened at ShipBob alone."""
    found: Counter[tuple[str, str, str]] = Counter()
    for (channel, sku, lot, place), units in stock_of(fake.effects).items():
        if channel in channels:
            found[sku, lot or "NO-LOT", str(place)] += units
    return +found


@pytest.mark.nightly
def test_stock_is_that_of_one_merchant(stage: Stage, fake: ShipBob, clock: ManualClock) -> None:
    """Units by lot and location are on the platform as ShipBob has them, before and after what happens there."""
    tea = fake.warehouse.add_product(1, "LAMP", lot_tracked=True).inventory_id
    fake.warehouse.adjust_stock(tea, 8, 7, "L1", datetime(2027, 1, 1, tzinfo=UTC))
    fake.warehouse.adjust_stock(tea, 9, 5, "L2")
    stocked(fake, "CHAIR", 3)
    stocked(fake, "LAMP", 1_000, channel=3, lot="L1")
    report = stage.sync()
    assert (report.exit_code, report.balanced) == (0, True), (report.errors, stage.dead_letters())
    assert on_hand(stage) == by_effects(fake, {1}) != Counter()
    assert report.as_json()["streams"]["depot.stock"]["rows"]["filtered"] == {"other_owner": 2}
    dates = {lot["lotNumber"]: lot.get("expiresOn") for lot in stage.stored("inventory_lot").values()}
    assert dates == {"L1": "2027-01-01", "L2": None, "NO-LOT": None}

    stage.export_orders("1", {"SO-1": {"LAMP": 4}, "SO-2": {"CHAIR": 1}})
    clock.advance(3600)
    assert stage.sync().exit_code == 0
    (order_id,) = [key for key, each in fake.warehouse.orders.items() if each.body["reference_id"] == "shop:SO-1"]
    fake.warehouse.ship(order_id, {"LAMP": 3})
    fake.warehouse.adjust_stock(tea, 9, -2, "L2")
    clock.advance(3600)
    report = stage.sync()
    assert report.exit_code == 0, (report.errors, stage.dead_letters())
    assert on_hand(stage) == by_effects(fake, {1})
    statuses = Counter[str]()
    for lot in stage.stored("inventory_lot").values():
        statuses[lot["status"]] += lot["quantity"]
    assert statuses["reserved"] == sum(fake.warehouse.stock.committed.values())


@pytest.mark.nightly
def test_products_of_one_merchant(tmp_path: Path, server: PartnerServer, fake: ShipBob, clock: ManualClock) -> None:
    """Without another source of products, ShipBob's are on the platform, and another merchant's are not."""
    stocked(fake, "LAMP", 3)
    stocked(fake, "RIVAL-1", 3, channel=3)
    with SandboxServer(tmp_path / "sandbox", UNPACED) as sandbox:
        depot = vendors.shipbob(server.url, sku_aliases={"LAMP": "OUR-LAMP"}, unit_of_measure="EA")
        stage = Stage(tmp_path, sandbox, depot, vendors.SHIPBOB_ORDER, {"token": "token-of-ours"}, clock)
        report = stage.sync("depot")
        assert (report.exit_code, report.balanced) == (0, True), (report.errors, stage.dead_letters())
        (product,) = stage.stored("product").values()
        assert (product["sku"], product["unitOfMeasure"], product["active"]) == ("OUR-LAMP", "EA", True)
        assert {lot["productId"] for lot in stage.stored("inventory_lot").values()} == {product["id"]}


@pytest.mark.nightly(but=["short"])
@pytest.mark.parametrize("ending", ["short", "substituted", "cancelled", "on hold"])
def test_what_becomes_of_an_order_is_its_status(stage: Stage, fake: ShipBob, clock: ManualClock, ending: str) -> None:
    """Short, substituted, cancelled and held orders have a status of their own; a substitute counts as shipped."""
    warehouse = fake.warehouse
    stocked(fake, "LAMP", 3)
    stocked(fake, "CHAIR", 9)
    stage.export_orders("1", {"SO-1": {"LAMP": 3}})
    assert stage.sync().exit_code == 0
    (order_id,) = warehouse.orders
    clock.advance(3600)
    match ending:
        case "short":
            warehouse.short_ship(order_id, {"LAMP": 1})
        case "substituted":
            warehouse.substitute(order_id, "LAMP", by="CHAIR")
            warehouse.ship(order_id)
        case "cancelled":
            warehouse.cancel(order_id)
        case "on hold":
            warehouse.put_on_hold(order_id)
    report = stage.sync()
    assert report.exit_code == 0, (report.errors, stage.dead_letters())
    expected = {"short": "shipped_short", "substituted": "shipped", "cancelled": "cancelled", "on hold": "exception"}
    assert stage.stored("order")["shop:SO-1"]["status"] == expected[ending]


@pytest.mark.nightly
def test_orders_of_others_are_left_out(stage: Stage, fake: ShipBob, server: PartnerServer) -> None:
    """Orders that crossdock did not send, and those of another channel under a name like ours, are counted."""
    stocked(fake, "LAMP", 9)
    stage.export_orders("1", {"SO-1": {"LAMP": 1}})
    with client(server, "token-of-ours") as http:
        placed(http, order("by hand", LAMP=1))
        placed(http, {**order("shop:SO-1"), "products": order("x", CHAIR=1)["products"]}, channel=2)
    report = stage.sync()
    assert (report.exit_code, report.balanced) == (0, True), (report.errors, stage.dead_letters())
    assert report.as_json()["streams"]["depot.shipments"]["rows"]["filtered"] == {
        "other_channel": 1,
        "not_sent_by_crossdock": 1,
    }


@pytest.mark.nightly
def test_an_unknown_status_is_a_dead_letter(stage: Stage, fake: ShipBob, monkeypatch: pytest.MonkeyPatch) -> None:
    """A status that no table has is never guessed."""
    stocked(fake, "LAMP", 9)
    stage.export_orders("1", {"SO-1": {"LAMP": 1}})
    assert stage.sync().exit_code == 0
    monkeypatch.setattr(ShipBobOrder, "status", "Teleported")
    report = stage.sync()
    assert (report.exit_code, report.balanced) == (1, True)
    reason = "bad_value /status: is a status that is not in the setting statuses"
    assert stage.dead_letters() == {"depot.shipments SO-1": reason}
