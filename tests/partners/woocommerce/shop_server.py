"""A fake WooCommerce shop at work on loopback, over HTTP or HTTPS."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from tests.partners.partner_server import PartnerServer, _Handler, _Http, serving
from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_faults import Faulty
from tests.servers import served


@contextmanager
def serving_shop(
    shop: FakeShop, faulty: Faulty | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[PartnerServer]:
    """*shop*, or *faulty* in front of it, on a free port, whose address is then the site's; HTTPS with *tls*."""
    server = PartnerServer(faulty or shop)
    if tls is None:
        with serving(server):
            shop.site = server.url
            yield server
        return
    http = _Http(("127.0.0.1", 0), _Handler)
    http.partner = server
    http.socket = tls.wrap_socket(http.socket, server_side=True)
    shop.site = server.url = f"https://127.0.0.1:{http.server_port}"
    with served(http):
        yield server
