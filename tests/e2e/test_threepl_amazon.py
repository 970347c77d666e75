"""Stock and shipments from Amazon: whole syncs with its fake and a sandbox; Amazon's documents judge each exchange."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.partners import threepl_vendors as vendors
from tests.partners.amazon import FakeAmazon
from tests.partners.amazon_document import CheckedPartner, available
from tests.partners.amazon_orders import Package
from tests.partners.amazon_seller import Seller
from tests.partners.amazon_site import order
from tests.partners.amazon_stock import Stock
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.threepl_stage import Stage

from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import ManualClock

pytestmark = pytest.mark.nightly

UNPACED = SandboxSettings(rate_per_min=600_000, burst=100_000)
NewStage = Callable[..., tuple[Stage, FakeAmazon, Seller]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))


@pytest.fixture
def new_stage(tmp_path: Path, clock: ManualClock) -> Iterator[NewStage]:
    """Makes a stage with a fake of Amazon of these settings; at the end, all exchanges were as documented."""
    checked: list[CheckedPartner] = []

    def made(
        *, upper: bool = False, token_life: timedelta = timedelta(hours=1), page_size: int = 50, **depot: object
    ) -> tuple[Stage, FakeAmazon, Seller]:
        fake = FakeAmazon(clock.now, upper=upper, token_life=token_life, page_size=page_size)
        seller = fake.seller("SELLER-A")
        checked.extend([CheckedPartner(fake, upper=upper)] if available() else [])
        server = opened.enter_context(serving(PartnerServer(checked[0] if checked else fake)))
        connection = vendors.amazon(server.url, **{"product_namespace": "shop", **depot})
        secrets = {"client_id": fake.client_id, "client_secret": fake.client_secret}
        secrets["refresh_token"] = seller.refresh_token
        stage = Stage(tmp_path, sandbox, connection, vendors.AMAZON_ORDER, secrets, clock)
        stage.export_shop(["LAMP", "CHAIR"])
        return stage, fake, seller

    with ExitStack() as opened:
        sandbox = opened.enter_context(SandboxServer(tmp_path / "sandbox", UNPACED))
        yield made
    assert [each.violations for each in checked] == [[]] * len(checked)


@pytest.mark.nightly(but=["False"])
@pytest.mark.parametrize("upper", [False, True])
def test_shipments_in_parts_come_back_to_the_order(new_stage: NewStage, clock: ManualClock, *, upper: bool) -> None:
    """An order in work is read again, though its status and time stay: its second shipment is on the platform too."""
    stage, _, seller = new_stage(upper=upper)
    seller.receive("LAMP", 10)
    stage.export_orders("1", {"SO-1": {"LAMP": 5}})
    assert stage.sync().exit_code == 0
    for units, numbers in ((2, ["T1", "T2"]), (2, ["T3"])):
        clock.advance(7200)
        seller.ship("shop:SO-1", {"LAMP": units}, packages=[Package("UPS", number) for number in numbers])
        clock.advance(7200)
        report = stage.sync()
        assert (report.exit_code, report.balanced) == (0, True), (report.errors, stage.dead_letters())
        order = stage.stored("order")["shop:SO-1"]
        assert order["status"] == "processing"
        assert order["tracking"][-1]["number"] == numbers[-1]
    seller.cannot_fulfill("shop:SO-1")
    clock.advance(7200)
    assert stage.sync().exit_code == 0
    order = stage.stored("order")["shop:SO-1"]
    assert order["status"] == "shipped_short"
    assert [(each["carrier"], each["number"]) for each in order["tracking"]] == [("UPS", f"T{n}") for n in (1, 2, 3)]
    clock.advance(7200)
    assert stage.sync().counters.requests == 0


@pytest.mark.nightly(but=["1.0"])
@pytest.mark.parametrize("token_life_s", [1.0, 0.6])  # in whole seconds, the second one is told as 0: unknown
def test_stock_is_by_state(new_stage: NewStage, clock: ManualClock, token_life_s: float) -> None:
    """Units are on the platform by state, page by page, also when the access token expires between two pages."""
    stage, fake, seller = new_stage(page_size=1, token_life=timedelta(seconds=token_life_s), product_namespace=None)
    for sku in ("LAMP", "CHAIR", "TEA"):
        seller.receive(sku, 10)
    seller.damage("LAMP", 1)
    seller.lose("LAMP", 2)
    report = stage.sync("depot")
    assert (report.exit_code, report.balanced) == (0, True), (report.errors, stage.dead_letters())
    assert units(stage) == Counter(
        {("LAMP", "available"): 7, ("LAMP", "hold"): 2, ("LAMP", "damaged"): 1}
        | {(sku, "available"): 10 for sku in ("CHAIR", "TEA")}
    )
    assert len(fake._login._issued) > 2, "no token expired"
    seller.adjust("TEA", -4)
    seller.announce("NEW", 5)
    clock.advance(3600)
    assert stage.sync("depot").exit_code == 0
    assert units(stage)["TEA", "available"] == 6
    assert {sku for sku, _ in units(stage)} == {"LAMP", "CHAIR", "TEA"}, "announced units are not on hand"


@pytest.mark.parametrize("page_size", [50, 1])
def test_rows_of_one_sku_are_added_up(new_stage: NewStage, page_size: int) -> None:
    """A SKU under an own barcode and under that of the manufacturer has two rows, of which no barcode is the one."""
    stage, _, seller = new_stage(page_size=page_size, product_namespace=None)
    for sku in ("CHAIR", "LAMP", "TEA"):
        seller.receive(sku, 10)
    first = seller.stock["LAMP"]
    again = Stock("LAMP", first.asin, first.asin, first.product_name, first.updated, fulfillable=7)
    seller.stock["ZZZ"] = again
    report = stage.sync("depot")
    assert (report.exit_code, report.balanced) == (0, True), (report.errors, stage.dead_letters())
    assert units(stage) == Counter({("LAMP", "available"): 17, ("CHAIR", "available"): 10, ("TEA", "available"): 10})
    assert report.tallies["depot.stock"].parts == {"rows of one SKU added up": 4}
    assert report.tallies["depot.products"].parts == {"barcode left out": 1}
    assert {body["sku"] for body in stage.stored("product").values() if body.get("barcode")} >= {"CHAIR", "TEA"}


def units(stage: Stage) -> Counter[tuple[str, str]]:
    """Units on the platform by SKU and state."""
    skus = {body["id"]: body["sku"] for body in stage.stored("product").values()}
    found: Counter[tuple[str, str]] = Counter()
    for lot in stage.stored("inventory_lot").values():
        found[skus[lot["productId"]], lot["status"]] += lot["quantity"]
    return +found


def test_a_name_that_is_too_long_is_a_dead_letter(new_stage: NewStage) -> None:
    """Amazon's names have 40 characters at most, namespace included."""
    stage, fake, seller = new_stage()
    seller.receive("LAMP", 10)
    stage.export_orders("1", {"S" * 36: {"LAMP": 1}, "S" * 35: {"LAMP": 1}})
    report = stage.sync("shop.orders_out")
    assert report.exit_code == 1
    (reason,) = stage.dead_letters().values()
    assert reason == "invalid_draft /sellerFulfillmentOrderId: namespace and record key together exceed 40 characters"
    assert [each["order"] for each in fake.effects if each["kind"] == "order_created"] == [f"shop:{'S' * 35}"]


@pytest.mark.nightly(but=["cancelled-cancelled"])
@pytest.mark.parametrize(("ending", "status"), [("cancelled", "cancelled"), ("invalid", "invalid")])
def test_what_becomes_of_an_order_is_its_status(
    new_stage: NewStage, clock: ManualClock, ending: str, status: str
) -> None:
    """An order that the seller cancels at Amazon, or that Amazon cannot fulfill, says so on the platform."""
    stage, _, seller = new_stage()
    seller.receive("LAMP", 1)
    stage.export_orders("1", {"SO-1": {"LAMP": 1}})
    assert stage.sync().exit_code == 0
    if ending == "cancelled":
        seller.cancel("shop:SO-1")
    else:
        seller.orders["shop:SO-1"].turn("Invalid", clock.now())
    clock.advance(3600)
    assert stage.sync().exit_code == 0
    assert stage.stored("order")["shop:SO-1"]["status"] == status


@pytest.mark.nightly
def test_orders_of_others_are_left_out(new_stage: NewStage, clock: ManualClock) -> None:
    """Orders that crossdock did not send are counted, and their shipments are not read."""
    stage, fake, seller = new_stage()
    seller.receive("LAMP", 10)
    seller.create({**order("by hand", ("LAMP", 1))})
    fake.seller("SELLER-B").receive("LAMP", 99)
    stage.export_orders("1", {"SO-1": {"LAMP": 1}})
    assert stage.sync().exit_code == 0
    clock.advance(60)
    report = stage.sync()
    filtered = report.as_json()["streams"]["depot.shipments"]["rows"]["filtered"]
    assert filtered == {"not_sent_by_crossdock": 1, "other_marketplace": 0}
    assert units_of_lots(stage) == 10


def units_of_lots(stage: Stage) -> int:
    return int(sum(lot["quantity"] for lot in stage.stored("inventory_lot").values()))
