"""A credential narrowed to single accounts and bins reaches nothing else, also not through other resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.unit.sandbox.raw import ACCOUNTS, BINS, INVOICES, LOTS, Raw, assert_problem, exact
from tests.unit.sandbox.stock import Stock

from crossdock.sandbox import Sandbox


def narrowed(raw: Raw, *scopes: str) -> Raw:
    return Raw(raw.sandbox, key=raw.sandbox.new_key("sandbox", *scopes))


def listed(raw: Raw, path: str) -> list[dict[str, Any]]:
    answer = raw("GET", path)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = exact(answer)["data"]
    return found


def assert_insufficient(answer: httpx.Response, scope: str) -> None:
    assert_problem(answer, 403)
    assert answer.headers["www-authenticate"].endswith(f'error="insufficient_scope", scope="{scope}"')


@pytest.fixture
def stock(raw: Raw) -> Stock:
    return Stock(raw)


def test_a_bin_is_named_by_id_or_external_id_and_not_by_code(raw: Raw, stock: Stock) -> None:
    """Lists, look-ups and pages show the named bin alone, and the others do not exist."""
    for name in ("wms:B", stock.bins[1]):
        reader = narrowed(raw, f"bins:{name}:read")
        for query in ("", "?limit=1", "?externalId=wms:B"):
            answer = exact(reader("GET", BINS + query))
            assert [each["id"] for each in answer["data"]] == [stock.bins[1]]
            assert answer["nextCursor"] is None
        assert listed(reader, f"{BINS}?externalId=wms:A") == []
        assert reader("GET", f"{BINS}/{stock.bins[1]}").status_code == 200
        foreign, missing = (reader("GET", f"{BINS}/{each}") for each in (stock.bins[0], "bin_" + "0" * 25))
        assert_problem(foreign, 404)
        assert foreign.content == missing.content
        assert_insufficient(reader("PATCH", f"{BINS}/{stock.bins[1]}", '{"zone":"z"}'), "bins:write")
    assert listed(narrowed(raw, "bins:B:read"), BINS) == []


def test_a_name_in_the_form_of_an_id_is_only_an_id(raw: Raw, stock: Stock) -> None:
    """A bin whose externalId is the id of another one is not mistaken for it."""
    raw.make(BINS, f'{{"externalId":"{stock.bins[0]}","code":"x","warehouse":"W"}}')
    assert [each["id"] for each in listed(narrowed(raw, f"bins:{stock.bins[0]}:read"), BINS)] == [stock.bins[0]]


def test_a_narrowed_credential_creates_and_renames_nothing(raw: Raw, stock: Stock) -> None:
    """It may change the other members and delete; a record outside of its scopes is 404, whatever is asked."""
    writer = narrowed(raw, "bins:wms:A:write", "bins:wms:B:read")
    for name in ("wms:A", "wms:B", "wms:C", "new"):
        answer = writer("POST", BINS, f'{{"externalId":"{name}","code":"1","warehouse":"W"}}')
        assert_insufficient(answer, "bins:write")
    path = f"{BINS}/{stock.bins[0]}"
    for name in ("wms:B", "wms:C", "new"):
        assert_insufficient(writer("PATCH", path, f'{{"externalId":"{name}"}}'), "bins:write")
    assert writer("PATCH", path, '{"zone":"z","code":"AA"}').status_code == 200
    assert_insufficient(writer("DELETE", f"{BINS}/{stock.bins[1]}"), "bins:write")
    for method, body in (("PATCH", "{}"), ("DELETE", None)):
        assert_problem(writer(method, f"{BINS}/{stock.bins[2]}", body), 404)
    assert writer("DELETE", path).status_code == 204


def test_an_account_is_named_by_its_code_or_id(raw: Raw) -> None:
    """Its entries are read with it. Two accounts with the same code are named by neither."""
    by_code = {each["code"]: each["id"] for each in listed(raw, ACCOUNTS)}
    raw.make(INVOICES, raw.invoice(autoPostLedger="true"))
    for name in ("4000", by_code["4000"]):
        reader = narrowed(raw, f"accounts:{name}:read")
        assert [each["code"] for each in listed(reader, ACCOUNTS)] == ["4000"]
        assert len(listed(reader, f"{ACCOUNTS}/{by_code['4000']}/entries")) == 1
        assert_problem(reader("GET", f"{ACCOUNTS}/{by_code['1100']}/entries"), 404)
    raw.make(ACCOUNTS, '{"externalId":"second","code":"4000","name":"n","type":"revenue"}')
    assert listed(narrowed(raw, "accounts:4000:read"), ACCOUNTS) == []
    assert len(listed(narrowed(raw, f"accounts:{by_code['4000']}:read"), ACCOUNTS)) == 1


def test_a_parent_account_must_be_readable(raw: Raw) -> None:
    """A foreign parent is answered like one that does not exist; one that is already set may stay."""
    made = '{{"externalId":"{0}","code":"{0}","name":"n","type":"asset"{1}}}'
    top, other = raw.make(ACCOUNTS, made.format("1", "")), raw.make(ACCOUNTS, made.format("3", ""))
    below_top = made.format("2", f',"parentId":"{top}"')
    child = f"{ACCOUNTS}/{raw.make(ACCOUNTS, below_top)}"
    writer = narrowed(raw, "accounts:2:write")
    assert writer("PATCH", child, '{"name":"m"}').status_code == 200
    answers = [writer("PATCH", child, f'{{"parentId":"{each}"}}') for each in (other, "acc_" + "0" * 25)]
    assert [each.status_code for each in answers] == [422, 422]
    assert answers[0].content == answers[1].content
    wider = narrowed(raw, "accounts:2:write", "accounts:3:read")
    assert wider("PATCH", child, f'{{"parentId":"{other}"}}').status_code == 200


def test_posting_needs_both_accounts(raw: Raw) -> None:
    """Plain ``invoices:write`` posts. Narrowed to accounts, both must be writable, for a creation and a change."""
    needed = "accounts:1100:write accounts:4000:write"
    body, draft = raw.invoice(autoPostLedger="true"), raw.make(INVOICES, raw.invoice())
    for scopes in ("accounts:4000:write", "accounts:1100:read accounts:4000:write", "*:read accounts:4000:write"):
        poster = narrowed(raw, "invoices:write", *scopes.split())
        for _ in range(2):
            assert_insufficient(poster("POST", INVOICES, body, idempotency_key="k"), needed)
        assert_insufficient(poster("PATCH", f"{INVOICES}/{draft}", '{"autoPostLedger":true}'), needed)
        assert poster("POST", INVOICES, raw.invoice()).status_code == 201
    assert raw.effects("?operation=post") == []
    for scopes in ("", needed, "*:write accounts:4000:read", "accounts:read"):
        poster = narrowed(raw, "invoices:write", *scopes.split())
        assert poster("POST", INVOICES, body).status_code == 201
    assert len(raw.effects("?operation=post")) == 8


def test_lots_are_reached_through_their_bins(raw: Raw, stock: Stock) -> None:
    """Only lots in bins that may be read are listed, and none without a bin."""
    stock.make("in B", "1", stock.bins[1])
    nowhere = stock.make("nowhere", "1", None)
    reader = narrowed(raw, "lots:read", "bins:wms:B:read")
    assert [each["externalId"] for each in listed(reader, LOTS)] == ["in B"]
    assert listed(reader, f"{LOTS}?externalId=L") == []
    for lot in (stock.lot, nowhere):
        assert_problem(reader("GET", f"{LOTS}/{lot}"), 404)
    assert len(listed(narrowed(raw, "lots:read"), LOTS)) == 3


def test_a_lot_cannot_leave_or_enter_the_narrowing(raw: Raw, stock: Stock) -> None:
    """Creation, change, deletion and movement touch writable bins only; a foreign bin looks like a missing one."""
    body = '{{"externalId":"{}","productId":"{}","lotNumber":"1","quantity":1{}}}'
    foreign = stock.make("foreign", "5", stock.bins[2])
    writer = narrowed(raw, "lots:write", "bins:wms:A:write", "bins:wms:B:read")
    before = len(raw.effects())
    for bin_id in (stock.bins[1], stock.bins[2], "bin_" + "0" * 25):
        in_bin = f',"binId":"{bin_id}"'
        answers = [
            writer("POST", LOTS, body.format("n", stock.product, in_bin)),
            writer("PATCH", f"{LOTS}/{stock.lot}", f'{{"binId":"{bin_id}"}}'),
            writer("POST", stock.path(), f'{{"toBinId":"{bin_id}","quantity":1}}'),
        ]
        assert [each.status_code for each in answers] == [422] * 3
    assert_insufficient(writer("POST", LOTS, body.format("n", stock.product, "")), "bins:write")
    assert_insufficient(writer("PATCH", f"{LOTS}/{stock.lot}", '{"binId":null}'), "bins:write")
    in_a = f'{{"toBinId":"{stock.bins[0]}","quantity":1}}'
    assert_problem(writer("POST", stock.path(foreign), in_a), 404)
    for method, change in (("PATCH", "{}"), ("DELETE", None)):
        assert_problem(writer(method, f"{LOTS}/{foreign}", change), 404)
    assert len(raw.effects()) == before
    assert writer("POST", LOTS, body.format("n", stock.product, f',"binId":"{stock.bins[0]}"')).status_code == 201
    both = narrowed(raw, "lots:write", "bins:wms:A:write", "bins:wms:C:write")
    assert both("POST", stock.path(foreign), in_a).status_code == 201


@pytest.fixture
def token_of(raw: Raw) -> Callable[[str, str], Raw]:
    def made(client_scopes: str, scope: str) -> Raw:
        client, secret = raw.sandbox.clients.create_credential(scopes=client_scopes.split())
        form = f"grant_type=client_credentials&client_id={client.id}&client_secret={secret}&scope={scope}"
        headers: dict[str, str | None] = {"authorization": None, "content_type": "application/x-www-form-urlencoded"}
        answer = raw("POST", "/oauth/token", form, **headers)
        return Raw(raw.sandbox, key=answer.json()["access_token"])

    return made


def test_a_token_cannot_shed_the_narrowing_of_its_client(
    raw: Raw, stock: Stock, token_of: Callable[[str, str], Raw]
) -> None:
    """A token that asks for fewer scopes never reaches more than its client."""
    poster = token_of("invoices:write accounts:4000:write", "invoices:write")
    assert poster("POST", INVOICES, raw.invoice(autoPostLedger="true")).status_code == 403
    reader = token_of("lots:read bins:wms:B:read", "lots:read")
    assert listed(reader, LOTS) == []
    assert len(listed(token_of("lots:read bins:wms:A:read", "lots:read"), LOTS)) == 1


def test_narrowings_do_not_cross_tenants(raw: Raw, sandbox: Sandbox) -> None:
    """The same code in another tenant is another account."""
    own = {each["id"] for each in listed(raw, ACCOUNTS)}
    foreign = Raw(
        sandbox, key=sandbox.new_key("acme", "accounts:4000:read", *(f"accounts:{each}:read" for each in own))
    )
    found = exact(foreign("GET", ACCOUNTS, x_tenant_slug="acme"))["data"]
    assert [each["code"] for each in found] == ["4000"]
    assert found[0]["id"] not in own
