"""Two Shopify shops of one brand that share their products by SKU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.shop_stage import shopify
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.site import Site
from tests.partners.stage import Project

from crossdock.sandbox import SandboxServer, SandboxSettings


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox", SandboxSettings(rate_per_min=600_000, burst=100_000)) as sandbox:
        yield sandbox


def test_products_are_written_once_and_used_by_both(tmp_path: Path, sandbox: SandboxServer) -> None:
    """One shop writes the products; orders and stock of the other refer to them, whatever its own ids are."""
    berlin = Site()
    vienna = Site(berlin.clock)
    vienna.variant("SOFA", "999.00", 1)  # so that the same product has another id
    chairs = [site.variant("CHAIR", "33.33", 50) for site in (berlin, vienna)]
    assert chairs[0].id != chairs[1].id
    for site, chair in zip((berlin, vienna), chairs, strict=True):
        site.shop.orders.place(Line(chair, 3), customer=site.shop.customers.add(email="zoe@example.com"))
    with serving(PartnerServer(berlin.shop)) as first, serving(PartnerServer(vienna.shop)) as second:
        connections = {
            "berlin": shopify(tmp_path, first.url, berlin.shop.token, product_key="sku", namespace="brand"),
            "vienna": shopify(tmp_path, second.url, vienna.shop.token, product_namespace="brand"),
        }
        project = Project(tmp_path, sandbox, connections, berlin.clock)
        report = project.sync()
    goods = {
        each["externalId"]: each for each in project.stored("product").values() if "charge" not in each["externalId"]
    }
    assert sorted(goods) == ["brand:CHAIR", "brand:LAMP"]
    orders = project.stored("order").values()
    assert {item["productId"] for order in orders for item in order["items"]} == {goods["brand:CHAIR"]["id"]}
    assert len(orders) == 2
    assert report.exit_code == 1
    assert list(project.dead_letters().values()) == []
    assert project.waiting() == ["vienna.stock waits for product brand:SOFA"]


def test_a_variant_without_a_sku_is_a_dead_letter(tmp_path: Path, sandbox: SandboxServer) -> None:
    """Nothing can refer to it: its row has no key, and an order with it names the member."""
    site = Site()
    product = site.shop.catalog.add_product("Vase")
    vase = site.shop.catalog.add_variant(product, None, "5.00")
    site.shop.orders.place(Line(vase, 1), customer=site.shop.customers.add(email="zoe@example.com"))
    with serving(PartnerServer(site.shop)) as server:
        connection = shopify(tmp_path, server.url, site.shop.token, product_key="sku")
        project = Project(tmp_path, sandbox, {"shop": connection}, site.clock)
        report = project.sync()
    assert report.exit_code == 1
    reasons = project.dead_letters()
    assert "bad_value /lineItems/0/variant/sku: is empty, and the products' key is the SKU" in reasons.values()
    assert reasons["shop.products "] == "key_missing key: the key is empty"
