"""A connector for `tests.e2e.bad_answers_vendor`, written as an author would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from crossdock import (
    Connector,
    Context,
    CustomerDraft,
    Finding,
    ProductDraft,
    RawBatch,
    Record,
    SecretRef,
    Settings,
    Stream,
)
from crossdock.sources import Api, BearerAuth, LoginAuth, NextUrl


class ShopSettings(Settings):
    """One shop."""

    kind: Literal["bad_answers_shop"]
    base_url: str
    token: SecretRef
    header: SecretRef
    parameter: SecretRef
    body: SecretRef
    auth: Literal["bearer", "login"] = "bearer"
    most_bytes: int = 0


class Products(Stream[ShopSettings]):
    """Products, page by page."""

    name, resource, key = "products", "product", ("id",)

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        params = {"key": ctx.settings.parameter.reveal()}
        for page in ctx.api.pages("/products", params, paginator=NextUrl("/next")):
            yield RawBatch.json(page.items("/items"), source=page.address)

    def to_resource(self, record: Record) -> ProductDraft:
        sku, name = record.at("/sku", str), record.at("/name", str)
        return ProductDraft(sku=sku, name=name, unit_price=record.decimal("/price"), currency="EUR")


class Customers(Stream[ShopSettings]):
    """Customers, found by a search."""

    name, resource, key = "customers", "customer", ("id",)

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        answer = ctx.api.post("/search", json={"find": "*", "pin": ctx.settings.body.reveal()})
        yield RawBatch.json(answer.items("/found"), source=answer.address)

    def to_resource(self, record: Record) -> CustomerDraft:
        return CustomerDraft(name=record.at("/name", str))


def check(ctx: Context[ShopSettings]) -> Iterator[Finding]:
    answer = ctx.api.get("/products", {"page": 2, "key": ctx.settings.parameter.reveal()})
    yield Finding(ok=True, text=f"{answer.address} lists {len(answer.items('/items'))} products")


def api(settings: ShopSettings) -> Api:
    login = LoginAuth(f"{settings.base_url}/login", {"user": "me", "password": settings.token})
    auth = login if settings.auth == "login" else BearerAuth(settings.token)
    headers = {"x-shop-key": settings.header.reveal()}
    if settings.most_bytes:
        return Api(settings.base_url, auth=auth, headers=headers, max_answer_bytes=settings.most_bytes)
    return Api(settings.base_url, auth=auth, headers=headers)


CONNECTOR = Connector(
    "bad_answers_shop", "A shop", ShopSettings, lambda _: (Customers(), Products()), check=check, api=api
)
