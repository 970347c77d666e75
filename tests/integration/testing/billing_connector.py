"""A connector of customers and their invoices, and one that keeps a cursor of its own and so loses records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import httpx

from crossdock import (
    Connector,
    Context,
    CustomerDraft,
    InvoiceDraft,
    RawBatch,
    Record,
    Reference,
    SecretRef,
    Settings,
    Stream,
)
from crossdock.sources import Api, BearerAuth
from crossdock.values.config_base_types import ConfigPath

TOKEN = "token-of-the-billing"
LINES = [{"sku": "0017", "quantity": 2, "price": "9.50"}]
CUSTOMERS = [{"id": number, "name": f"Customer {number}"} for number in range(1, 7)]
INVOICES = [{"id": number, "customer": 1 + number % 6, "lines": LINES} for number in range(1, 13)]  # some are equal


class BillingSettings(Settings):
    kind: Literal["billing"]
    base_url: str
    token: SecretRef
    folder: ConfigPath


class Customers(Stream[BillingSettings]):
    name, resource, key, mode = "customers", "customer", ("id",), "snapshot"

    def pull(self, ctx: Context[BillingSettings], since: str | None) -> Iterator[RawBatch]:
        for page in ctx.api.pages("/customers"):
            yield RawBatch.json(page.items("/customers"), source=page.address, key=["id"])

    def to_resource(self, record: Record) -> CustomerDraft:
        return CustomerDraft(name=record.at("/name", str))


class Invoices(Stream[BillingSettings]):
    name, resource, key, mode = "invoices", "invoice", ("id",), "append"

    def pull(self, ctx: Context[BillingSettings], since: str | None) -> Iterator[RawBatch]:
        for page in ctx.api.pages("/invoices"):
            yield RawBatch.json(page.items("/invoices"), source=page.address, key=["id"])

    def to_resource(self, record: Record) -> InvoiceDraft:
        lines = [
            {
                "productId": Reference("product", line.at("/sku", str)),
                "quantity": line.decimal("/quantity"),
                "unitPrice": line.decimal("/price"),
            }
            for line in record.each("/lines")
        ]
        customer = Reference("customer", str(record.at("/customer", int)))
        return InvoiceDraft.model_validate({"customerId": customer, "currency": "EUR", "items": lines})


class InvoicesWithOwnCursor(Invoices):
    """Notes in a file which pages were read, before their records are delivered."""

    def pull(self, ctx: Context[BillingSettings], since: str | None) -> Iterator[RawBatch]:
        notes = Path(ctx.settings.folder) / f"pages-read-{Path(ctx.run.spool).parent.name}"
        for batch in super().pull(ctx, since):
            read = notes.read_text(encoding="utf-8") if notes.exists() else ""
            if batch.source not in read:
                notes.write_text(f"{read}{batch.source}\n", encoding="utf-8")
                yield batch


def _api(settings: BillingSettings) -> Api:
    return Api(settings.base_url, BearerAuth(settings.token))


def billing(request: httpx.Request) -> httpx.Response:
    """The vendor: three records on a page, and a link to the next one."""
    if request.headers["authorization"] != f"Bearer {TOKEN}":
        return httpx.Response(401)
    records = {"/customers": CUSTOMERS, "/invoices": INVOICES}[request.url.path]
    page = int(request.url.params.get("page", "0"))
    link = f'<{request.url.copy_set_param("page", page + 1)}>; rel="next"'
    body = {request.url.path[1:]: records[3 * page : 3 * page + 3]}
    return httpx.Response(200, text=json.dumps(body), headers={"link": link} if 3 * page + 3 < len(records) else {})


CONNECTOR = Connector(
    name="billing",
    title="Billing",
    settings=BillingSettings,
    streams=lambda _: (Customers(), Invoices()),
    api=_api,
)
WITH_OWN_CURSOR = Connector(
    name="billing",
    title="Billing with a cursor of its own",
    settings=BillingSettings,
    streams=lambda _: (Customers(), InvoicesWithOwnCursor()),
    api=_api,
)
