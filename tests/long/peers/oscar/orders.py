"""Orders of django-oscar-api with their lines, for which it must be asked order by order."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Literal

from crossdock import Connector, Context, LineDraft, OrderDraft, RawBatch, Record, Reference, Stream
from crossdock.resources import ShippingAddress
from crossdock.sources import HeaderAuth, HttpSettings, PageNumber, RateLimit, SecretRef

PAGES = PageNumber("/results", "page", total="/count")


class OscarSettings(HttpSettings):
    kind: Literal["oscar_orders"]
    token: SecretRef


class Orders(Stream[OscarSettings]):
    name, resource, key, mode = "orders", "order", ("number",), "snapshot"

    def pull(self, ctx: Context[OscarSettings], since: str | None) -> Iterator[RawBatch]:
        for page in ctx.api.pages("/admin/orders/", paginator=PAGES, key="number"):
            orders = []
            for order in page.items("/results"):
                if order["status"] == "Cancelled":  # gone: rows that `skip` leaves out would not be
                    continue
                path = order["url"].removeprefix(ctx.settings.base_url) + "lines/"
                lines = [
                    each for part in ctx.api.pages(path, paginator=PAGES, key="id") for each in part.items("/results")
                ]
                orders.append({**order, "lines": lines})
            yield RawBatch.json(orders, source=page.address)

    def to_resource(self, record: Record) -> OrderDraft:
        owner = record.at("/owner", str, default=None)
        customer = _id(owner) if owner else record.at("/email", str)
        items = [
            LineDraft(
                product_id=Reference("product", _id(line.at("/product", str))),
                quantity=line.decimal("/quantity"),
                unit_price=line.decimal("/unit_price_incl_tax"),
            )
            for line in record.each("/lines")
        ]
        sold = sum((each.quantity * each.unit_price for each in items), Decimal(0))
        if rest := record.decimal("/total_incl_tax") - sold:  # discounts and shipping
            items.append(LineDraft(product_id=Reference("product", "rest", "charges"), quantity=1, unit_price=rest))
        return OrderDraft(
            customer_id=Reference("customer", customer, "shop" if owner else "guests"),
            currency=record.at("/currency", str),
            placed_at=record.instant("/date_placed"),
            items=tuple(items),
            shipping_address=_address(record),
        )


def _address(record: Record) -> ShippingAddress:
    names = ("first_name", "last_name", "line1", "line4", "postcode", "country")
    first, last, street, city, code, country = (record.at(f"/shipping_address/{name}", str) for name in names)
    return ShippingAddress(name=f"{first} {last}", line1=street, city=city, postal_code=code, country=_id(country))


def _id(address: str) -> str:
    return address.rstrip("/").rpartition("/")[2]


CONNECTOR = Connector(
    "oscar_orders",
    "Orders of django-oscar-api",
    OscarSettings,
    streams=lambda _: (Orders(),),
    api=lambda own: own.api(
        auth=HeaderAuth("Authorization", own.token), rate=RateLimit(per_minute=600_000, burst=10_000)
    ),
)
