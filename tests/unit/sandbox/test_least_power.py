"""Every credential does all that its scopes permit, and nothing else: judged by the effects log and a second rule book.

The rules are written here a second time, over the few records of the test, independently of the sandbox's code. More
examples are in `tests.long.test_properties`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.sandbox.raw import ACCOUNTS, BINS, CUSTOMERS, INVOICES, LOTS, ManualTime, Raw, exact

from crossdock.sandbox import Sandbox, SandboxSettings

TENANTS = ("sandbox", "acme")
PLAIN = [
    f"{name}:{access}"
    for name in ("invoices", "customers", "lots", "bins", "accounts", "*")
    for access in ("read", "write")
]
NARROWED = [
    f"{name}:{access}"
    for name in ("bins:wms:A", "bins:wms:B", "accounts:4000", "accounts:1100", "accounts:5000")
    for access in ("read", "write")
]
SCOPES = st.lists(st.sampled_from(PLAIN[:10] + NARROWED * 2 + PLAIN[10:]), min_size=1, max_size=5, unique=True)
OWN, SLUG = st.sampled_from(TENANTS), st.sampled_from((*TENANTS, "sandbox"))


class Request(NamedTuple):
    """A request that succeeds with every right. *needs* are the rights; each record is named as in a scope."""

    method: str
    path: str
    body: str | None
    needs: tuple[tuple[str, str, str], ...]  # resource, access, record; "" for a new record or none in particular
    touches: tuple[tuple[str, str, str], ...] = ()  # the same, needed by narrowed credentials only


class World:
    """The same records in two tenants."""

    def __init__(self, folder: Path) -> None:
        self.sandbox = Sandbox(folder, SandboxSettings(burst=10**6), clock=ManualTime())
        self.owner = {tenant: Raw(self.sandbox, key=self.sandbox.new_key(tenant)) for tenant in TENANTS}
        self.count = 0

    def make(self, tenant: str, path: str, body: str) -> str:
        answer = self.owner[tenant]("POST", path, body, x_tenant_slug=tenant)
        assert answer.status_code == 201, answer.text
        return str(exact(answer)["id"])

    def requests(self, tenant: str) -> list[Request]:
        """Requests on records that exist for this example only."""
        self.count += 1
        n = self.count
        stored = exact(self.owner[tenant]("GET", f"{BINS}?limit=1000", x_tenant_slug=tenant))["data"]
        stored += exact(self.owner[tenant]("GET", f"{ACCOUNTS}?limit=1000", x_tenant_slug=tenant))["data"]
        ids = {each.get("code") if each["id"].startswith("acc") else each["externalId"]: each["id"] for each in stored}
        for name in ("wms:A", "wms:B"):
            if name not in ids:
                ids[name] = self.make(tenant, BINS, f'{{"externalId":"{name}","code":"1","warehouse":"W"}}')
        if "5000" not in ids:
            ids["5000"] = self.make(tenant, ACCOUNTS, '{"externalId":"e","code":"5000","name":"n","type":"asset"}')
        customer = self.make(tenant, CUSTOMERS, f'{{"externalId":"{n}","name":"n"}}')
        product = self.make(tenant, "/api/v1/catalog/products", f'{{"externalId":"{n}","sku":"s","name":"n"}}')
        line = f'"productId":"{product}","quantity":5'
        lot = '{{"externalId":"{}","lotNumber":"{}","binId":"{}",' + line + "}}"
        lot_id = self.make(tenant, LOTS, lot.format(f"l{n}", n, ids["wms:A"]))
        invoice = f'{{"customerId":"{customer}","currency":"EUR","items":[{{{line},"unitPrice":1}}]'
        in_a, in_b = ("bins", "write", "wms:A"), ("bins", "write", "wms:B")
        posting = (("accounts", "write", "1100"), ("accounts", "write", "4000"))
        parent = f'{{"parentId":"{ids["4000"]}"}}'
        return [
            Request("POST", CUSTOMERS, f'{{"externalId":"x{n}","name":"n"}}', (("customers", "write", ""),)),
            Request("PATCH", f"{CUSTOMERS}/{customer}", '{"name":"m"}', (("customers", "write", ""),)),
            Request("GET", f"{CUSTOMERS}/{customer}", None, (("customers", "read", ""),)),
            Request("POST", INVOICES, invoice + "}", (("invoices", "write", ""),)),
            Request("POST", INVOICES, invoice + ',"autoPostLedger":true}', (("invoices", "write", ""),), posting),
            Request("GET", f"{BINS}/{ids['wms:A']}", None, (("bins", "read", "wms:A"),)),
            Request("PATCH", f"{BINS}/{ids['wms:B']}", f'{{"zone":"{n}"}}', (in_b,)),
            Request("POST", BINS, f'{{"externalId":"b{n}","code":"1","warehouse":"W"}}', (("bins", "write", "new"),)),
            Request("GET", f"{ACCOUNTS}/{ids['4000']}/entries", None, (("accounts", "read", "4000"),)),
            Request("PATCH", f"{ACCOUNTS}/{ids['5000']}", f'{{"name":"{n}"}}', (("accounts", "write", "5000"),)),
            Request(
                "PATCH",
                f"{ACCOUNTS}/{self.make(tenant, ACCOUNTS, _account(n))}",
                parent,
                (("accounts", "write", "new"), ("accounts", "read", "4000")),
            ),
            Request("GET", f"{LOTS}/{lot_id}", None, (("lots", "read", ""),), (("bins", "read", "wms:A"),)),
            Request(
                "POST", f"{LOTS}/{lot_id}/movements", _movement(ids["wms:B"]), (("lots", "write", ""),), (in_a, in_b)
            ),
            Request("POST", LOTS, lot.format(f"m{n}", n, ids["wms:B"]), (("lots", "write", ""),), (in_b,)),
            Request("DELETE", f"{LOTS}/{lot_id}", None, (("lots", "write", ""),), (in_a,)),
        ]


def _account(number: int) -> str:
    return f'{{"externalId":"a{number}","code":"a{number}","name":"n","type":"asset"}}'


def _movement(bin_id: str) -> str:
    return f'{{"toBinId":"{bin_id}","quantity":1}}'


def has(scopes: Iterable[str], resource: str, access: str, record: str) -> bool:
    accesses = {"read": ("read", "write"), "write": ("write",)}[access]
    sufficient = {f"{name}:{each}" for name in (resource, "*", f"{resource}:{record}") for each in accesses}
    return not sufficient.isdisjoint(scopes)


def expected(scopes: list[str], request: Request) -> bool:
    restricted = {each.split(":")[0] for each in scopes if each.count(":") > 1}
    touched = [each for each in request.touches if each[0] in restricted]
    return all(has(scopes, *each) for each in (*request.needs, *touched))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("sandbox"))
    with made.sandbox:
        yield made


def token(world: World, tenant: str, scopes: list[str], asked: list[str]) -> str:
    client, secret = world.sandbox.clients.create_credential(tenant, scopes)
    scope = quote_plus(" ".join(asked))
    form = f"grant_type=client_credentials&client_id={client.id}&client_secret={secret}&scope={scope}"
    headers: dict[str, str | None] = {"authorization": None, "content_type": "application/x-www-form-urlencoded"}
    return str(world.owner[tenant]("POST", "/oauth/token", form, **headers).json()["access_token"])


def does_what_its_scopes_permit(world: World, data: st.DataObject, scopes: list[str], own: str, slug: str) -> None:
    kind = data.draw(st.sampled_from(["key", "token"]))
    key = world.sandbox.new_key(own, *scopes) if kind == "key" else token(world, own, scopes, scopes)
    request = data.draw(st.sampled_from(world.requests(slug)))
    caller, before = Raw(world.sandbox, key=key), last_effect(world)
    answer = caller(request.method, request.path, request.body, x_tenant_slug=slug)
    effects = world.owner["sandbox"].effects(f"?after={before}")
    if own == slug and expected(scopes, request):
        assert answer.status_code in {200, 201, 204}, answer.text
        assert bool(effects) is (request.method != "GET")
        assert {each["tenant"] for each in effects} <= {own}
    else:
        assert answer.status_code in {403, 404, 422}, answer.text
        assert effects == []


def has_no_more_power_than_its_client(world: World, data: st.DataObject, scopes: list[str]) -> None:
    fewer = data.draw(st.lists(st.sampled_from(scopes), min_size=1, unique=True))
    request = data.draw(st.sampled_from(world.requests("sandbox")))
    before = last_effect(world)
    answer = Raw(world.sandbox, key=token(world, "sandbox", scopes, fewer))(request.method, request.path, request.body)
    if not expected(scopes, request):
        assert answer.status_code in {403, 404, 422}, answer.text
        assert world.owner["sandbox"].effects(f"?after={before}") == []


@pytest.mark.nightly
@settings(max_examples=30)
@given(data=st.data(), scopes=SCOPES, own=OWN, slug=SLUG)
def test_forbidden_requests_have_no_effect_and_permitted_ones_pass(
    world: World, data: st.DataObject, scopes: list[str], own: str, slug: str
) -> None:
    """For a key, a token, and a token with fewer scopes than its client."""
    does_what_its_scopes_permit(world, data, scopes, own, slug)


@settings(max_examples=examples(80))
@given(data=st.data(), scopes=SCOPES)
def test_a_token_with_fewer_scopes_has_no_more_power_than_its_client(
    world: World, data: st.DataObject, scopes: list[str]
) -> None:
    """Whatever a token leaves out, it does nothing that a key with its client's scopes could not do."""
    has_no_more_power_than_its_client(world, data, scopes)


def last_effect(world: World) -> int:
    (seq,) = world.sandbox._reader.execute("SELECT coalesce(max(seq), 0) FROM effects").fetchone()
    return int(seq)
