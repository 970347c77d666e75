"""The ready configs of 3PLs, as they are: an order of the platform goes out, is shipped, and comes back shipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.e2e.project_folder import ROOT
from tests.ended_commands import Done
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.shipbob import ShipBob
from tests.partners.shipbob_client import CHANNELS, LOCATIONS, effects, stocked

from crossdock.sandbox import SandboxServer

TOKEN = "token-of-ours"


@pytest.fixture
def fake() -> ShipBob:
    return ShipBob({TOKEN: [1, 2, 3]}, CHANNELS, LOCATIONS)


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox") as running:
        yield running


@pytest.fixture
def client(platform: SandboxServer) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {platform.api_key}", "x-tenant-slug": platform.tenant}
    with httpx.Client(base_url=platform.base_url, headers=headers, trust_env=False) as opened:
        yield opened


def created(client: httpx.Client, path: str, **members: Any) -> str:
    answer = client.post(path, json=members)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def released_order(client: httpx.Client) -> str:
    """An order of a lamp, to be shipped."""
    customer = created(client, "/api/v1/sales/customers", externalId="shop:C1", name="Harbour Lights")
    product = created(client, "/api/v1/catalog/products", externalId="shop:LAMP", sku="LAMP", name="Storm lantern")
    address = {"name": "Harbour Lights", "line1": "1 Harbour Street", "city": "Hamburg", "country": "DE"}
    return created(
        client,
        "/api/v1/sales/orders",
        externalId="shop:A-1",
        customerId=customer,
        currency="EUR",
        placedAt="2026-11-20T08:15:00Z",
        status="released",
        items=[{"productId": product, "quantity": 3, "unitPrice": 12.5}],
        shippingAddress=address | {"postalCode": "20457"},
    )


@pytest.mark.nightly
def test_an_order_goes_out_and_comes_back_shipped(
    tmp_path: Path, platform: SandboxServer, client: httpx.Client, fake: ShipBob
) -> None:
    """configs/shipbob.yaml: the order is at ShipBob once, its parcel and status are on the platform, and then all is
    quiet in both directions."""
    stocked(fake, "LAMP", 10)
    order_id = released_order(client)
    with serving(PartnerServer(fake)) as server:

        def run(*arguments: str) -> Done:
            command = [*CROSSDOCK, "-C", str(ROOT / "configs" / "shipbob.yaml")]
            environment = {**os.environ, "CROSSDOCK_API_KEY": platform.api_key, "SHIPBOB_TOKEN": TOKEN}
            return processes.finish([*command, "-C", str(local), *arguments], environment)

        local = tmp_path / "local.yaml"
        changes = {
            "platform": {"base_url": platform.base_url, "tenant": platform.tenant},
            "state": f"sqlite:///{tmp_path}/state.db",
            "connections": {"shipbob": {"base_url": f"{server.url}/2026-01"}},
        }
        local.write_text(yaml.safe_dump(changes), encoding="utf-8")
        assert run("init").exit_code == 0
        first = run("sync", "--json")
        assert first.exit_code == 0, first.stderr + first.stdout
        (sent,) = effects(fake, "order_created")
        assert sent["body"]["reference_id"] == f"erp:{order_id}"
        (number,) = fake.warehouse.orders
        fake.warehouse.ship(number, tracking_number="1Z-A")
        assert run("sync").exit_code == 0
        stored = client.get(f"/api/v1/sales/orders/{order_id}").json()
        assert stored["status"] == "shipped"
        assert [each["number"] for each in stored["tracking"]] == ["1Z-A"]
        last = run("sync", "--json")
        assert (last.exit_code, last.document["requests"]) == (0, 0), last.stdout
    assert len(effects(fake, "order_created")) == 1
