"""The page of one record asks the target what it holds now."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.e2e.test_folder_warehouse import serve_folder
from tests.e2e.warehouse import Site
from tests.plain_browser import Browser

from crossdock.config.project import project
from crossdock.console import server, tenants
from crossdock.values.clock import SystemClock


@pytest.fixture
def base_url(site: Site) -> Iterator[str]:
    serve_folder(site)
    site.init()
    site.fill()
    site.sync()
    with server.serve(tenants.one([site.config]), SystemClock()) as base_url:
        yield base_url


def test_a_record_is_compared_with_what_its_target_holds(site: Site, base_url: str) -> None:
    """By one request; while a run is in progress the page says so instead."""
    browser = Browser(base_url)
    page = browser.open(f"/t/{site.tenant}/record?stream=wms.products&key=P1")
    held = browser.send(page)
    assert "member delivered held now" in held.text
    assert "/externalId wms:P1 wms:P1" in held.text
    assert "differs" not in held.text
    with project.load(site.config).exclusive_state():
        refused = browser.send(browser.open(page.url))
    assert (refused.status, "held now" in refused.text) == (503, False)
