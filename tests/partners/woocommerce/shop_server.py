"""A fake WooCommerce shop at work on loopback, over HTTP or HTTPS."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from tests.partners.partner_server import PartnerServer, serving
from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_faults import Faulty


@contextmanager
def serving_shop(
    shop: FakeShop, faulty: Faulty | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[PartnerServer]:
    """*shop*, or *faulty* in front of it, on a free port, whose address is then the site's; HTTPS with *tls*."""
    with serving(PartnerServer(faulty or shop), tls) as server:
        shop.site = server.url
        yield server
