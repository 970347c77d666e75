"""The round trip of orders between the platform and a 3PL, in small; the full size is in tests/long."""

from __future__ import annotations

import json
from pathlib import Path

from tests.chaos.chance import chaos_seed
from tests.chaos.round_trip import SKUS, opened, round_trip


def test_both_sides_agree_whatever_fails(tmp_path: Path) -> None:
    """Each order is at the 3PL once; statuses, tracking, stock and bills are on the platform; then nothing is sent."""
    print(round_trip(tmp_path, seed=chaos_seed(), orders=20, nights=2, kills=1, reads=False))


def test_what_cannot_be_understood_is_told_and_not_guessed(tmp_path: Path) -> None:
    """Bad records of the 3PL are dead letters or wait, each with its reason; all others arrive."""
    with opened(tmp_path, 0, negative_stock=True) as trip:
        warehouse = trip.partner.warehouse
        trip.place(3)
        trip.sync()
        ids = {order.members["reference"]: each for each, order in warehouse.tables["orders"].items()}
        late, odd, fine = (ids[f"erp:{each}"] for each in trip.orders)
        trip.partner.clock.advance(60)
        trip.client.orders.update(trip.orders[0], {"currency": "USD"})
        trip.partner.meanwhile(lambda request: request.method == "PATCH", lambda: warehouse.cancel(late))
        warehouse.mark(odd, "Quarantined")
        for sku in SKUS:
            warehouse.receive("acme", sku, "L1", "A-01", 50)
        warehouse.adjust(next(iter(warehouse.tables["stock"])), -7)
        warehouse.ship(fine, {1: 1})
        stranger = {"owner": "acme", "reference": "erp:ord_unknown", "lines": [{"sku": "0017", "quantity": 1}]}
        warehouse.add_order(stranger)
        warehouse.add_product("acme", "0099")
        warehouse.receive("acme", "0099", "L1", "A-01", 5)
        warehouse.receive("acme", "0018", "L1", "Z-99", 5)
        warehouse.receive("globex", "0017", "L9", "A-01", 5)
        for _ in range(2):
            assert trip.sync()["exit"] == 1
        listed = json.loads(trip.run("records", "list", "--json").stdout)
        found = {(each["stream"], each["key"]): (each["state"], each["why"]) for each in listed}
        state, why = found.pop(("erp.orders", trip.orders[0]))
        assert (state, " is Void and " in why) == ("rejected", True)
        assert found == {
            ("plain.statuses", trip.orders[1]): ("rejected", "bad_value: is not in the table of the map"),
            ("plain.statuses", "ord_unknown"): ("rejected", "missing: the target no longer has this record"),
            ("plain.stock", "0018|L1|Z-99|available"): ("waiting", "waits for warehouse_bin plain:Z-99"),
            ("plain.stock", "0099|L1|A-01|available"): ("waiting", "waits for product plain:0099"),
        }
        statuses = {each["id"]: each.get("status") for each in trip.sandbox.stored("order")}
        assert [statuses[each] for each in trip.orders] == ["cancelled", None, "partial"]
        lots = {each["externalId"]: each["quantity"] for each in trip.sandbox.stored("inventory_lot")}
        taken = warehouse.tables["shipments"].popitem()[1].members["lines"][0]["sku"]
        full = {f"plain:{sku}|L1|A-01|available": 50 - (sku == taken) for sku in SKUS}
        assert lots == {**full, "plain:0017|L0|A-01|available": -5}
        writes = trip.requested()
        assert trip.sync()["exit"] == 1
        assert trip.requested() == writes


def test_parcels_of_one_order_are_on_several_pages(tmp_path: Path) -> None:
    """A list that is grouped is one whole: an order has the tracking of all its shipments, wherever they are listed."""
    with opened(tmp_path, 0) as trip:
        warehouse = trip.partner.warehouse
        trip.place(1)
        trip.sync()
        (order_id,) = (
            each for each, order in warehouse.tables["orders"].items() if trip.orders[0] in order.members["reference"]
        )
        for sku in SKUS:
            warehouse.receive("acme", sku, "L1", "A-01", 200)
        warehouse.replace_order(
            order_id, warehouse.tables["orders"][order_id].members | {"lines": [{"sku": SKUS[0], "quantity": 120}]}
        )
        numbers = []
        for _ in range(120):  # 50 on a page
            shipment = warehouse.tables["shipments"][warehouse.ship(order_id, {1: 1})]
            numbers.append(shipment.members["tracking"])
        trip.sync()
        (stored,) = trip.sandbox.stored("order")
        assert sorted(parcel["number"] for parcel in stored["tracking"]) == sorted(numbers)
