"""Shopify, by its Admin API (GraphQL)."""

from collections.abc import Sequence

from crossdock import Connector
from crossdock_connectors.shop.shopify.check import check
from crossdock_connectors.shop.shopify.dialect import ShopifyDialect
from crossdock_connectors.shop.shopify.settings import ShopifySettings
from crossdock_connectors.shop.shopify.target import ShopifyTarget
from crossdock_connectors.shop.shopify.webhooks import received
from crossdock_connectors.shop.streams import ShopStream, streams


def _streams(settings: ShopifySettings) -> Sequence[ShopStream[ShopifySettings]]:
    return streams(ShopifyDialect(settings))


CONNECTOR = Connector(
    name="shopify",
    title="Shopify",
    settings=ShopifySettings,
    streams=_streams,
    check=check,
    api=ShopifySettings.declared_api,
    target=ShopifyTarget,
    webhooks=received,
)
