"""configs/netsuite.yaml as it is: items, customers and sales orders come in by SuiteQL; and customers go out by eid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from tests.e2e.project_folder import in_process
from tests.partners.netsuite import BELOW, CERTIFICATE, CLIENT, NetSuite
from tests.partners.recipe import Recipe, now, opened, requests_of

from crossdock.runs.parts_between_checkpoints import PART_ROWS
from crossdock.testing.sandbox_syncs import write_private_file

TARGET = {
    "resources": {
        "customers": {
            "members": {"companyName": {"type": "text", "required": True}, "email": "text"},
            "name": "externalId",
            "create": "PUT /record/v1/customer/eid:{externalId}",
            "update": "PATCH /record/v1/customer/{id}",
            "read": "GET /record/v1/customer/{id}",
            "repeated": "ignored",
        }
    }
}
OUT = {"read": "customer", "to": "netsuite.customers", "map": {"companyName": "name", "email": "email"}}


@contextmanager
def at_work(folder: Path, algorithm: str = "PS256", **more: Any) -> Iterator[Recipe]:
    clock = now()
    key: Any = (
        rsa.generate_private_key(65537, 2048) if algorithm == "PS256" else ec.generate_private_key(ec.SECP256R1())
    )
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pem = write_private_file(folder / "key.pem", key.private_bytes(*form).decode())
    assertion = {"private_key": pem, "key_id": write_private_file(folder / "kid", CERTIFICATE), "algorithm": algorithm}
    auth = {"token_url": f"URL{BELOW}/auth/oauth2/v1/token", "client_id": CLIENT, "client_assertion": assertion}
    own = {"base_url": f"URL{BELOW}", "auth": auth, **more.pop("netsuite", {})}
    with opened(folder, "netsuite.yaml", NetSuite(clock, key.public_key()), clock, {"netsuite": own, **more}) as made:
        yield made


@pytest.fixture
def recipe(tmp_path: Path) -> Iterator[Recipe]:
    with at_work(tmp_path) as made:
        yield made


def vendor(recipe: Recipe) -> NetSuite:
    assert isinstance(recipe.server.partner, NetSuite)
    return recipe.server.partner


def filled(fake: NetSuite, orders: int = 5) -> None:
    fake.put("item", 1, itemid="LAMP", displayname="Storm lantern", itemtype="InvtPart", isinactive="F")
    fake.put("item", 2, itemid="OIL", itemtype="NonInvtPart", isinactive="T")
    fake.put("item", 3, itemid="Freight", itemtype="ShipItem", isinactive="F")
    fake.put("customer", 7, altname="Harbour Lights", email="office@harbour.example")
    for number in range(orders):
        fake.order(100 + number, 7, [(1, "2.5", "12.50"), (2, "1", "3.0001")])


def created(recipe: Recipe) -> Counter[str]:
    return Counter(each["resource"] for each in recipe.effects() if each["operation"] == "create")


@pytest.mark.nightly(but=["PS256"])
@pytest.mark.parametrize("algorithm", ["PS256", "ES256"])
def test_an_account_comes_in_once(tmp_path: Path, algorithm: str) -> None:
    """Orders have all their lines, also those on two pages; a second sync sends nothing, with either kind of key."""
    with at_work(tmp_path, algorithm) as recipe:
        filled(vendor(recipe))
        recipe.check()
        recipe.sync()
        assert created(recipe) == {"product": 2, "customer": 1, "order": 5}
        orders = [each["body"] for each in recipe.effects() if each["resource"] == "order"]
        lines = {tuple((item["quantity"], item["unitPrice"]) for item in order["items"]) for order in orders}
        assert lines == {((2.5, 12.5), (1, 3.0001), (1, -0.0001))}  # NetSuite's amount of the line is 3.00
        recipe.quiet()
        recipe.sync(7200)
        assert vendor(recipe).tokens > 1


@pytest.mark.nightly
def test_no_order_is_cut_where_a_long_list_is(recipe: Recipe) -> None:
    """A list of more rows than a run delivers at once, whose pages end inside of orders, gives whole orders."""
    fake = vendor(recipe)
    fake.page_size = 101
    filled(fake, PART_ROWS + 1)  # at exactly 1,000 records some APIs cut lists, which is refused
    recipe.sync()
    orders = [each["body"] for each in recipe.effects() if each["resource"] == "order"]
    assert [len(order["items"]) for order in orders] == [3] * (PART_ROWS + 1)  # and what rounding leaves


def test_changes_come_in(recipe: Recipe) -> None:
    """A changed order comes with all its lines, of which only one is new; and nothing else is sent."""
    fake = vendor(recipe)
    filled(fake)
    recipe.sync()
    before = len(recipe.effects())
    recipe.clock.advance(3600)
    fake.put("customer", 7, altname="Harbour Lights Ltd")
    fake.put("transaction", 102, foreigntotal="43.25")
    line = {"transaction": 102, "mainline": "F", "taxline": "F", "item": 1, "quantity": "-9", "rate": "1"}
    fake.put("transactionline", 10209, **line)
    recipe.sync(60)
    made = recipe.effects()[before:]
    assert {(each["resource"], each["operation"]) for each in made} == {("customer", "update"), ("order", "update")}
    assert len(made) == 2
    (order,) = [each["body"] for each in made if each["resource"] == "order"]
    assert [item["quantity"] for item in order["items"]] == [2.5, 1, 9, 1]
    recipe.quiet()


def test_charges_of_an_order_are_lines(recipe: Recipe) -> None:
    """Freight, a discount and taxes, which have no quantity, are lines with products for them; the sum is the total."""
    fake = vendor(recipe)
    filled(fake, 0)
    charges = [("ShipItem", 3, "7.90"), ("Discount", 9, "-2.50"), ("TaxItem", 8, "3.03"), ("TaxGroup", 8, "0.40")]
    fake.order(200, 7, [(1, "2", "12.50")], charges)
    recipe.sync()
    (order,) = [each["body"] for each in recipe.effects() if each["resource"] == "order"]
    made = [(item["quantity"], item["unitPrice"]) for item in order["items"]]
    assert made == [(2, 12.5), (1, 7.9), (1, -2.5), (1, 3.03), (1, 0.4)]


def test_an_order_whose_lines_are_not_its_total_is_a_dead_letter(recipe: Recipe) -> None:
    """As of an order with a line that the query does not read; the others are delivered."""
    fake = vendor(recipe)
    filled(fake, 2)
    fake.put("transaction", 100, foreigntotal="40.25")
    recipe.clock.advance(900)
    recipe.project.sync()
    assert created(recipe)["order"] == 1
    (letter,) = recipe.project.dead_letters().values()
    assert letter == "bad_value total: is 40.25, but quantity times unitPrice of items add up to 34.2501"


def test_a_429_is_waited_for(recipe: Recipe) -> None:
    """NetSuite states no wait; nothing is lost, and lost answers of the platform double nothing."""
    filled(vendor(recipe))
    recipe.server.chosen = lambda request: not request.path.endswith("/token")
    recipe.server.faults = {"throttled": 0.3}
    recipe.lose_answers_of_platform(0.3)
    recipe.sync(60)
    assert recipe.answers_lost_by_platform()
    assert {fault for _, fault in requests_of(recipe.server, "POST", f"{BELOW}/query")} == {"none", "throttled"}
    assert created(recipe) == {"product": 2, "customer": 1, "order": 5}


def test_customers_go_out_by_their_external_id(tmp_path: Path) -> None:
    """A record is created once although answers are lost, changed by its id, and a refusal has NetSuite's reason."""
    streams = {name: {"enabled": False} for name in ("items", "customers", "orders")}
    own = {"target": TARGET, "streams": streams}
    with at_work(tmp_path, netsuite=own, erp={"kind": "platform", "streams": {"customers_out": OUT}}) as recipe:
        fake = vendor(recipe)
        ids = [recipe.created("sales/customers", externalId=f"shop:{n}", name=f"Shop {n}") for n in range(8)]
        recipe.server.chosen = lambda request: request.method == "PUT"
        recipe.server.faults = {"lost_answer": 0.5}
        recipe.sync()
        made = [each["name"] for each in fake.effects if each["kind"] == "customer_created"]
        assert sorted(made) == sorted(f"erp:{each}" for each in ids)
        assert any(fault == "lost_answer" for _, fault in requests_of(recipe.server, "PUT", BELOW))
        recipe.server.faults = {}
        recipe.changed(f"sales/customers/{ids[0]}", email="office@shop.example")
        recipe.sync()
        assert fake.effects[-1]["body"] == {"email": "office@shop.example"}
        recipe.quiet()


def test_a_create_that_was_not_sent_takes_the_method_of_a_corrected_config(tmp_path: Path) -> None:
    """A wrong path ends the delivery; corrected to a PUT, it creates each record once."""
    streams = {name: {"enabled": False} for name in ("items", "customers", "orders")}
    own = {"target": TARGET, "streams": streams}
    with at_work(tmp_path, netsuite=own, erp={"kind": "platform", "streams": {"customers_out": OUT}}) as recipe:
        ids = [recipe.created("sales/customers", externalId=f"shop:{n}", name=f"Shop {n}") for n in range(3)]
        right = recipe.project.config.read_text(encoding="utf-8")
        wrong = right.replace("PUT /record/v1/customer/eid:{externalId}", "POST /record/v1/customers")
        assert wrong != right
        recipe.project.config.write_text(wrong, encoding="utf-8")
        assert in_process(recipe.project.config, "sync", environment={}).exit_code == 3
        assert vendor(recipe).effects == []
        recipe.project.config.write_text(right, encoding="utf-8")
        done = in_process(recipe.project.config, "sync", environment={})
        assert done.exit_code == 0, done.stdout
        assert sorted(each["name"] for each in vendor(recipe).effects) == sorted(f"erp:{each}" for each in ids)
