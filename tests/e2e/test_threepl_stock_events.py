"""Stock of ShipBob by events, and its bills: whole syncs with its fake and a sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.partners import threepl_vendors as vendors
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.shipbob import ShipBob
from tests.partners.shipbob_client import CHANNELS, LOCATIONS, stocked
from tests.partners.shipbob_state import Transaction
from tests.partners.threepl_stage import Stage

from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import ManualClock

pytestmark = pytest.mark.nightly

UNPACED = SandboxSettings(rate_per_min=600_000, burst=100_000)
BY_EVENTS = {"stock_leaves": "movement", "receipts": "lot"}
BILLS = {
    "customer": "C1",
    "customer_namespace": "shop",
    "products": {"Shipping": "LAMP", "Storage": "CHAIR"},
    "product_namespace": "shop",
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))


@pytest.fixture
def fake(clock: ManualClock) -> ShipBob:
    return ShipBob({"token-of-ours": [1], "token-of-all": [1, 3]}, CHANNELS, LOCATIONS, now=clock.now)


@pytest.fixture
def stage(tmp_path: Path, fake: ShipBob, clock: ManualClock, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """A stage whose ShipBob has these settings."""
    settings: dict[str, Any] = dict(request.param)
    token = settings.pop("token", "token-of-ours")
    with serving(PartnerServer(fake)) as server, SandboxServer(tmp_path / "sandbox", UNPACED) as sandbox:
        depot = vendors.shipbob(server.url, product_namespace="shop", **settings)
        made = Stage(tmp_path, sandbox, depot, vendors.SHIPBOB_ORDER, {"token": token}, clock)
        made.export_shop(["LAMP", "CHAIR"])
        yield made


def received(fake: ShipBob, item: int, lot: str | None, units: int, short: int = 0) -> None:
    """A receiving order of one lot, of which *short* units did not come."""
    body = {
        "fulfillment_center": {"id": 8},
        "package_type": "Package",
        "box_packaging_type": "EverythingInOneBox",
        "expected_arrival_date": "2026-03-02T00:00:00Z",
        "boxes": [
            {"tracking_number": "T", "box_items": [{"inventory_id": item, "quantity": units, "lot_number": lot}]}
        ],
    }
    wro = fake.warehouse.create_wro(body)
    fake.warehouse.receive(wro.id, {(item, lot): units - short})


def lots(stage: Stage) -> dict[tuple[str, str], Decimal]:
    """Units on the platform by lot number and bin; of several lots, the sum."""
    bins = {body["id"]: body["code"] for body in stage.stored("warehouse_bin").values()}
    found: dict[tuple[str, str], Decimal] = {}
    for lot in stage.stored("inventory_lot").values():
        place = lot["lotNumber"], bins[lot["binId"]]
        found[place] = found.get(place, Decimal(0)) + lot["quantity"]
    return {place: units for place, units in found.items() if units}


@pytest.mark.parametrize("stage", [BY_EVENTS], indirect=True)
def test_receipts_and_shipments_move_stock_once(stage: Stage, fake: ShipBob, clock: ManualClock) -> None:
    """A receipt is a lot with what was stowed; what is shipped of it moves to the outbound bin, and only once."""
    item = fake.warehouse.add_product(1, "LAMP", lot_tracked=True).inventory_id
    received(fake, item, "L1", 10, short=1)
    received(fake, item, "L2", 5)
    stage.export_orders("1", {"SO-1": {"LAMP": 4}})
    report = stage.sync()
    assert (report.exit_code, report.balanced) == (0, True), (report.errors, stage.dead_letters())
    assert lots(stage) == {("L1", "8"): 9, ("L2", "8"): 5}
    (order_id,) = fake.warehouse.orders
    for _ in range(2):
        clock.advance(3600)
        fake.warehouse.ship(order_id, {"LAMP": 2})
        report = stage.sync()
        assert (report.exit_code, report.balanced) == (0, True), (report.errors, stage.dead_letters())
    assert lots(stage) == {("L1", "8"): 5, ("L1", "OUTBOUND"): 4, ("L2", "8"): 5}
    clock.advance(3600)
    assert stage.sync().counters.requests == 0
    assert lots(stage) == {("L1", "8"): 5, ("L1", "OUTBOUND"): 4, ("L2", "8"): 5}


@pytest.mark.parametrize("stage", [BY_EVENTS], indirect=True)
def test_what_was_never_received_cannot_leave(stage: Stage, fake: ShipBob, clock: ManualClock) -> None:
    """A shipment of a lot that no receiving order brought is a dead letter with a clear reason."""
    stocked(fake, "LAMP", 5, lot="L0")
    stage.export_orders("1", {"SO-1": {"LAMP": 4}})
    assert stage.sync().exit_code == 0
    (order_id,) = fake.warehouse.orders
    fake.warehouse.ship(order_id)
    clock.advance(3600)
    assert stage.sync().exit_code == 1
    (reason,) = stage.dead_letters().values()
    assert reason == "unmatched /lot: no receiving order that is read has brought this lot here; see the setting first"


@pytest.mark.parametrize("stage", [{"bills": BILLS}], indirect=True)
def test_bills_become_invoices_once(stage: Stage, fake: ShipBob, clock: ManualClock) -> None:
    """Each bill is one invoice with exact amounts; one with an unknown fee is a dead letter."""
    charges = [
        Transaction("T1", Decimal("6.15"), "Shipping", "1", "Shipment"),
        Transaction("T2", Decimal("0.1"), "Storage", "8", "FC"),
    ]
    stocked(fake, "LAMP", 1)
    fake.warehouse.add_invoice(1, "Shipping", charges)
    assert stage.sync().exit_code == 0
    fake.warehouse.add_invoice(1, "Other", [Transaction("T3", Decimal(1), "Gift wrap", "1", "Shipment")])
    clock.advance(86_400)
    report = stage.sync()
    assert (report.exit_code, report.balanced) == (1, True)
    (reason,) = stage.dead_letters().values()
    assert reason == "bad_value /transactions: the fee 'Gift wrap' is not in the setting bills.products"
    (invoice,) = stage.invoices()
    assert invoice["currency"] == "USD"
    assert [(each["quantity"], each["unitPrice"]) for each in invoice["items"]] == [
        (1, Decimal("6.15")),
        (1, Decimal("0.1")),
    ]


@pytest.mark.parametrize("stage", [{"bills": BILLS, "token": "token-of-all"}], indirect=True)
def test_bills_of_several_merchants_are_refused(stage: Stage, fake: ShipBob) -> None:
    """Bills do not say whose they are, so those of an account with two merchants are not read."""
    stocked(fake, "LAMP", 1)
    stocked(fake, "RIVAL-1", 1, channel=3)
    report = stage.sync("depot.bills")
    assert report.exit_code == 4
    assert "sees other merchants than 10" in str(report.errors["depot.bills"])
