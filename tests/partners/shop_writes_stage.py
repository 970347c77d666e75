"""A Shopify shop to which a folder of files writes parcels and stock: the shop is a fake, the platform is not used."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.partners.partner_server import PartnerAnswer, PartnerRequest, PartnerServer, serving
from tests.partners.shop_stage import shopify
from tests.partners.shopify.fake_shop import FakeShopify
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.orders import Order
from tests.partners.shopify.site import Site
from tests.partners.stage import Project
from tests.partners.threepl_stage import LONG_AGO

from crossdock.sandbox import SandboxServer
from crossdock.values import exact_json
from crossdock.values.json_paths import value_at_path_or_missing

CREATE, SET = b"mutation fulfillmentCreate", b"mutation inventorySetQuantities"
LOOK_UP, LOOK_UP_STOCK = b"query shipments", b"query stockOf"
_COST = "extensions.cost.actualQueryCost"
_FILES = {"format": {"delimiter": ";"}}
_ITEM = {"sku": "SKU", "quantity": {"from": "UNITS", "as": "decimal"}}


class Watched:
    """The shop; what it answers may be disturbed.

    Attributes:
        before: Called with each request before it is answered; what it returns is answered instead.
        requests: The bodies of all requests, oldest first.
        points: What the answers say that they have cost.
    """

    def __init__(self, shop: FakeShopify) -> None:
        self.shop, self.effects = shop, shop.effects
        self.before: Callable[[PartnerRequest], PartnerAnswer | None] = lambda _: None
        self.requests: list[bytes] = []
        self.points = 0

    def throttled(self) -> PartnerAnswer:
        return self.shop.throttled()

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        self.requests.append(request.body)
        given = self.before(request) or self.shop.answer(request)
        cost = value_at_path_or_missing(exact_json.loads(given.content()), _COST) if given.status == 200 else 0
        self.points += cost if isinstance(cost, int) else 0
        return given

    def count(self, text: bytes) -> int:
        """The requests that have *text*."""
        return sum(text in body for body in self.requests)

    def once(self, text: bytes, action: Callable[[], object]) -> None:
        """Do *action* just before the next request that has *text*."""
        done: list[bool] = []

        def before(request: PartnerRequest) -> None:
            if text in request.body and not done:
                done.append(True)
                action()

        self.before = before


class ShopWrites(Project):
    """Files of parcels and of stock, which are sent to the connection ``shop``."""

    def __init__(
        self, folder: Path, sandbox: SandboxServer, site: Site, server: PartnerServer, stock: Mapping[str, Any]
    ) -> None:
        assert isinstance(server.partner, Watched)
        self.site, self.server, self.watched, self._written = site, server, server.partner, 0
        self._out = folder / "out"
        self._out.mkdir()
        parcels = {
            **_FILES,
            "files": "PARCELS_*.csv",
            "mode": "append",
            "key": ["ORDER", "NUMBER"],
            "group_by": ["ORDER", "NUMBER"],
            "to": "shop.fulfillments",
            "map": {"carrier": "CARRIER", "items": {"each": _ITEM}},
        }
        whole = {
            **_FILES,
            "files": "WHOLE_*.csv",
            "mode": "append",
            "key": ["ORDER", "NUMBER"],
            "to": "shop.fulfillments",
            "namespace": "whole",
            "map": {"carrier": "CARRIER"},
        }
        quantities = {
            **_FILES,
            "files": "STOCK_*.csv",
            "mode": "snapshot",
            "key": ["SKU", "LOCATION"],
            "to": "shop.stock",
            "map": {"quantity": {"from": "QTY", "as": "decimal"}},
            **stock,
        }
        streams = {"parcels": parcels, "whole": whole, "stock": quantities}
        connections = {
            "shop": shopify(folder, server.url, site.shop.token),
            "depot": {"kind": "folder_warehouse", "path": "out", "settle_s": 0, "streams": streams},
        }
        super().__init__(folder, sandbox, connections, site.clock)

    def order(self, *lines: Line) -> tuple[Order, str]:
        """A new order, and its id."""
        placed = self.site.shop.orders.place(*lines or (Line(self.site.lamp, 3),))
        return placed, str(placed.legacy_resource_id)

    def parcel(self, order: str, number: str, /, **units: int) -> None:
        """A parcel with units by SKU; without any, it has all that is left of the order."""
        if units:
            rows = [(order, number, "DHL", sku, count) for sku, count in units.items()]
            self._export("PARCELS", ("ORDER", "NUMBER", "CARRIER", "SKU", "UNITS"), rows)
        else:
            self._export("WHOLE", ("ORDER", "NUMBER", "CARRIER"), [(order, number, "DHL")])

    def stock(self, *rows: tuple[str, str, int]) -> None:
        """Quantities by SKU and location."""
        self._export("STOCK", ("SKU", "LOCATION", "QTY"), rows)

    def _export(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        self._written += 1
        path = self._out / f"{name}_{self._written:04}.csv"
        path.write_text("".join(f"{';'.join(map(str, line))}\n" for line in [columns, *rows]), encoding="utf-8")
        os.utime(path, (LONG_AGO + self._written, LONG_AGO + self._written))

    def numbers(self, order: Order) -> list[str | None]:
        """The tracking numbers that the shop shows."""
        return [parcel["number"] for one in order.fulfillments for parcel in one.tracking_info]

    def on_hand(self, sku: str = "LAMP") -> int:
        """The shop's quantity at the first location."""
        (level,) = (each for each in self.site.berlin.inventory_levels if each.item.sku == sku)
        return level.units["on_hand"]

    @property
    def berlin(self) -> str:
        """The id of the first location."""
        return str(self.site.berlin.legacy_resource_id)


@contextmanager
def shop_writes(folder: Path, sandbox: SandboxServer, site: Site, **stock: Any) -> Iterator[ShopWrites]:
    """The stage; *stock* are settings of the stream of stock."""
    with serving(PartnerServer(Watched(site.shop))) as server:
        yield ShopWrites(folder, sandbox, site, server, stock)
