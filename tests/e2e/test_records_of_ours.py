"""A partner has orders of ours and of others, some with the key of ours as their whole name."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.chaos.round_trip import RoundTrip, opened
from tests.partners.plain_3pl_warehouse import Stored

import crossdock

FETCH = {"path": "/v1/orders", "params": {"owner": "acme", "reference": "{reference}"}, "record": "items"}


def _of_others(trip: RoundTrip) -> dict[str, str]:
    """Place orders of others, whose names look like those of ours; their ids by name."""
    key = trip.orders[0]
    names = [key, *(f"{start}:{key}" for start in ("shop", "ERP", " erp")), f"erp: {key}", f"erp:{key}|"]
    names.append(f"erp:{key.replace('_', '%5F')}")
    lines = [{"sku": "0017", "quantity": 1, "unit_price": 1}]
    return {
        name: trip.partner.warehouse.add_order({"owner": "acme", "reference": name, "lines": lines}) for name in names
    }


def _statuses(trip: RoundTrip) -> list[str | None]:
    found = {each["id"]: each.get("status") for each in trip.sandbox.stored("order")}
    return [found[each] for each in trip.orders]


@pytest.mark.nightly(but=["list", "fetch"])
@pytest.mark.parametrize("way", ["list", "fetch", "until they are final"])
def test_orders_of_others_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Whatever they are called and whatever happens to them, ours keep their status, and the others are not touched."""
    with opened(tmp_path, 0) as trip:
        config = yaml.safe_load((tmp_path / "c.yaml").read_text())
        statuses = config["connections"]["plain"]["streams"]["statuses"]
        statuses["fetch"] = FETCH
        if way == "until they are final":
            statuses["open_until"] = {"field": "status", "in": ["Despatched", "Void"]}
        (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
        trip.place(2)
        assert trip.sync()["exit"] == 0
        others = _of_others(trip)
        for order_id in others.values():
            trip.partner.warehouse.cancel(order_id)
        trip.partner.clock.advance(60)
        before = len(trip.server.requests)
        for name, value in trip.environment.items():
            monkeypatch.setenv(name, value)
        if way == "fetch":
            keys: dict[str, list[crossdock.runs.named_record_delivery.Key]] = {
                "plain.statuses": [trip.orders[0], "SO-1"]
            }
            report = crossdock.run(tmp_path / "c.yaml", keys=keys)
            assert report.exit_code == 0, report.errors
        else:
            synced = trip.sync()
            assert synced["exit"] == 0
            (warning,) = synced["streams"]["plain.statuses"]["notes"]
            assert warning.startswith("5 external ids of not_ours would be ours but for case, white space or encoding")
        assert _statuses(trip) == ["open", None if way == "fetch" else "open"]
        touched = [request.path for request, _ in trip.server.requests[before:] if request.method != "GET"]
        assert touched == []
        trip.partner.warehouse.cancel(_ours(trip)[0])
        trip.partner.clock.advance(60)
        assert trip.sync()["exit"] == 0
        assert _statuses(trip) == ["cancelled", "open"]


def _ours(trip: RoundTrip) -> list[str]:
    orders: dict[str, Stored] = trip.partner.warehouse.tables["orders"]
    ids = {order.members["reference"]: order_id for order_id, order in orders.items()}
    return [ids[f"erp:{each}"] for each in trip.orders]


def test_check_finds_a_key_that_loses_its_namespace(tmp_path: Path) -> None:
    """Where crossdock writes to the partner, too, a shortened key is a fault, and the finding says what to declare."""
    with opened(tmp_path, 0) as trip:
        config = yaml.safe_load((tmp_path / "c.yaml").read_text())
        for name in ("statuses", "parcels"):
            stream = config["connections"]["plain"]["streams"][name]
            if name == "statuses":
                del stream["ours"]
            stream["columns"] = {"reference": {"strip_prefix": "erp:"}}
        (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
        done = trip.command("check")
    assert done.exit_code == 3
    assert " ".join(done.stdout.split()).count("declare ours: {member: reference, namespace: erp}") == 1
