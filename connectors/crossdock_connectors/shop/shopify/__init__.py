"""Shopify, by its Admin API (GraphQL)."""

from collections.abc import Sequence

from crossdock import Connector
from crossdock.mapping.stream_declaration import OpenUntil
from crossdock_connectors.shop.shopify.check import check
from crossdock_connectors.shop.shopify.invoicing_rules import SETTLED
from crossdock_connectors.shop.shopify.settings import ShopifySettings
from crossdock_connectors.shop.shopify.shop_reader import ShopifyReader
from crossdock_connectors.shop.shopify.target import ShopifyTarget
from crossdock_connectors.shop.shopify.webhooks import webhook_declaration
from crossdock_connectors.shop.streams import ShopStream, streams_of_shop

_SETTLED = OpenUntil(field=SETTLED, in_=("true",))  # a refund may not count as a change of its order when it is paid


def _streams(settings: ShopifySettings) -> Sequence[ShopStream[ShopifySettings]]:
    made = streams_of_shop(ShopifyReader(settings))
    for stream in made:
        if stream.name == "invoices":
            stream.open_until = _SETTLED
    return made


CONNECTOR = Connector(
    name="shopify",
    title="Shopify",
    settings=ShopifySettings,
    streams=_streams,
    check=check,
    api=ShopifySettings.declared_api,
    target=ShopifyTarget,
    webhooks=webhook_declaration,
)
