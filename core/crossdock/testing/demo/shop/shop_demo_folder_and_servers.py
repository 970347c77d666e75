"""``crossdock demo --shop`` as it runs: its folder with config, secrets and state, and the three servers."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Literal

from msgspec import Struct

from crossdock.sandbox import SandboxServer
from crossdock.testing.demo.demo_folder_and_servers import (
    create_empty_demo_folder,
    free_port_below_ephemeral,
    write_and_set_environment_variables,
)
from crossdock.testing.demo.shop.json_server import serve_api
from crossdock.testing.demo.shop.sample_3pl import Sample3pl
from crossdock.testing.demo.shop.sample_shop import SampleShop
from crossdock.testing.demo.shop.shopify_api import ShopifyApi
from crossdock.testing.demo.shop.woocommerce_api import WooCommerceApi

Kind = Literal["shopify", "woocommerce"]
CONFIG = "crossdock.yaml"


class ShopDemo(Struct, frozen=True):
    """The running demo.

    Attributes:
        variables: The environment variables that the config names.
    """

    shop: SampleShop
    depot: Sample3pl
    platform: SandboxServer
    variables: Mapping[str, str]


@contextmanager
def create_and_serve_shop_demo(
    folder: Path, kind: Kind, *, ships_when_shipments_are_listed: bool = False
) -> Iterator[ShopDemo]:
    """Create a demo folder, and run the platform, the shop and the 3PL on it.

    Args:
        kind: The API of the shop.
        ships_when_shipments_are_listed: As `Sample3pl`.

    Raises:
        ConfigError: If the folder is not empty, or cannot be created.
    """
    create_empty_demo_folder(folder)
    shop, token, key = SampleShop(), secrets.token_hex(16), secrets.token_hex(16)
    api = ShopifyApi(shop, token) if kind == "shopify" else WooCommerceApi(shop, token)
    stock = {article.sku: article.stock for article in shop.articles}
    depot = Sample3pl(key, stock, ships_when_asked=ships_when_shipments_are_listed)
    with (
        SandboxServer(folder / "sandbox", port=free_port_below_ephemeral()) as platform,
        serve_api(api.respond) as shop_url,
        serve_api(depot.respond) as depot_url,
    ):
        variables = {
            "PLATFORM_URL": platform.base_url,
            "CROSSDOCK_API_KEY": platform.api_key,
            "SHOP_URL": shop_url,
            **({"SHOP_TOKEN": token} if kind == "shopify" else {"SHOP_KEY": token, "SHOP_SECRET": key}),
            "THREEPL_URL": depot_url,
            "THREEPL_KEY": key,
        }
        config = files("crossdock.testing.demo.shop").joinpath(f"{kind}.yaml").read_text("utf-8")
        (folder / CONFIG).write_text(config, "utf-8")
        write_and_set_environment_variables(folder, variables)
        yield ShopDemo(shop, depot, platform, variables)
