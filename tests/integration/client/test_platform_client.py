"""The client against a sandbox, judged by the sandbox's effects log."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.consumers.running import run

from crossdock.client import (
    Address,
    BearerAuth,
    Client,
    Customer,
    InventoryLot,
    Invoice,
    Line,
    Order,
    ProblemError,
    Product,
    StoredCustomer,
    StoredProduct,
    WarehouseBin,
)
from crossdock.errors import UnavailableError
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.values import exact_json

ROOT = Path(__file__).parents[3]
ADDRESS = Address(line1="1 Harbour Street", line2="Back door", city="Hamburg", country="DE")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    fast = SandboxSettings(rate_per_min=10_000_000, burst=1_000_000)
    with SandboxServer(tmp_path_factory.mktemp("sandbox"), fast) as running:
        yield running


@pytest.fixture
def client(server: SandboxServer) -> Iterator[Client]:
    with Client(server.base_url, server.tenant, server.api_key) as opened:
        yield opened


@pytest.fixture(scope="module")
def customer(server: SandboxServer) -> StoredCustomer:
    with Client(server.base_url, server.tenant, server.api_key) as opened:
        return opened.customers.create(
            Customer(external_id="c:1", name="Harbour Lights", billing_address=ADDRESS, shipping_address=ADDRESS)
        )


@pytest.fixture(scope="module")
def product(server: SandboxServer) -> StoredProduct:
    with Client(server.base_url, server.tenant, server.api_key) as opened:
        return opened.products.create(Product(external_id="p:0017", sku="0017", name="Storm lantern"))


def effects(server: SandboxServer, resource: str) -> list[dict[str, Any]]:
    answer = httpx.get(f"{server.base_url}/_sandbox/effects?limit=1000", trust_env=False)
    found: list[dict[str, Any]] = exact_json.loads(answer.content)["data"]
    return [each for each in found if each["resource"] == resource]


def control(server: SandboxServer, path: str, body: dict[str, Any]) -> None:
    httpx.post(f"{server.base_url}/_sandbox/{path}", json=body, trust_env=False).raise_for_status()


class SandboxTime:
    """A clock whose pauses pass on the sandbox's clock, at once."""

    def __init__(self, server: SandboxServer) -> None:
        self.server, self.paused_s = server, list[float]()

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return sum(self.paused_s)

    def sleep(self, seconds: float) -> None:
        self.paused_s.append(seconds)
        control(self.server, "clock", {"advance_s": seconds})


def test_an_invoice_is_created_approved_and_read(
    client: Client, customer: StoredCustomer, product: StoredProduct
) -> None:
    """What is read is what was created, with exact amounts, and an approved invoice cannot be deleted."""
    line = Line(product_id=product.id, quantity=Decimal(3), unit_price=Decimal("12.5001"))
    made = client.invoices.create(
        Invoice(customer_id=customer.id, currency="EUR", items=(line,), auto_post_ledger=True)
    )
    assert (made.items, made.total, made.status) == ((line,), Decimal("37.5003"), "draft")
    approved = client.invoices.approve(made.id)
    assert client.invoices.get(made.id) == approved
    assert approved.status == "approved"
    with pytest.raises(ProblemError) as refused:
        client.invoices.delete(made.id)
    assert refused.value.status == 409
    entries = [entry for each in client.ledger_accounts.list() for entry in client.ledger_accounts.entries(each.id)]
    posted = [(entry.side, entry.amount) for entry in entries if entry.invoice_id == made.id]
    assert sorted(posted) == [("credit", Decimal("37.5003")), ("debit", Decimal("37.5003"))]


@given(
    units=st.integers(-(10**19) + 1, 10**19 - 1).map(lambda n: Decimal(n).scaleb(-4)),
    quantity=st.integers(0, 10**19 - 1).map(lambda n: Decimal(n).scaleb(-4)),
)
@settings(max_examples=30)
def test_every_amount_comes_back_as_it_was_given(
    server: SandboxServer, customer: StoredCustomer, product: StoredProduct, units: Decimal, quantity: Decimal
) -> None:
    """Nothing is rounded on the way to the platform and back, at any number of digits."""
    with Client(server.base_url, server.tenant, server.api_key) as client:
        line = Line(product_id=product.id, quantity=quantity, unit_price=units)
        made = client.invoices.create(Invoice(customer_id=customer.id, currency="EUR", items=(line,)))
    assert (made.items[0].unit_price, made.items[0].quantity) == (units, quantity)
    assert made.total == Context(prec=60).multiply(units, quantity)


def test_only_the_given_members_change(client: Client, customer: StoredCustomer) -> None:
    """None removes a member, an address is replaced as a whole, and the rest stays."""
    other = Address(line1="2 Quay", city="Bremen", country="DE")
    changed = client.customers.update(
        customer.id, {"phone": "+49 1", "billing_address": other, "shipping_address": None}
    )
    assert (changed.phone, changed.billing_address, changed.shipping_address) == ("+49 1", other, None)
    assert (changed.name, changed.external_id) == (customer.name, customer.external_id)


def test_every_page_is_read(client: Client, server: SandboxServer) -> None:
    """A list longer than a page has each resource once, and one by its externalId or time is found."""
    made = [
        client.warehouse_bins.create(WarehouseBin(external_id=f"b:{n}/ä&", code=f"A-{n}", warehouse="HAM"))
        for n in range(7)
    ]
    listed = [each.id for each in client.warehouse_bins.list(page_size=3)]
    assert [each for each in listed if each in {one.id for one in made}] == [each.id for each in made]
    (found,) = client.warehouse_bins.list(external_id="b:3/ä&")
    assert found == made[3]
    later = datetime.now(UTC) + timedelta(days=30)
    assert list(client.warehouse_bins.list(updated_since=later)) == []


def test_a_lot_moves_once_under_one_key(client: Client, server: SandboxServer, product: StoredProduct) -> None:
    """The same call under the same key is one movement."""
    first, second = (
        client.warehouse_bins.create(WarehouseBin(external_id=f"move:{n}", code=f"M-{n}", warehouse="HAM"))
        for n in (1, 2)
    )
    lot = client.inventory_lots.create(
        InventoryLot(
            external_id="lot:1", product_id=product.id, lot_number="L", bin_id=first.id, quantity=Decimal("2.5")
        )
    )
    moves = [
        client.inventory_lots.move(lot.id, to_bin_id=second.id, quantity=Decimal("0.5"), idempotency_key="night-7")
        for _ in range(2)
    ]
    assert moves[0] == moves[1]
    assert client.inventory_lots.get(lot.id).quantity == 2
    assert [each["operation"] for each in effects(server, "inventory_lot")].count("move") == 1


def test_a_refusal_names_status_and_members(client: Client, customer: StoredCustomer) -> None:
    """`ProblemError` has the pointers of all wrong members, and its message quotes no value."""
    lines = tuple(Line(product_id="prd_unknown", quantity=Decimal(1), unit_price=Decimal(1)) for _ in range(2))
    order = Order(
        external_id="o:1",
        customer_id=customer.id,
        currency="EUR",
        items=lines,
        placed_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    with pytest.raises(ProblemError, match="HTTP 422") as refused:
        client.orders.create(order)
    assert [each.pointer for each in refused.value.errors] == ["#/items/0/productId", "#/items/1/productId"]
    assert "prd_unknown" not in str(refused.value)


def test_a_wrong_key_is_refused_and_not_shown(server: SandboxServer) -> None:
    """An unknown API key is a `ProblemError` with 401 that does not contain the key."""
    with (
        Client(server.base_url, server.tenant, BearerAuth("sbx_secret")) as client,
        pytest.raises(ProblemError) as refused,
    ):
        client.products.get("prd_1")
    assert refused.value.status == 401
    assert "sbx_secret" not in str(refused.value)


def test_the_rate_limit_is_waited_for(tmp_path: Path) -> None:
    """Twenty creates against a bucket of three take the pauses that the platform asks for, and all succeed once."""
    with SandboxServer(tmp_path / "slow", SandboxSettings(rate_per_min=1, burst=3)) as server:
        clock = SandboxTime(server)
        with Client(server.base_url, server.tenant, server.api_key, clock=clock) as client:
            made = [client.products.create(Product(external_id=f"{n}", sku=f"{n}", name="n")).id for n in range(20)]
        assert len({each["id"] for each in effects(server, "product")}) == len(set(made)) == 20
        assert len(clock.paused_s) > 10  # for all but the burst, and the minutes that the test itself takes
        assert all(pause >= 1 for pause in clock.paused_s)


@pytest.mark.parametrize("fault", ["error_before", "throttle", "reset_before", "lost_answer", "cut_body"])
def test_a_fault_neither_loses_nor_doubles_an_invoice(tmp_path: Path, fault: str) -> None:
    """With half of all answers bad, each invoice is created exactly once, under one key."""
    with SandboxServer(tmp_path / "faulty", SandboxSettings(rate_per_min=10_000_000, burst=1_000_000)) as server:
        clock = SandboxTime(server)
        with Client(server.base_url, server.tenant, server.api_key, clock=clock, attempts=30) as client:
            customer = client.customers.create(Customer(external_id="c", name="n"))
            product = client.products.create(Product(external_id="p", sku="s", name="n"))
            line = Line(product_id=product.id, quantity=Decimal(1), unit_price=Decimal("0.1"))
            control(server, "faults", {"faults": [{"name": fault, "probability": 0.5}], "seed": 7})
            made = [
                client.invoices.create(Invoice(customer_id=customer.id, currency="EUR", items=(line,))).id
                for _ in range(20)
            ]
        created = [each["id"] for each in effects(server, "invoice") if each["operation"] == "create"]
        assert created == made
        assert clock.paused_s, "no fault was met"


def test_an_unreachable_platform_says_how_to_go_on(tmp_path: Path) -> None:
    """The error names the request and the key under which it can be repeated."""
    transport = httpx.MockTransport(lambda request: (_ for _ in ()).throw(httpx.ReadError("secret", request=request)))
    with SandboxServer(tmp_path / "any") as server:
        clock = SandboxTime(server)
        client = Client(server.base_url, server.tenant, "k", transport=transport, clock=clock, attempts=3)
        with pytest.raises(UnavailableError, match="idempotency_key='k-1'") as error:
            client.products.create(Product(external_id="p", sku="s", name="n"), idempotency_key="k-1")
    assert len(clock.paused_s) == 2
    assert "POST /api/v1/catalog/products" in str(error.value)
    assert "secret" not in str(error.value)


def test_the_example_of_the_documentation_runs(tmp_path: Path) -> None:
    """The page's program runs against a new sandbox; `tests.nightly.test_author_types` checks its types."""
    page = ROOT / "docs" / "how_to" / "client" / "python.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "example.py").write_text(code, encoding="utf-8")
    with SandboxServer(tmp_path / "sandbox") as server:
        known = {"BASE_URL": server.base_url, "TENANT": server.tenant, "API_KEY": server.api_key}
        output = run([sys.executable, "example.py"], tmp_path, known)
    assert output.splitlines()[:2] == ["approved 37.5", "0017 12.5"]
    assert output.splitlines()[2].startswith("404 ")
