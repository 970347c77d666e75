"""``crossdock check`` of a Shopify shop, as a user sees it in a terminal of 80 columns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.partners.partner_server import Partner, PartnerAnswer, PartnerRequest, PartnerServer, serving
from tests.partners.shop_stage import shopify_stage
from tests.partners.shopify.access import ALL_SCOPES
from tests.partners.shopify.site import Site

from crossdock.sandbox import SandboxServer

FIRST_LOAD = "a first load writes about 2 records: 1 min 0 s at 10,000 a minute"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path_factory.mktemp("sandbox")) as running:
        yield running


class _Website:
    """A server that is no shop."""

    def __init__(self) -> None:
        self.effects: list[dict[str, Any]] = []

    def throttled(self) -> PartnerAnswer:
        return PartnerAnswer(429)

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        page = b"<!DOCTYPE html><html><head><title>Only one step left!</title></head><body></body></html>"
        return PartnerAnswer(200, page, {"content-type": "text/html; charset=utf-8"})


def checked(folder: Path, platform: SandboxServer, site: Site, **settings: Any) -> tuple[int, list[str]]:
    """The exit code, and the lines about the shop as a source, without the one that depends on the day."""
    with shopify_stage(folder, platform, site, **settings) as stage:
        done = processes.finish([*CROSSDOCK, "-C", str(stage.config), "check"], os.environ | {"COLUMNS": "80"})
    assert done.stderr == ""
    lines = [line.partition("shop: ") for line in done.stdout.splitlines() if "  shop: " in line]
    others = ("is supported until", "can be written", "shop as a target", "reads what the source marks")
    return done.exit_code, [f"{ok.strip()} {text}" for ok, _, text in lines if not any(each in text for each in others)]


def test_a_shop_that_can_be_read(tmp_path: Path, platform: SandboxServer) -> None:
    """Each finding is a line of its own, and none is cut."""
    _, lines = checked(tmp_path, platform, Site())
    assert lines == [
        "ok Lampen & Stühle, EUR",
        "ok the token has all scopes that the streams need",
        "ok 0 orders, 1 variants, 0 customers",
        f"ok {FIRST_LOAD}, and some minutes to read them by bulk operations",
    ]


def test_a_token_without_scopes(tmp_path: Path, platform: SandboxServer) -> None:
    """Exit 3; each missing scope is a line with the streams that need it."""
    code, lines = checked(tmp_path, platform, Site(scopes=ALL_SCOPES - {"read_all_orders", "read_customers"}))
    hidden = "without the scope read_all_orders, orders older than 60 days are not seen"
    assert code == 3
    assert lines == [
        "ok Lampen & Stühle, EUR",
        "FAIL the scope read_customers is missing: needed for customers, orders, invoices [scopes_missing]",
        f"FAIL {hidden}: grant it, or set first [scopes_missing]",
    ]


def test_a_wrong_token(tmp_path: Path, platform: SandboxServer) -> None:
    """Exit 3; the shop's own message is shown, and the token is not."""
    site = Site()
    with serving(PartnerServer(site.shop)) as server:
        wrong = Site(token="shpat_wrong")
        code, lines = checked(tmp_path, platform, wrong, base_url=server.url)
    assert code == 3
    line, as_target = lines
    assert as_target == f"FAIL {server.url}: rejected the credential (HTTP 401) [target_unauthorized]"
    assert line.startswith(f"FAIL {server.url}/admin/api/")
    assert "HTTP 401" in line
    assert "Invalid API key or access token" in line
    assert "shpat" not in line


@pytest.mark.parametrize("is_website", [False, True])
def test_an_address_that_is_no_shop(tmp_path: Path, platform: SandboxServer, is_website: bool) -> None:
    """Exit 3; the address is shown with what is wrong: it was not found, or it is a page for people."""
    site = Site()
    partner: Partner = _Website() if is_website else site.shop
    with serving(PartnerServer(partner)) as server:
        url = server.url if is_website else f"{server.url}/other"
        code, lines = checked(tmp_path, platform, site, base_url=url)
    assert code == 3
    [line] = lines
    assert line.startswith(f"FAIL {url}/admin/api/")
    assert ("it is an HTML page" if is_website else "HTTP 404") in line
