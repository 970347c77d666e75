"""Orders of the platform become orders of a 3PL: read from a real sandbox, delivered to a fake partner."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from tests.integration.platform_source import depot_connector
from tests.integration.platform_source.reading import Reading
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.plain_3pl import Plain3pl

from crossdock.config.project import connections_and_bound_streams

ORDERS = {
    "read": "order",
    "to": "depot.orders",
    "expand": ["customerId", "productId"],
    "map": {
        "owner": {"const": "acme"},
        "currency": "currency",
        "customer": {"object": {"name": "customer.name"}},
        "lines": {
            "of": "items",
            "each": {
                "sku": "product.sku",
                "quantity": {"from": "quantity", "as": "decimal"},
                "unit_price": {"from": "unitPrice", "as": "decimal"},
            },
        },
    },
}


@pytest.fixture
def depot(monkeypatch: pytest.MonkeyPatch) -> Iterator[PartnerServer]:
    """The fake with the products of the platform, and its connector installed."""
    load = connections_and_bound_streams.load_connector
    monkeypatch.setattr(
        connections_and_bound_streams,
        "load_connector",
        lambda kind: depot_connector.CONNECTOR if kind == "depot" else load(kind),
    )
    partner = Plain3pl(owners=("acme",))
    for number in range(3):
        partner.warehouse.add_product("acme", f"P{number}")
    with serving(PartnerServer(partner, {"throttled": 0.1, "unavailable": 0.1}, seed=1)) as server:
        yield server


def configure(erp: Reading, depot: PartnerServer, **changes: Any) -> None:
    erp.configure({"orders": ORDERS | changes}, depot={"kind": "depot", "base_url": depot.url})


def created(depot: PartnerServer) -> list[dict[str, Any]]:
    return [each["body"] for each in depot.partner.effects if each["kind"] == "order_created"]


def test_orders_arrive_with_names_and_skus(erp: Reading, depot: PartnerServer) -> None:
    """Ids of the platform are replaced by what the 3PL knows; a second run sends nothing, a change follows."""
    ids = erp.products(3)
    orders = [erp.order(ids[:number], f"Buyer {number}", f"o{number}") for number in (1, 2, 3)]
    configure(erp, depot)
    erp.sync()
    assert {each["reference"]: each["customer"]["name"] for each in created(depot)} == {
        f"erp:{order.id}": f"Buyer {number}" for number, order in enumerate(orders, 1)
    }
    longest = max((each["lines"] for each in created(depot)), key=len)
    assert [line["sku"] for line in longest] == ["P0", "P1", "P2"]
    assert longest[0]["unit_price"] == Decimal("9.5")
    before = len(depot.partner.effects)
    erp.sync()
    assert len(depot.partner.effects) == before
    erp.client.orders.update(orders[0].id, {"currency": "USD"})
    erp.sync()
    assert [each["body"] for each in depot.partner.effects[before:]] == [{"currency": "USD"}]


@pytest.mark.nightly
def test_a_change_of_an_expanded_record_waits_for_the_order_to_be_read_again(
    erp: Reading, depot: PartnerServer
) -> None:
    """A customer's new name alone changes no order; it arrives with the order's next change."""
    order = erp.order(erp.products(1))
    erp.order([order.items[0].product_id], key="o2")  # the last record of a run is read again by the next one
    configure(erp, depot, overlap_s=0)
    erp.sync()
    before = len(depot.partner.effects)
    erp.client.customers.update(order.customer_id, {"name": "Bo"})
    erp.sync()
    assert len(depot.partner.effects) == before
    erp.client.orders.update(order.id, {"currency": "USD"})
    erp.sync()
    (changed,) = [each["body"] for each in depot.partner.effects[before:]]
    assert changed == {"currency": "USD", "customer": {"name": "Bo"}}


def test_deleted_orders_are_cancelled(erp: Reading, depot: PartnerServer) -> None:
    """The list of existing orders shows what is gone."""
    ids = erp.products(1)
    orders = [erp.order(ids, key=f"o{number}") for number in range(10)]
    configure(erp, depot, on_gone="delete", gone={"at_most_percent": 20})
    for _ in range(4):
        erp.sync()
    erp.client.orders.delete(orders[0].id)
    erp.sync()
    assert [each["kind"] for each in depot.partner.effects].count("order_cancelled") == 1


def test_personal_members_of_the_platform_are_masked(erp: Reading, depot: PartnerServer) -> None:
    """What a partner's resource does not declare is personal if it is made of personal members that are read."""
    configure(erp, depot)
    assert erp.project.personal_data_masks.personal_members(
        "erp.orders", erp.project.scope_by_stream["erp.orders"]
    ) == {"customer"}
