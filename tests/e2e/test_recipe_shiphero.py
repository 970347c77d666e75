"""``configs/shiphero.yaml``, as it is, between a fake of ShipHero and the platform."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.partners.partner_server import PartnerRequest, PartnerServer, serving
from tests.partners.recipe_stage import Recipe
from tests.partners.shiphero import REFRESH_TOKEN, ShipHero

from crossdock.runs.run_report import Report
from crossdock.sandbox import SandboxServer
from crossdock.testing import ManualClock

pytestmark = pytest.mark.nightly


@pytest.fixture
def depot() -> ShipHero:
    """An account with two products in a few locations."""
    made = ShipHero(ManualClock(datetime.now(UTC)))
    for sku in ("LAMP", "0017"):
        made.product(sku)
    for name in ("A-01", "A-02", "B-01"):
        made.location(name)
    made.put("LAMP", "L-A-01", 7, {"id": "LOT", "name": "2026-A", "expires_at": "2027-01-31T00:00:00"})
    made.put("LAMP", "L-A-02", 5)
    made.put("0017", "L-B-01", 2)
    return made


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox") as running:
        yield running


@pytest.fixture
def client(sandbox: SandboxServer) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {sandbox.api_key}", "x-tenant-slug": sandbox.tenant}
    with httpx.Client(base_url=sandbox.base_url, headers=headers, trust_env=False) as opened:
        yield opened


@pytest.fixture
def server(depot: ShipHero) -> Iterator[PartnerServer]:
    with serving(PartnerServer(depot)) as running:
        yield running


@pytest.fixture
def recipe(
    tmp_path: Path, sandbox: SandboxServer, depot: ShipHero, server: PartnerServer, monkeypatch: pytest.MonkeyPatch
) -> Recipe:
    monkeypatch.setenv("SHIPHERO_URL", server.url)
    monkeypatch.setenv("SHIPHERO_REFRESH_TOKEN", REFRESH_TOKEN)
    return Recipe(tmp_path, sandbox, "shiphero", depot.clock)


def delivered(report: Report) -> int:
    """The number of writes of a run that has read and written everything."""
    assert report.status == "done", (report.errors, list(report.messages))
    return report.counters.requests


def created(client: httpx.Client, path: str, **members: Any) -> str:
    answer = client.post(path, json=members)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def placed_order(client: httpx.Client, name: str = "A-1", sku: str = "LAMP", **members: Any) -> str:
    """An order of the platform, which is to be shipped."""
    customer = created(client, "/api/v1/sales/customers", externalId=f"shop:C-{name}", name="Harbour Lights")
    product = created(client, "/api/v1/catalog/products", externalId=f"shop:{name}", sku=sku, name="Storm lantern")
    address = {"name": "Harbour Lights", "line1": "1 Harbour Street", "city": "Hamburg", "country": "DE"}
    sold: dict[str, Any] = {"customerId": customer, "currency": "EUR", "status": "released"}
    items = [{"productId": product, "quantity": 3, "unitPrice": 12.5}]
    sold |= {"placedAt": "2026-11-20T08:15:00Z", "items": items, "shippingAddress": address | {"postalCode": "20457"}}
    return created(client, "/api/v1/sales/orders", externalId=f"shop:{name}", **sold | members)


def test_the_warehouse_is_on_the_platform_and_a_second_sync_sends_nothing(depot: ShipHero, recipe: Recipe) -> None:
    """Products, bins and the units of each location and lot; no record is sent twice."""
    delivered(recipe.sync())
    assert {each["sku"]: each["name"] for each in recipe.stored("product").values()} == {
        "LAMP": "Lamp LAMP",
        "0017": "Lamp 0017",
    }
    assert {each["code"] for each in recipe.stored("warehouse_bin").values()} == {"A-01", "A-02", "B-01"}
    lots = recipe.stored("inventory_lot").values()
    assert sorted((each["lotNumber"], each["quantity"], each.get("expiresOn")) for each in lots) == [
        ("2026-A", 7, "2027-01-31"),
        ("NO-LOT", 2, None),
        ("NO-LOT", 5, None),
    ]
    depot.clock.advance(3600)
    assert delivered(recipe.sync()) == 0
    assert depot.effects == []


def test_what_changes_is_delivered(depot: ShipHero, recipe: Recipe) -> None:
    """Of 120 products on three pages: a name, a count, and a location that has become empty."""
    for number in range(120):
        depot.product(f"N{number:03}")
        depot.put(f"N{number:03}", "L-A-01", 1 + number)
    delivered(recipe.sync())
    assert (len(recipe.stored("product")), len(recipe.stored("inventory_lot"))) == (122, 123)
    for _ in range(2):  # a list without a stated number of rows is compared with three earlier ones
        depot.clock.advance(3600)
        assert delivered(recipe.sync()) == 0
    depot.clock.advance(3600)
    depot.rename("N119", "Lantern")
    depot.put("N007", "L-A-01", 40)
    depot.put("LAMP", "L-A-02", 0)
    assert delivered(recipe.sync()) == 3
    assert recipe.stored("product")["shiphero:N119"]["name"] == "Lantern"
    assert recipe.stored("inventory_lot")["shiphero:I-N007-L-A-01"]["quantity"] == 40
    assert [each["operation"] for each in recipe.effects("inventory_lot")].count("delete") == 1


def test_a_product_in_more_locations_than_the_list_gives_has_all_of_them(depot: ShipHero, recipe: Recipe) -> None:
    """The list has ten, the rest comes by pages of a hundred."""
    for number in range(130):
        depot.put("0017", depot.location(f"Z-{number:03}"), 1)
    delivered(recipe.sync())
    lots = [each for each in recipe.stored("inventory_lot") if each.startswith("shiphero:I-0017-")]
    assert len(lots) == 131
    depot.clock.advance(3600)
    assert delivered(recipe.sync()) == 0


def test_an_order_goes_out_once_and_comes_back_shipped(depot: ShipHero, recipe: Recipe, client: httpx.Client) -> None:
    """With every parcel of every shipment; orders that others have placed are counted and left alone."""
    depot.order_of_others("SHOPIFY-1")
    order_id = placed_order(client)
    delivered(recipe.sync())
    ((number, sent),) = ((each["id"], each["body"]) for each in depot.effects)
    assert sent["partner_order_id"] == f"erp:{order_id}"
    line = {"sku": "LAMP", "partner_line_item_id": "/items/0", "quantity": 3, "price": "12.5"}
    assert sent["line_items"] == [line | {"product_name": "Storm lantern"}]
    assert (sent["shipping_address"]["country"], sent["order_date"]) == ("DE", "2026-11-20T08:15:00Z")
    depot.clock.advance(3600)
    depot.ship(number, ["1Z-A", "1Z-B"], ["1Z-C"])
    delivered(recipe.sync())
    stored = client.get(f"/api/v1/sales/orders/{order_id}").json()
    assert stored["status"] == "shipped"
    assert [each["number"] for each in stored["tracking"]] == ["1Z-A", "1Z-B", "1Z-C"]
    depot.clock.advance(3600)
    assert delivered(recipe.sync()) == 0
    assert len(depot.effects) == 1
    assert recipe.dead_letters() == {}


def test_a_shipment_that_moves_no_time_is_seen(depot: ShipHero, recipe: Recipe, client: httpx.Client) -> None:
    """An order that is not final is asked for by its name in each run."""
    order_id = placed_order(client)
    delivered(recipe.sync())
    depot.clock.advance(3600)
    delivered(recipe.sync())
    depot.clock.advance(3600)
    depot.ship(depot.effects[0]["id"], ["1Z-A"], is_dated=False)
    delivered(recipe.sync())
    assert client.get(f"/api/v1/sales/orders/{order_id}").json()["status"] == "shipped"


def test_an_order_that_is_cancelled_on_the_platform_is_cancelled_there(
    depot: ShipHero, recipe: Recipe, client: httpx.Client
) -> None:
    """Once; one that was shipped meanwhile is a dead letter with the words of the error inside of the 200."""
    orders = [placed_order(client, name) for name in ("A-1", "A-2")]
    delivered(recipe.sync())
    depot.clock.advance(3600)
    delivered(recipe.sync())
    by_name = {each["body"]["partner_order_id"]: each["id"] for each in depot.effects}
    depot.orders[by_name[f"erp:{orders[1]}"]]["fulfillment_status"] = "fulfilled"
    for order_id in orders:
        assert client.patch(f"/api/v1/sales/orders/{order_id}", json={"status": "cancelled"}).status_code == 200
    depot.clock.advance(3600)
    assert recipe.sync("erp.orders_out").status == "degraded"
    cancelled = [each["id"] for each in depot.effects if each["kind"] == "order_cancelled"]
    assert cancelled == [by_name[f"erp:{orders[0]}"]]
    (reason,) = recipe.dead_letters().values()
    assert "already fulfilled and cannot be canceled" in reason


def test_an_order_that_is_refused_inside_a_200_is_a_dead_letter(
    depot: ShipHero, recipe: Recipe, client: httpx.Client
) -> None:
    """With the words of the error; nothing was created."""
    placed_order(client, sku="UNKNOWN")
    assert recipe.sync().status == "degraded"
    (reason,) = recipe.dead_letters().values()
    assert "Product with sku UNKNOWN does not exist" in reason
    assert depot.effects == []


def test_an_order_whose_answer_is_lost_is_looked_for_and_not_sent_twice(
    depot: ShipHero, server: PartnerServer, recipe: Recipe, client: httpx.Client
) -> None:
    """ShipHero takes a second order of the same name; the first one is found in the edges of the look-up."""
    for number in range(5):
        placed_order(client, f"A-{number}")

    def creates(request: PartnerRequest) -> bool:
        return b"order_create" in request.body

    server.faults, server.chosen = {"lost_answer": 1.0}, creates
    recipe.sync()
    server.faults = {}
    for _ in range(2):
        depot.clock.advance(3600)
        report = recipe.sync()
    assert delivered(report) == 0
    assert len(depot.effects) == len({each["body"]["partner_order_id"] for each in depot.effects}) == 5


@pytest.mark.parametrize(
    ("stream", "sent"), [("shiphero.stock", "warehouse_products"), ("erp.orders_out", "order_create")]
)
def test_a_query_without_credits_waits_as_long_as_the_answer_says(
    depot: ShipHero, recipe: Recipe, client: httpx.Client, stream: str, sent: str
) -> None:
    """A list or a mutation that is throttled inside of a 200 is sent again after ``time_remaining``, and not before."""
    placed_order(client)
    delivered(recipe.sync("shiphero.products", "shiphero.bins"))
    depot.credits = 0.5
    delivered(recipe.sync(stream))
    (refused, accepted) = (each for each in depot.requests if sent in each.query)
    assert refused.wait_s > 0
    assert refused.wait_s <= accepted.at - refused.at < refused.wait_s + 3
    assert (len(recipe.stored("inventory_lot")), len(depot.effects)) == ((3, 0) if sent != "order_create" else (0, 1))


def test_an_access_token_that_has_expired_is_renewed(depot: ShipHero, recipe: Recipe) -> None:
    """By the refresh token, which stays the same."""
    delivered(recipe.sync())
    depot.expire_tokens()
    depot.clock.advance(3600)
    depot.rename("LAMP", "Lantern")
    assert delivered(recipe.sync()) == 1
