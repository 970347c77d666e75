"""WooCommerce, by its REST API ``wc/v3``."""

from collections.abc import Sequence

from crossdock import Connector
from crossdock_connectors.shop.streams import ShopStream, streams
from crossdock_connectors.shop.woocommerce.checks import check
from crossdock_connectors.shop.woocommerce.dialect import WooCommerceDialect
from crossdock_connectors.shop.woocommerce.settings import WooCommerceSettings
from crossdock_connectors.shop.woocommerce.target import WooCommerceTarget
from crossdock_connectors.shop.woocommerce.webhooks import received


def _streams(settings: WooCommerceSettings) -> Sequence[ShopStream[WooCommerceSettings]]:
    return streams(WooCommerceDialect(settings))


CONNECTOR = Connector(
    name="woocommerce",
    title="WooCommerce",
    settings=WooCommerceSettings,
    streams=_streams,
    check=check,
    api=WooCommerceSettings.declared_api,
    target=lambda _: WooCommerceTarget(),
    webhooks=received,
)
