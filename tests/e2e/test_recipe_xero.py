"""configs/xero.yaml as it is: contacts, items, accounts and invoices come in, by tokens that are used once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.partners.recipe import Recipe, now, opened, requests_of
from tests.partners.token_vendor import CLIENT
from tests.partners.xero import ORGANISATION, RETRY_AFTER_S, Xero

from crossdock.reading.transport.authorization_code_tokens import StoredTokens, TokenFile
from crossdock.testing.sandbox_syncs import write_private_file
from crossdock.values.texts_of_numbers_and_times import json_time_text


@pytest.fixture
def recipe(tmp_path: Path) -> Iterator[Recipe]:
    clock = now()
    fake = Xero(clock)
    tokens = tmp_path / "tokens" / "xero.json"
    secret = write_private_file(tmp_path / "secret", CLIENT[1])
    auth = {"token_url": "URL/token", "client_id": CLIENT[0], "client_secret": secret, "tokens": str(tokens)}
    tenant = write_private_file(tmp_path / "organisation", ORGANISATION)
    changes = {"base_url": "URL/api.xro/2.0", "auth": auth, "headers": {"xero-tenant-id": tenant}}
    granted = fake.connected()
    stored = StoredTokens(granted["access_token"], granted["refresh_token"], 0, json_time_text(clock.now()))
    with TokenFile(tokens).locked():  # as `crossdock connect` leaves it, half an hour later
        TokenFile(tokens).write(stored)
    with opened(tmp_path, "xero.yaml", fake, clock, {"xero": changes}) as made:
        yield made


def vendor(recipe: Recipe) -> Xero:
    assert isinstance(recipe.server.partner, Xero)
    return recipe.server.partner


def filled(fake: Xero, invoices: int = 130) -> None:
    """An organisation with more invoices than fit on a page, some of which are left out."""
    fake.put("Accounts", "a-1", Code="200", Name="Sales", Class="REVENUE")
    fake.put("Accounts", "a-2", Name="Petty cash", Class="ASSET")
    fake.put("Items", "i-1", Code="LAMP", Name="Storm lantern", SalesDetails={"UnitPrice": Decimal("12.5")})
    fake.put("Items", "i-2", Code="OIL", SalesDetails={})
    fake.put("Contacts", "c-1", Name="Harbour Lights", EmailAddress="office@harbour.example", ContactStatus="ACTIVE")
    fake.put("Contacts", "c-2", Name="Closed shop", EmailAddress="", ContactStatus="ARCHIVED")
    line = {"ItemCode": "LAMP", "Quantity": 4, "UnitAmount": Decimal("12.5"), "DiscountRate": 10, "LineAmount": 45}
    for number in range(invoices):
        fake.invoice(number, "c-1" if number % 2 else "c-2", [line])
    fake.invoice(9001, "c-1", [line], Status="DRAFT")
    fake.invoice(9002, "c-1", [line], LineAmountTypes="Inclusive")
    fake.invoice(9003, "c-1", [line], Type="ACCPAY")


def created(effects: list[dict[str, Any]]) -> Counter[str]:
    return Counter(each["resource"] for each in effects if each["operation"] == "create")


def test_an_organisation_comes_in_once(recipe: Recipe) -> None:
    """All of it, with the amounts after discounts; a second sync sends nothing, and asks for changes only."""
    fake = vendor(recipe)
    filled(fake)
    recipe.sync()
    effects = recipe.effects()
    assert created(effects) == {"ledger_account": 1, "product": 2, "customer": 2, "invoice": 130}
    invoices = [each["body"] for each in effects if each["resource"] == "invoice"]
    assert {(item["quantity"], item["unitPrice"]) for body in invoices for item in body["items"]} == {(1, 45)}
    names = {each["body"]["name"] for each in effects if each["resource"] == "product"}
    assert names == {"Storm lantern", "OIL"}
    assert not any("if-modified-since" in request.headers for request, _ in recipe.server.requests)
    before = len(recipe.server.requests)
    recipe.quiet()
    asked = [request.headers for request, _ in recipe.server.requests[before:] if request.method == "GET"]
    assert asked
    assert all("if-modified-since" in each for each in asked)
    recipe.check()


def test_changes_come_in(recipe: Recipe) -> None:
    """A new invoice and a renamed contact are delivered, and nothing else, whatever else Xero lists again."""
    fake = vendor(recipe)
    filled(fake, 3)
    recipe.sync()
    before = len(recipe.effects())
    recipe.clock.advance(3600)
    fake.put("Contacts", "c-1", Name="Harbour Lights Ltd")
    fake.invoice(7, "c-1", [{"ItemCode": "OIL", "Quantity": 1, "LineAmount": Decimal("0.07")}])
    fake.invoice(0, "c-2", [{"ItemCode": "LAMP", "LineAmount": 45}], Status="PAID", AmountPaid=45)
    recipe.sync(1)
    made = [(each["resource"], each["operation"]) for each in recipe.effects()[before:]]
    assert sorted(made) == [("customer", "update"), ("invoice", "create")]
    recipe.quiet()


def test_an_invoice_has_its_tax_and_its_lines_without_an_item(recipe: Recipe) -> None:
    """Amounts without tax get a line of the tax, a text alone is no line, and the sum is what Xero states."""
    fake = vendor(recipe)
    filled(fake, 0)
    del fake.lists["Invoices"]["invoice-9002"]
    taxed = {"ItemCode": "LAMP", "Quantity": 1, "LineAmount": 100, "TaxType": "OUTPUT2", "TaxAmount": 15}
    freight = {"Description": "Freight", "Quantity": 1, "LineAmount": 20, "TaxAmount": 3}
    fake.invoice(1, "c-1", [taxed, freight, {"Description": "Thank you"}, {"Description": "-", "LineAmount": 0}])
    recipe.sync()
    (invoice,) = [each["body"] for each in recipe.effects() if each["resource"] == "invoice"]
    assert [item["unitPrice"] for item in invoice["items"]] == [100, 20, 18]


def test_an_invoice_whose_lines_are_not_its_total_is_a_dead_letter(recipe: Recipe) -> None:
    """A difference of a cent is a line of its own, and is counted; a larger one is refused with both sums."""
    fake = vendor(recipe)
    filled(fake, 0)
    line = {"ItemCode": "LAMP", "Quantity": 1, "LineAmount": 100, "TaxAmount": 15}
    fake.invoice(1, "c-1", [line], Total=115 + Decimal("0.01"))
    fake.invoice(2, "c-1", [line], Total=120)
    recipe.clock.advance(900)
    report = recipe.project.sync()
    (invoice,) = [each["body"] for each in recipe.effects() if each["resource"] == "invoice"]
    assert [item["unitPrice"] for item in invoice["items"]] == [100, 15, 0.01]
    assert report.tallies["xero.invoices"].parts == {"rounding in a line of its own": 1}
    (letter,) = recipe.project.dead_letters().values()
    assert letter == "bad_value Total: is 120, but quantity times unitPrice of items add up to 115"


def test_refresh_tokens_are_used_once(recipe: Recipe) -> None:
    """Each sync after half an hour renews them, and none is used twice."""
    fake = vendor(recipe)
    filled(fake, 3)
    for rotations in (1, 2, 3):
        recipe.sync(3600)
        assert fake.rotations == rotations
    assert not fake.reused


def test_a_429_is_waited_for(recipe: Recipe) -> None:
    """For as long as Retry-After says; nothing is lost or doubled by it."""
    fake = vendor(recipe)
    filled(fake, 3)
    recipe.server.chosen = lambda request: request.path.startswith("/api.xro/")
    recipe.server.faults = {"throttled": 0.4, "lost_answer": 0.1}
    began = recipe.clock.monotonic()
    recipe.sync(0)
    throttled = sum(fault == "throttled" for _, fault in requests_of(recipe.server, "GET", "/api.xro/"))
    assert throttled
    assert recipe.clock.monotonic() - began >= RETRY_AFTER_S
    assert created(recipe.effects()) == {"ledger_account": 1, "product": 2, "customer": 2, "invoice": 3}


def test_a_lost_answer_creates_no_invoice_twice(recipe: Recipe) -> None:
    """Where answers of the platform are lost, each record is there once, also an invoice, which has no look-up."""
    filled(vendor(recipe), 40)
    recipe.lose_answers_of_platform(0.2)
    recipe.sync()
    assert recipe.answers_lost_by_platform() > 3
    assert created(recipe.effects()) == {"ledger_account": 1, "product": 2, "customer": 2, "invoice": 40}
