"""A connector for `tests.chaos.killed_reads`, written as an author would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from crossdock import Connector, Context, ProductDraft, RawBatch, Record, Settings, Stream
from crossdock.sources import Api, Cursor, NextUrl


class VendorSettings(Settings):
    """One vendor."""

    kind: Literal["vendor_shop"]
    base_url: str
    sorted: bool
    page_size: int


class Products(Stream[VendorSettings]):
    """Products changed since the cursor."""

    name, resource, key = "products", "product", ("id",)

    def __init__(self, settings: VendorSettings) -> None:
        self.cursor = Cursor(column="updated_at", as_="instant", sorted=settings.sorted)

    def pull(self, ctx: Context[VendorSettings], since: str | None) -> Iterator[RawBatch]:
        params = {"since": since, "limit": ctx.settings.page_size}
        for page in ctx.api.pages("/products", params, paginator=NextUrl("/next")):
            yield RawBatch.json(page.items("/items"), source=page.address)

    def to_resource(self, record: Record) -> ProductDraft:
        return ProductDraft(sku=record.at("/id", str), name=record.at("/name", str))


CONNECTOR = Connector(
    "vendor_shop",
    "A vendor",
    VendorSettings,
    lambda settings: (Products(settings),),
    api=lambda settings: Api(settings.base_url),
)
