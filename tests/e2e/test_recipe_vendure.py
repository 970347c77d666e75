"""``configs/vendure.yaml``, as it is, between a fake of a Vendure shop and the platform."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.recipe_stage import Recipe
from tests.partners.shop_recipe import charge
from tests.partners.vendure import PASSWORD, Vendure

from crossdock.runs.run_report import Report
from crossdock.sandbox import SandboxServer
from crossdock.testing import ManualClock

pytestmark = pytest.mark.nightly

OTHER_STOCK = {
    "kind": "folder_warehouse",
    "path": "exports",
    "streams": {
        "stock": {
            "files": "STOCK_*.csv",
            "mode": "append",
            "format": {},
            "key": ["VARIANT"],
            "to": "vendure.variants",
            "contributes": ["stockOnHand"],
            "matches": "id",
            "map": {"stockOnHand": {"from": "QTY", "as": "integer"}},
        }
    },
}


@pytest.fixture
def shop() -> Vendure:
    """A shop with a customer and two variants, one of them without minor units."""
    made = Vendure(ManualClock())
    made.customer("Ada", "Lovelace", "ada@example.com")
    made.variant("LAMP", 1990, stock=7)
    made.variant("0017", 500, stock=2, currency="JPY")
    return made


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox") as running:
        yield running


@pytest.fixture
def recipe(tmp_path: Path, sandbox: SandboxServer, shop: Vendure, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recipe]:
    with serving(PartnerServer(shop)) as server:
        for kind in ("shipping", "rounding"):
            monkeypatch.setenv(f"{kind.upper()}_PRODUCT", charge(sandbox, kind))
        monkeypatch.setenv("VENDURE_URL", server.url)
        monkeypatch.setenv("VENDURE_PASSWORD", PASSWORD)
        (tmp_path / "exports").mkdir()
        yield Recipe(tmp_path, sandbox, "vendure", shop.clock, {"wms": OTHER_STOCK})


def delivered(report: Report) -> int:
    """The number of writes of a run that has read and written everything."""
    assert report.status == "done", (report.errors, report.messages)
    return report.counters.requests


def later(shop: Vendure) -> None:
    """Long enough that nothing is read again as too young."""
    shop.clock.advance(3600)


def test_an_order_is_delivered_when_it_is_placed(shop: Vendure, recipe: Recipe) -> None:
    """A draft of an administrator is not active, as placed orders are not (vendure#2105), and is none of them."""
    draft = shop.order("1", {"1": 2}, state="Draft", orderPlacedAt=None)
    shop.order("1", {"1": 2}, state="Cancelled", orderPlacedAt=None)
    shop.order("1", {"1": 3})
    for state in ("Draft", "ArrangingPayment"):
        shop.change("orders", draft, state=state)
        later(shop)
        assert recipe.sync().exit_code == 0
        assert (list(recipe.stored("order")), recipe.dead_letters()) == (["vendure:3"], {})
    shop.change("orders", draft, state="PaymentAuthorized", orderPlacedAt=shop.clock.now().isoformat())
    later(shop)
    delivered(recipe.sync())
    assert recipe.stored("order")["vendure:1"]["status"] == "authorized"


def test_the_shop_is_on_the_platform_and_a_second_sync_sends_nothing(shop: Vendure, recipe: Recipe) -> None:
    """Prices are exact in each currency, stock is by location, an order has its lines; no record is sent twice."""
    shop.order("1", {"1": 3})
    delivered(recipe.sync())
    products, lots = recipe.stored("product"), recipe.stored("inventory_lot")
    assert {key: (each["sku"], str(each["unitPrice"]), each["currency"]) for key, each in products.items()} == {
        "vendure:1": ("LAMP", "19.9", "EUR"),
        "vendure:2": ("0017", "500", "JPY"),
    }
    assert {key: each["quantity"] for key, each in lots.items()} == {"vendure:1|1": 7, "vendure:2|1": 2}
    order = recipe.stored("order")["vendure:1"]
    assert (order["status"], order["currency"], order["shippingAddress"]["city"]) == ("authorized", "EUR", "Hamburg")
    assert [(each["quantity"], str(each["unitPrice"])) for each in order["items"]] == [(3, "19.9")]
    later(shop)
    assert delivered(recipe.sync()) == 0
    assert shop.effects == []


def test_an_order_has_the_sum_of_the_shop(shop: Vendure, recipe: Recipe) -> None:
    """Shipping is a line, and so is a cent of a price that does not divide; an amount besides is a dead letter."""
    number = shop.order("1", {"1": 3}, shipping=490)
    shop.records["orders"][number]["totalWithTax"] += 1
    charged = shop.order("1", {"1": 1})
    shop.records["orders"][charged]["totalWithTax"] += 250  # a surcharge
    report = recipe.sync()
    order = recipe.stored("order")[f"vendure:{number}"]
    made = [(each["quantity"], str(each["unitPrice"])) for each in order["items"]]
    assert made == [(3, "19.9"), (1, "4.9"), (1, "0.01")]
    assert report.tallies["vendure.orders"].parts == {"rounding in a line of its own": 1}
    (letter,) = recipe.dead_letters().values()
    assert letter == "bad_value totalWithTax: is 22.4, but quantity times unitPrice of items add up to 19.9"


def test_what_changes_is_delivered(shop: Vendure, recipe: Recipe) -> None:
    """Of 250 variants on three pages: a price, a count that moves no time, and a variant that is deleted."""
    for number in range(250):
        shop.variant(f"N{number}", 100 + number)
    delivered(recipe.sync())
    assert len(recipe.stored("product")) == 252
    for _ in range(2):  # a list of what exists is compared with three earlier ones
        later(shop)
        assert delivered(recipe.sync()) == 0
    later(shop)
    shop.change("variants", "1", price=2090)
    shop.count_stock("2", 1)
    del shop.records["variants"]["100"]
    assert delivered(recipe.sync()) == 3
    assert str(recipe.stored("product")["vendure:1"]["unitPrice"]) == "20.9"
    assert recipe.stored("product")["vendure:100"]["active"] is False
    assert recipe.stored("inventory_lot")["vendure:2|1"]["quantity"] == 1


def test_a_payment_that_moves_no_time_is_seen(shop: Vendure, recipe: Recipe) -> None:
    """An order that is not final is fetched in each run; one that is final is not asked for again."""
    number = shop.order("1", {"1": 1})
    delivered(recipe.sync())
    later(shop)
    shop.settle_payment(number)
    assert delivered(recipe.sync()) == 1
    assert recipe.stored("order")[f"vendure:{number}"]["status"] == "paid"
    shop.change("orders", number, state="Delivered")
    later(shop)
    assert delivered(recipe.sync()) == 1
    later(shop)
    shop.queries.clear()
    delivered(recipe.sync())
    assert not [each for each in shop.queries if "order(id: $id)" in each["query"]]


def test_a_session_that_ends_is_begun_again(shop: Vendure, recipe: Recipe) -> None:
    """FORBIDDEN inside of a 200 leads to one login, and to the same request once more."""
    delivered(recipe.sync())
    shop.end_sessions()
    later(shop)
    shop.change("customers", "1", lastName="King")
    shop.queries.clear()
    assert delivered(recipe.sync()) == 1
    assert recipe.stored("customer")["vendure:1"]["name"] == "Ada King"
    assert len([each for each in shop.queries if "login(" in each["query"]]) == 1


def test_a_refused_login_says_why(shop: Vendure, recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a type of error in the data of a 200; it is asked once, since more could lock the user out."""
    monkeypatch.setenv("VENDURE_PASSWORD", "another-password")
    report = recipe.sync("vendure.locations")
    assert "The provided credentials are invalid" in str(report.errors["vendure.locations"])
    assert len(shop.queries) == 1


def cancel_on_platform(sandbox: SandboxServer, number: str) -> None:
    """Somebody cancels the order on the platform."""
    headers = {"authorization": f"Bearer {sandbox.api_key}", "x-tenant-slug": sandbox.tenant}
    with httpx.Client(base_url=sandbox.base_url, headers=headers, trust_env=False) as client:
        (found,) = client.get("/api/v1/sales/orders", params={"externalId": f"vendure:{number}"}).json()["data"]
        answer = client.patch(f"/api/v1/sales/orders/{found['id']}", json={"status": "cancelled"})
        assert answer.status_code == 200, answer.text


def test_an_order_that_is_cancelled_on_the_platform_is_cancelled_in_the_shop(
    shop: Vendure, recipe: Recipe, sandbox: SandboxServer
) -> None:
    """Once, with the reason; the shop's own state then comes back as the same status."""
    number = shop.order("1", {"1": 1})
    delivered(recipe.sync())
    cancel_on_platform(sandbox, number)
    for _ in range(3):
        later(shop)
        delivered(recipe.sync())
    assert [(each["kind"], each["id"], each["body"]["reason"]) for each in shop.effects] == [
        ("order_cancelled", number, "Cancelled")
    ]
    assert recipe.stored("order")[f"vendure:{number}"]["status"] == "cancelled"


def test_what_the_shop_refuses_inside_a_200_is_a_dead_letter_with_its_words(
    shop: Vendure, recipe: Recipe, sandbox: SandboxServer
) -> None:
    """An ErrorResult in the data is no success, and is not sent again."""
    number = shop.order("1", {"1": 1}, state="Shipped")
    delivered(recipe.sync())
    cancel_on_platform(sandbox, number)
    later(shop)
    report = recipe.sync()
    assert report.status == "degraded", report.errors
    (reason,) = recipe.dead_letters().values()
    assert "Cannot transition Order" in reason
    later(shop)
    assert recipe.sync().counters.requests == 0
    assert shop.effects == []


def test_stock_of_another_system_is_set_in_the_shop(shop: Vendure, recipe: Recipe) -> None:
    """By the variant's id, as one argument of a mutation with several; the lot of the platform follows."""
    path = recipe.folder / "exports" / "STOCK_1.csv"
    path.write_text("VARIANT,QTY\n2,40\n", encoding="utf-8")
    os.utime(path, (1_600_000_000, 1_600_000_000))
    delivered(recipe.sync())
    assert shop.stock_of("2") == 40
    sent: list[dict[str, Any]] = [each["body"] for each in shop.effects]
    assert sent == [{"id": "2", "stockOnHand": 40}]
    later(shop)
    delivered(recipe.sync())
    assert recipe.stored("inventory_lot")["vendure:2|1"]["quantity"] == 40
    later(shop)
    assert delivered(recipe.sync()) == 0
