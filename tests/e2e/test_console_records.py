"""The page of one record asks the target and the source what they have now."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.test_folder_warehouse import serve_folder
from tests.e2e.warehouse import Site
from tests.partners.shop_stage import WooCommerceStage, woocommerce_stage
from tests.partners.woocommerce.shop import FakeShop
from tests.plain_browser import Browser

from crossdock.config.project import project
from crossdock.console import record_page, tenant_configs_and_states, web_server
from crossdock.sandbox import SandboxServer
from crossdock.values.clock import SystemClock


@pytest.fixture
def base_url(site: Site) -> Iterator[str]:
    serve_folder(site)
    site.init()
    site.fill()
    site.sync()
    with web_server.serve_console_in_thread(
        tenant_configs_and_states.single_tenant([site.config]), SystemClock()
    ) as base_url:
        yield base_url


def test_a_record_is_compared_with_what_its_target_holds(site: Site, base_url: str) -> None:
    """By one request; while a run is in progress the page says so instead."""
    browser = Browser(base_url)
    page = browser.open(f"/t/{site.tenant}/record?stream=wms.products&key=P1")
    held = browser.send(page)
    assert "member delivered held now" in held.text
    assert "/externalId wms:P1 wms:P1" in held.text
    assert "differs" not in held.text
    with project.load(site.config).open_state_exclusively():
        refused = browser.send(browser.open(page.url))
    assert (refused.status, "held now" in refused.text) == (503, False)


@pytest.fixture
def shop() -> FakeShop:
    return FakeShop(clock=SystemClock())


@pytest.fixture
def stage(tmp_path: Path, shop: FakeShop) -> Iterator[WooCommerceStage]:
    with (
        SandboxServer(tmp_path / "platform") as platform,
        woocommerce_stage(tmp_path, platform, shop, SystemClock()) as stage,
    ):
        yield stage


def test_a_record_is_read_from_its_source(stage: WooCommerceStage, shop: FakeShop) -> None:
    """Its page shows what the mapping makes of it now beside what was delivered. Nothing is delivered."""
    product = shop.catalog.add("Nail", "2.00", sku="N1")
    assert stage.sync("shop.products").exit_code == 0
    shop.catalog.change(product, {"name": "Steel nail"})
    before = len(stage.effects("product"))
    with (
        web_server.serve_console_in_thread(
            tenant_configs_and_states.single_tenant([stage.config]), SystemClock()
        ) as base_url,
        project.load(stage.config).open_state_exclusively(),
    ):
        browser = Browser(base_url)
        page = browser.open(f"/t/sandbox/record?stream=shop.products&key={product.id}")
        read = browser.send(page)
    assert "What shop.products has now at its source" in read.text
    assert "/name Nail Steel nail" in read.text
    assert len(stage.effects("product")) == before


def test_a_source_that_cannot_be_read_is_told(
    stage: WooCommerceStage, shop: FakeShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page of the record says so, in place of an error page."""
    product = shop.catalog.add("Nail", "2.00", sku="N1")
    assert stage.sync("shop.products").exit_code == 0
    with web_server.serve_console_in_thread(
        tenant_configs_and_states.single_tenant([stage.config]), SystemClock()
    ) as base_url:
        browser = Browser(base_url)
        page = browser.open(f"/t/sandbox/record?stream=shop.products&key={product.id}")
        monkeypatch.setattr(record_page, "_WITHIN_S", 0.1)
        stage.faulty.plan("maintenance", times=100)
        late = browser.send(page)
        assert "did not answer within 0.1 s" in late.text
        assert late.status == 200
