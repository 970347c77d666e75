"""The judge of the round trip: compares what happened at the platform with what happened at the 3PL.

It reads both effects logs and the 3PL's records, and uses the standard library alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

STATUSES = {"new": "open", "part_shipped": "partial", "shipped": "shipped", "short": "short", "cancelled": "cancelled"}

Records = Mapping[str, Mapping[str, Any]]


def faults(
    happened: Sequence[Mapping[str, Any]], received: Sequence[Mapping[str, Any]], tables: Mapping[str, Records]
) -> list[str]:
    """What differs between both sides; empty if nothing does.

    Args:
        happened: The effects of the platform, oldest first.
        received: The effects of the 3PL, oldest first.
        tables: The records of the 3PL, by table and id.
    """
    held = _held(happened)
    skus = {each: body["sku"] for each, body in held["product"].items()}
    bins = {each: body["code"] for each, body in held["warehouse_bin"].items()}
    arrived = {order["reference"]: order for order in _of_the_platform(tables["orders"])}
    shipments = _of_the_platform(tables["shipments"])
    compared: dict[str, tuple[Counter[Any], Counter[Any]]] = {
        "orders created at the 3PL": (
            Counter(f"erp:{each}" for each in held["order"]),
            Counter(each["body"]["reference"] for each in received if each["kind"] == "order_created"),
        ),
        "ordered lines": (
            Counter(_line(f"erp:{each}", line, skus) for each, body in held["order"].items() for line in body["items"]),
            Counter(
                (name, line["sku"], Decimal(line["quantity"]), Decimal(line["unit_price"]))
                for name, order in arrived.items()
                for line in order["lines"]
            ),
        ),
        "statuses": (
            Counter((f"erp:{each}", body.get("status")) for each, body in held["order"].items()),
            Counter((name, STATUSES[order["status"]]) for name, order in arrived.items()),
        ),
        "parcels": (
            Counter(
                (f"erp:{each}", parcel["carrier"], parcel["number"])
                for each, body in held["order"].items()
                for parcel in body.get("tracking", ())
            ),
            Counter((each["reference"], each["carrier"], each["tracking"]) for each in shipments),
        ),
        "lots": (
            Counter(
                (skus[lot["productId"]], lot["lotNumber"], bins[lot["binId"]], lot["status"], Decimal(lot["quantity"]))
                for lot in held["inventory_lot"].values()
            ),
            Counter(
                (lot["sku"], lot["lot"], lot["location"], lot["state"], Decimal(lot["quantity"]))
                for lot in tables["stock"].values()
                if lot["owner"] == "acme"
            ),
        ),
        "invoices": (
            Counter(
                (body["customerId"], tuple(_line("", line, skus) for line in body["items"]))
                for body in held["invoice"].values()
            ),
            Counter((each["customer"]["code"], tuple(map(_shipped, each["lines"]))) for each in shipments),
        ),
    }
    return [
        f"{what}: only the platform has {_some(ours - theirs)}, only the 3PL {_some(theirs - ours)}"
        for what, (ours, theirs) in compared.items()
        if ours != theirs
    ] + _lost_goods(received, tables)


def _some(records: Counter[Any]) -> list[Any]:
    return list(records.items())[:3]


def _held(happened: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """The last body of each record, by resource and id."""
    resources = ("product", "customer", "order", "invoice", "inventory_lot", "warehouse_bin")
    held: dict[str, dict[str, Mapping[str, Any]]] = {name: {} for name in resources}
    for effect in happened:
        of_kind = held[effect["resource"]]
        assert (effect["operation"] == "update") == (effect["id"] in of_kind), (
            f"{effect['id']} was made twice, or never"
        )
        of_kind[effect["id"]] = effect["body"]
    return held


def _of_the_platform(records: Records) -> list[Mapping[str, Any]]:
    """Those of our owner that the platform has ordered."""
    return [each for each in records.values() if each["owner"] == "acme" and each["reference"].startswith("erp:")]


def _line(name: str, line: Mapping[str, Any], skus: Mapping[str, str]) -> tuple[str, str, Decimal, Decimal]:
    return name, skus[line["productId"]], Decimal(line["quantity"]), Decimal(line["unitPrice"])


def _shipped(line: Mapping[str, Any]) -> tuple[str, str, Decimal, Decimal]:
    return "", line["sku"], Decimal(line["quantity"]), Decimal(line["unit_price"])


def _lost_goods(received: Sequence[Mapping[str, Any]], tables: Mapping[str, Records]) -> list[str]:
    """Goods that were received are in stock or in a shipment; orders that changed too late are not shipped twice."""
    came = _sum(line for each in tables["receipts"].values() for line in _as(each["lines"], "received"))
    left = _sum(line for each in tables["shipments"].values() for line in _as(each["lines"], "quantity"))
    kept = _sum(_as(tables["stock"].values(), "quantity"))
    unknown = {each["id"] for each in received} - {*tables["orders"], *tables["stock"]}
    return [f"received {came}, shipped {left}, in stock {kept}"] * (came != left + kept) + [
        f"effects on records that do not exist: {unknown}"
    ] * bool(unknown)


def _as(lines: Iterable[Mapping[str, Any]], member: str) -> Iterable[tuple[str, Decimal]]:
    return ((line["sku"], Decimal(line[member])) for line in lines)


def _sum(quantities: Iterable[tuple[str, Decimal]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for sku, quantity in quantities:
        total[sku] += quantity  # type: ignore[assignment]  # exact quantities, which typeshed has as int
    return total
