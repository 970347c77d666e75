from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.sandbox.raw import ACCOUNTS, CUSTOMERS, INVOICES, ManualTime, Raw, assert_problem, exact


class Books:
    """The two accounts of the tenant, and their entries."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self.receivable, self.revenue = (
            exact(raw("GET", f"{ACCOUNTS}?externalId=sandbox:{code}"))["data"][0]["id"] for code in ("1100", "4000")
        )

    def entries(self, account: str, limit: int = 1000) -> list[dict[str, Any]]:
        """All entries of an account, page by page."""
        found, cursor = [], ""
        while True:
            page = exact(self.raw("GET", f"{ACCOUNTS}/{account}/entries?limit={limit}{cursor}"))
            assert len(page["data"]) <= limit
            found += page["data"]
            if page["nextCursor"] is None:
                return found
            cursor = f"&cursor={page['nextCursor']}"

    def posted(self, **changes: str) -> httpx.Response:
        return self.raw("POST", INVOICES, self.raw.invoice(autoPostLedger="true", **changes))

    def sums(self) -> dict[tuple[str, str], Decimal]:
        """The sum of each side in each currency, over both accounts."""
        sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
        for account in (self.receivable, self.revenue):
            for entry in self.entries(account):
                sums[entry["side"], entry["currency"]] += entry["amount"]
        return sums


@pytest.fixture
def books(raw: Raw) -> Books:
    return Books(raw)


def test_a_tenant_has_two_accounts_from_the_beginning(raw: Raw) -> None:
    """They are listed, with paging too, and have no effect; a second key creates no more of them."""
    raw.sandbox.new_key()
    listed = exact(raw("GET", ACCOUNTS))["data"]
    assert [{name: each[name] for name in ("externalId", "code", "name", "type")} for each in listed] == [
        {"externalId": "sandbox:1100", "code": "1100", "name": "Accounts receivable", "type": "asset"},
        {"externalId": "sandbox:4000", "code": "4000", "name": "Revenue", "type": "revenue"},
    ]
    assert raw.effects() == []
    first = exact(raw("GET", f"{ACCOUNTS}?limit=1"))
    second = exact(raw("GET", f"{ACCOUNTS}?limit=1&cursor={first['nextCursor']}"))
    assert ([*first["data"], *second["data"]], second["nextCursor"]) == (listed, None)
    assert exact(raw("GET", f"{ACCOUNTS}?updatedSince={listed[0]['updatedAt']}"))["data"] == listed
    other = Raw(raw.sandbox, key=raw.sandbox.new_key("other"))
    others = exact(other("GET", ACCOUNTS, x_tenant_slug="other"))["data"]
    assert [each["code"] for each in others] == ["1100", "4000"]
    assert {each["id"] for each in others}.isdisjoint(each["id"] for each in listed)


def test_the_two_accounts_cannot_change(raw: Raw, books: Books) -> None:
    """They cannot be changed or deleted, and no other account may have their externalId."""
    for account in (books.receivable, books.revenue):
        path = f"{ACCOUNTS}/{account}"
        assert_problem(raw("PATCH", path, '{"name":"n"}'), 409)
        assert_problem(raw("DELETE", path), 409)
        assert_problem(raw("PATCH", path, '{"name":"n"}', if_match='"7"'), 412)
        assert raw("GET", path).headers["etag"]
    body = '{"externalId":"sandbox:4000","code":"1","name":"n","type":"asset"}'
    assert_problem(raw("POST", ACCOUNTS, body), 409)
    assert raw.effects() == []


def test_an_invoice_is_posted_as_it_is_created(raw: Raw, books: Books) -> None:
    """One request debits receivable and credits revenue with the exact total, each with an effect."""
    raw.invoice()
    before = len(raw.effects())
    made = books.posted(quantity="3", price="123456789012345.6789")
    invoice = exact(made)
    entries = []
    for account, side in ((books.receivable, "debit"), (books.revenue, "credit")):
        (entry,) = books.entries(account)
        assert entry.pop("id").startswith("ent_")
        assert entry == {
            "accountId": account,
            "invoiceId": invoice["id"],
            "side": side,
            "amount": Decimal("370370367037037.0367"),
            "currency": "EUR",
            "at": invoice["createdAt"],
        }
        entries += books.entries(account)
    effects = raw.effects(f"?after={before}")
    assert [(each["operation"], each["resource"], each["id"], each["body"]) for each in effects] == [
        ("create", "invoice", invoice["id"], invoice),
        ("post", "ledger_account", books.receivable, entries[0]),
        ("post", "ledger_account", books.revenue, entries[1]),
    ]
    assert {each["requestId"] for each in effects} == {made.headers["x-request-id"]}


def test_without_the_flag_nothing_is_posted(raw: Raw, books: Books) -> None:
    """Without autoPostLedger, or with false, neither the creation nor an approval posts anything."""
    for changes in ({}, {"autoPostLedger": "false"}, {"autoPostLedger": "null"}):
        path = raw("POST", INVOICES, raw.invoice(**changes)).headers["location"]
        raw("POST", f"{path}/approve")
    assert books.entries(books.receivable) == books.entries(books.revenue) == []


def test_setting_the_flag_posts_a_draft(raw: Raw, books: Books) -> None:
    """The update that sets autoPostLedger posts the current total."""
    path = raw("POST", INVOICES, raw.invoice(price="10")).headers["location"]
    changed = raw("PATCH", path, '{"autoPostLedger":true,"currency":"GBP"}')
    assert changed.status_code == 200
    assert [(each["amount"], each["currency"]) for each in books.entries(books.receivable)] == [(20, "GBP")]
    assert [each["operation"] for each in raw.effects()][-3:] == ["update", "post", "post"]


def test_a_posted_invoice_cannot_be_changed_or_deleted(raw: Raw, books: Books) -> None:
    """Both are 409, and so is removing the flag; it can still be approved, which posts nothing."""
    path = books.posted().headers["location"]
    before = len(raw.effects())
    assert_problem(raw("PATCH", path, '{"autoPostLedger":false}'), 409)
    assert_problem(raw("PATCH", path, '{"autoPostLedger":null}'), 409)
    assert_problem(raw("DELETE", path), 409)
    assert len(raw.effects()) == before
    assert exact(raw("POST", f"{path}/approve"))["status"] == "approved"
    assert [each["operation"] for each in raw.effects(f"?after={before}")] == ["approve"]
    assert len(books.entries(books.receivable)) == 1


def test_a_credit_note_is_posted_with_the_sides_exchanged(books: Books) -> None:
    """No amount is negative: a negative total debits revenue and credits receivable."""
    books.posted(quantity="-2", price="12.5")
    assert [(each["side"], each["amount"]) for each in books.entries(books.receivable)] == [("credit", 25)]
    assert [(each["side"], each["amount"]) for each in books.entries(books.revenue)] == [("debit", 25)]


@pytest.mark.parametrize("changes", [{"customerId": '"cus_0"'}, {"price": "1.23456"}, {"currency": '"XQQ"'}])
def test_a_refused_invoice_is_not_posted(raw: Raw, books: Books, changes: dict[str, str]) -> None:
    """An invalid invoice leaves no entry."""
    raw.invoice()  # makes the customer and the product
    before = len(raw.effects())
    assert_problem(books.posted(**changes), 422)
    assert len(raw.effects()) == before
    assert books.entries(books.receivable) == []


def test_a_posting_is_replayed_and_not_repeated(raw: Raw, books: Books) -> None:
    """One key posts once, however often and concurrently it is sent."""
    body = raw.invoice(autoPostLedger="true")
    requests = [raw.request("POST", INVOICES, body, idempotency_key=f"k{n % 3}") for n in range(9)]
    assert {each.status_code for each in raw.together(requests)} == {201, 409}
    for number in range(3):
        again = raw("POST", INVOICES, body, idempotency_key=f"k{number}")
        assert again.headers["idempotent-replayed"] == "true"
    assert len(books.entries(books.receivable)) == len(books.entries(books.revenue)) == 3


def test_an_invoice_whose_posting_fails_is_not_stored(raw: Raw, books: Books) -> None:
    """Both happen in one transaction: if the entries cannot be stored, the invoice is not, and there is no effect."""
    raw.invoice()
    before = len(raw.effects())
    raw.sandbox._writing.execute("ALTER TABLE entries RENAME TO elsewhere")
    assert_problem(books.posted(), 500)
    assert raw("POST", INVOICES, raw.invoice()).status_code == 201
    raw.sandbox._writing.execute("ALTER TABLE elsewhere RENAME TO entries")
    assert [each["operation"] for each in raw.effects(f"?after={before}")] == ["create"]
    assert len(exact(raw("GET", INVOICES))["data"]) == 1


def test_a_posting_creates_missing_accounts(raw: Raw) -> None:
    """A data directory without the two accounts gets them with the first posting."""
    raw.sandbox._writing.execute("DELETE FROM stored")
    assert raw("POST", INVOICES, raw.invoice(autoPostLedger="true")).status_code == 201
    books = Books(raw)
    assert [len(books.entries(each)) for each in (books.receivable, books.revenue)] == [1, 1]


def test_entries_are_read_in_pages(raw: Raw, books: Books, clock: ManualTime) -> None:
    """Oldest first, each once, for any page size; another tenant's account is 404."""
    for number in range(5):
        books.posted(price=str(number))
        clock.now -= 1
    amounts = [each["amount"] for each in books.entries(books.receivable)]
    assert amounts == [0, 2, 4, 6, 8]
    for limit in (1, 2, 5):
        assert [each["amount"] for each in books.entries(books.receivable, limit)] == amounts
    other = Raw(raw.sandbox, key=raw.sandbox.new_key("other"))
    assert_problem(other("GET", f"{ACCOUNTS}/{books.receivable}/entries", x_tenant_slug="other"), 404)
    assert_problem(raw("GET", f"{ACCOUNTS}/acc_0/entries"), 404)
    assert_problem(raw("POST", f"{ACCOUNTS}/{books.revenue}/entries", "{}"), 405)
    customer = raw.make(CUSTOMERS, '{"externalId":"x","name":"n"}')
    assert_problem(raw("GET", f"{CUSTOMERS}/{customer}/entries"), 404)


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=x", "cursor=%3F", "cursor=YWJj", "cursor=fDk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5", "updatedSince=x"],
)
def test_a_malformed_query_for_entries_is_refused(raw: Raw, books: Books, query: str) -> None:
    """A malformed or unknown parameter is 400 and never ignored, for the account list too."""
    assert_problem(raw("GET", f"{ACCOUNTS}/{books.receivable}/entries?{query}"), 400)
    assert_problem(raw("GET", f"{ACCOUNTS}?{query}"), 400)


numbers = st.decimals(-(10**6), 10**6, places=4)


invoices = st.tuples(numbers, numbers, st.sampled_from(["EUR", "GBP", "USD"]), st.sampled_from(["true", "false"]))


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=st.lists(invoices, min_size=1, max_size=6))
def test_the_books_balance(raw: Raw, wanted: list[tuple[Decimal, Decimal, str, str]]) -> None:
    """After any creations debits equal credits in each currency, and receivable is the sum of the posted totals."""
    books = Books(raw)
    bodies = [
        raw.invoice(quantity=f"{quantity:f}", price=f"{price:f}", currency=f'"{currency}"', autoPostLedger=flag)
        for quantity, price, currency, flag in wanted
    ]
    answers = raw.together([raw.request("POST", INVOICES, body) for body in bodies])
    assert {each.status_code for each in answers} == {201}
    sums = books.sums()
    assert all(sums["debit", currency] == sums["credit", currency] for _, currency in list(sums))
    open_now: dict[str, Decimal] = defaultdict(Decimal)
    for entry in books.entries(books.receivable):
        open_now[entry["currency"]] += entry["amount"] if entry["side"] == "debit" else -entry["amount"]
    totals: dict[str, Decimal] = defaultdict(Decimal)
    for effect in raw.effects("?resource=invoice&limit=10000"):
        if effect["body"].get("autoPostLedger"):
            totals[effect["body"]["currency"]] += effect["body"]["total"]
    assert open_now == totals
