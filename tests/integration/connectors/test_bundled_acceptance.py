"""All streams of the bundled 3PLs and shops, and a declared one, pass the acceptance of syncs in real processes."""

from __future__ import annotations

import httpx
import pytest
from tests.integration.connectors import test_shopify_contract, test_threepl_contract
from tests.integration.connectors.shop.woocommerce import test_contract as test_woocommerce_contract
from tests.partners.partner_transport import transport
from tests.unit.connectors import test_http_json

from crossdock.testing.acceptance import SyncAcceptance
from crossdock.testing.httpx_transport_server import SERVED_AT
from crossdock.values.clock import SystemClock

pytestmark = [pytest.mark.usefixtures("commands_are_forked"), pytest.mark.nightly]

Declared = test_http_json.TestContract
ShipBob, Amazon = test_threepl_contract._OfShipBob, test_threepl_contract._OfAmazon
WooCommerce, Shopify = test_woocommerce_contract._OfWooCommerce, test_shopify_contract._OfShopify


class TestDeclared(SyncAcceptance):
    """A stream of a JSON API."""

    connector, settings, environment = Declared.connector, Declared.settings, Declared.environment

    def network(self) -> httpx.BaseTransport:
        return Declared().network()


class TestShipBob(SyncAcceptance):
    """Products, locations, stock and the progress of orders, which are the platform's own."""

    connector, settings, environment = ShipBob.connector, ShipBob.settings, ShipBob.environment

    def network(self) -> httpx.BaseTransport:
        return transport(ShipBob.fake)


class TestAmazon(SyncAcceptance):
    """The same of a seller at Amazon."""

    connector, settings, environment = Amazon.connector, Amazon.settings, Amazon.environment

    def network(self) -> httpx.BaseTransport:
        return transport(Amazon.fake)


class TestWooCommerce(SyncAcceptance):
    """Everything that a shop has. Requests are signed, since they are sent without encryption."""

    connector, settings, environment = WooCommerce.connector, WooCommerce.settings, WooCommerce.environment

    def network(self) -> httpx.BaseTransport:
        shop = test_woocommerce_contract.filled_shop(SystemClock())

        def answer(request: httpx.Request) -> httpx.Response:
            shop.site = request.extensions[SERVED_AT]
            return transport(shop).handle_request(request)

        return httpx.MockTransport(answer)


class TestShopify(SyncAcceptance):
    """The same of a shop with GraphQL."""

    connector, settings, environment = Shopify.connector, Shopify.settings, Shopify.environment

    def network(self) -> httpx.BaseTransport:
        return transport(test_shopify_contract.filled().shop)
