"""The connector of Shopify shops without its pauses, for a shop on the loopback interface."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from crossdock.sources import Api, RateLimit
from crossdock.testing.record_source_for_target_tests import connector_whose_target_never_waits
from crossdock_connectors.shop import shopify
from crossdock_connectors.shop.shopify.settings import ShopifySettings


class HurriedSettings(ShopifySettings):
    """A shop whose requests nothing but its points limits."""

    kind: Literal["hurried_shop"]  # type: ignore[assignment]  # a kind of its own, since it is installed beside the other

    def declared_api(self) -> Api:
        return replace(super().declared_api(), rate=RateLimit(per_minute=600_000, burst=10_000))


CONNECTOR = replace(
    connector_whose_target_never_waits(shopify.CONNECTOR),
    name="hurried_shop",
    settings=HurriedSettings,
    api=HurriedSettings.declared_api,
)
