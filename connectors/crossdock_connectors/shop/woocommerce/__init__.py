"""WooCommerce, by its REST API ``wc/v3``."""

from collections.abc import Sequence

from crossdock import Connector
from crossdock.mapping.stream_declaration import Reread
from crossdock_connectors.shop.streams import ShopStream, streams_of_shop
from crossdock_connectors.shop.woocommerce.check import check
from crossdock_connectors.shop.woocommerce.settings import WooCommerceSettings
from crossdock_connectors.shop.woocommerce.shop_reader import WooCommerceReader
from crossdock_connectors.shop.woocommerce.target import WooCommerceTarget
from crossdock_connectors.shop.woocommerce.webhooks import webhook_declaration

_REREAD = Reread(every="7d")  # its dates of change miss edited items and buyers of orders, and metadata of products


def _streams(settings: WooCommerceSettings) -> Sequence[ShopStream[WooCommerceSettings]]:
    made = streams_of_shop(WooCommerceReader(settings))
    for stream in made:
        if stream.name in {"customers", "orders", "invoices", "products"}:
            stream.reread = _REREAD
    return made


CONNECTOR = Connector(
    name="woocommerce",
    title="WooCommerce",
    settings=WooCommerceSettings,
    streams=_streams,
    check=check,
    api=WooCommerceSettings.declared_api,
    target=lambda _: WooCommerceTarget(),
    webhooks=webhook_declaration,
)
