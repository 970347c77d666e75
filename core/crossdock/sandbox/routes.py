"""The table of the seven resources: paths, models, and which member names what other resource."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crossdock.resources import RESOURCES, ResourceModel, ResourceName


@dataclass(frozen=True, slots=True)
class Collection:
    """One resource on the wire.

    Attributes:
        resource: Its name.
        path: Where it is created and listed; one of it is at ``{path}/{id}``.
        prefix: What its ids begin with.
    """

    resource: ResourceName
    path: str
    prefix: str

    @property
    def model(self) -> type[ResourceModel]:
        return RESOURCES[self.resource].wire

    @property
    def has_external_id(self) -> bool:
        return RESOURCES[self.resource].has_external_id


COLLECTIONS: Mapping[str, Collection] = {
    each.path: each
    for each in (
        Collection("invoice", "/api/v1/finance/invoices", "inv"),
        Collection("ledger_account", "/api/v1/finance/ledger-accounts", "acc"),
        Collection("customer", "/api/v1/sales/customers", "cus"),
        Collection("order", "/api/v1/sales/orders", "ord"),
        Collection("product", "/api/v1/catalog/products", "prd"),
        Collection("inventory_lot", "/api/v1/inventory/lots", "lot"),
        Collection("warehouse_bin", "/api/v1/warehouse/bins", "bin"),
    )
}

_REFERENCES: Mapping[str, ResourceName] = {
    "customerId": "customer",
    "productId": "product",
    "binId": "warehouse_bin",
    "parentId": "ledger_account",
}


def find(path: str) -> tuple[Collection, str | None] | None:
    """Which collection, and which of its members, *path* names; None for a path that names nothing."""
    if collection := COLLECTIONS.get(path):
        return collection, None
    parent, _, member = path.rpartition("/")
    collection = COLLECTIONS.get(parent)
    return (collection, member) if collection and member else None


def references(body: Mapping[str, Any], pointer: str = "#") -> Iterator[tuple[str, ResourceName, str]]:
    """Pointer, resource and id of everything that a checked body refers to."""
    for name, resource in _REFERENCES.items():
        if name in body:
            yield f"{pointer}/{name}", resource, body[name]
    for index, item in enumerate(body.get("items", ())):
        yield from references(item, f"{pointer}/items/{index}")
