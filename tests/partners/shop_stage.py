"""A shop and the platform for tests: a fake shop on loopback, a sandbox, and a project that syncs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.partners.partner_server import PartnerServer, serving
from tests.partners.shopify.site import Site
from tests.partners.shopify.watched import WatchedShop
from tests.partners.stage import Project
from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_faults import Faulty
from tests.partners.woocommerce.shop_keys import ApiKey
from tests.partners.woocommerce.shop_server import serving_shop

from crossdock.sandbox import SandboxServer
from crossdock.testing.sandbox_syncs import write_private_file
from crossdock.values.clock import Clock


def shopify(folder: Path, url: str, token: str, **settings: Any) -> dict[str, Any]:
    """The connection of a Shopify shop."""
    secret = write_private_file(folder / f"token-of-{urlsplit(url).port}", token)
    return {"kind": "shopify", "base_url": url, "token": secret, **settings}


class ShopifyStage(Project):
    """One Shopify shop, whose connection is called ``shop``.

    Attributes:
        site: The fake and its clock, which the project has as well.
        watched: The fake as the connector sees it.
    """

    def __init__(
        self,
        folder: Path,
        sandbox: SandboxServer,
        site: Site,
        server: PartnerServer,
        watched: WatchedShop,
        settings: Mapping[str, Any],
        **more: Any,
    ) -> None:
        self.site, self.server, self.watched = site, server, watched
        connections = {"shop": shopify(folder, server.url, site.shop.token, **settings)}
        super().__init__(folder, sandbox, connections, site.clock, **more)


@contextmanager
def shopify_stage(
    folder: Path, sandbox: SandboxServer, site: Site, listen: Mapping[str, str] | None = None, **settings: Any
) -> Iterator[ShopifyStage]:
    watched = WatchedShop(site.shop)
    with serving(PartnerServer(watched)) as server:
        yield ShopifyStage(folder, sandbox, site, server, watched, settings, **_section(listen))


def woocommerce(folder: Path, url: str, key: ApiKey, **settings: Any) -> dict[str, Any]:
    """The connection of a WooCommerce shop."""
    return {
        "kind": "woocommerce",
        "base_url": url,
        "consumer_key": write_private_file(folder / "consumer-key", key.consumer_key),
        "consumer_secret": write_private_file(folder / "consumer-secret", key.consumer_secret),
        **settings,
    }


class WooCommerceStage(Project):
    """One WooCommerce shop, whose connection is called ``shop``.

    Attributes:
        faulty: The fake, with the faults that tests plan.
    """

    def __init__(
        self,
        folder: Path,
        sandbox: SandboxServer,
        faulty: Faulty,
        server: PartnerServer,
        clock: Clock,
        settings: Mapping[str, Any],
        **more: Any,
    ) -> None:
        self.faulty, self.server = faulty, server
        connections = {"shop": woocommerce(folder, server.url, ApiKey(), **settings)}
        super().__init__(folder, sandbox, connections, clock, **more)


@contextmanager
def woocommerce_stage(
    folder: Path,
    sandbox: SandboxServer,
    shop: FakeShop,
    clock: Clock,
    listen: Mapping[str, str] | None = None,
    **settings: Any,
) -> Iterator[WooCommerceStage]:
    """Args:
    clock: Of the project; that of the shop may differ from it.
    """
    faulty = Faulty(shop)
    with serving_shop(shop, faulty) as server:
        yield WooCommerceStage(folder, sandbox, faulty, server, clock, settings, **_section(listen))


def _section(listen: Mapping[str, str] | None) -> dict[str, Any]:
    return {} if listen is None else {"listen": listen}
