"""The mutations that change stock: ``inventorySetQuantities`` and ``inventoryAdjustQuantities``, version 2026-10.

Every change names the quantity that it starts from in ``changeFromQuantity``, or null for whatever it is. Leaving it
out is an error of the request:
shopify.dev/changelog/finalizing-compare-and-swap-redesign-for-inventory-set-quantities. A request is carried out as a
whole or not at all. Where an item is not stocked at a location, nothing changes and no error is told, as shop owners
have seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphql import GraphQLError
from tests.partners.shopify.access import MUTATIONS, check
from tests.partners.shopify.catalog import InventoryItem, InventoryLevel, Location
from tests.partners.shopify.execution import Info
from tests.partners.shopify.idempotency import IdempotencyKeys, Payload
from tests.partners.shopify.records import Record, Records

ADJUSTED = ("available", "damaged", "incoming", "quality_control", "reserved", "safety_stock")
REASONS = frozenset(
    {
        "correction", "cycle_count_available", "damaged", "movement_canceled", "movement_created", "movement_received",
        "movement_updated", "other", "promotion", "quality_control", "received", "reservation_created",
        "reservation_deleted", "reservation_updated", "restock", "safety_stock", "shrinkage",
    }
)  # fmt: skip
"""shopify.dev/docs/apps/build/orders-fulfillment/inventory-management-apps/manage-quantities-states"""
_HIGHEST = 1_000_000_000


@dataclass(eq=False, kw_only=True)
class InventoryAdjustmentGroup(Record):
    reason: str
    changes: list[dict[str, Any]]
    reference_document_uri: str | None = None


@dataclass(frozen=True, slots=True)
class _Change:
    """One change of one quantity; *level* is None where the item is not stocked."""

    level: InventoryLevel | None
    name: str
    delta: int


class StockWrites:
    """Carries them out, once for each idempotency key."""

    def __init__(self, records: Records, keys: IdempotencyKeys) -> None:
        self._records, self._keys = records, keys

    def set(self, info: Info, input: Mapping[str, Any]) -> Payload:  # noqa: A002  the argument's name
        """``inventorySetQuantities``"""
        return self._write(info, input, "quantities", "InventoryQuantityInput", ("available", "on_hand"))

    def adjust(self, info: Info, input: Mapping[str, Any]) -> Payload:  # noqa: A002  the argument's name
        """``inventoryAdjustQuantities``"""
        return self._write(info, input, "changes", "InventoryChangeInput", ADJUSTED)

    def _write(self, info: Info, given: Mapping[str, Any], rows_in: str, kind: str, names: Sequence[str]) -> Payload:
        check(info.field_name, MUTATIONS[info.field_name], info.context.scopes)
        rows = given[rows_in]
        if any("changeFromQuantity" not in row for row in rows):
            message = f"{kind} must include the following argument: changeFromQuantity."
            raise GraphQLError(message, extensions={"code": "INVALID_FIELD_ARGUMENTS"})

        def carry_out() -> Payload:
            errors = list(self._wrong(given, rows, rows_in, names))
            if errors:
                return {"inventoryAdjustmentGroup": None, "userErrors": errors}
            changes = [self._change(row, given["name"]) for row in rows]
            group = self._apply([one for one in changes if one.level and one.delta], given)
            self._records.log("stock_written", mutation=info.field_name, input=given)
            return {"inventoryAdjustmentGroup": group, "userErrors": []}

        return self._keys.once(info, given, carry_out)

    def _wrong(
        self, given: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], rows_in: str, names: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        name = given["name"]
        if name not in names:
            code = "INVALID_NAME" if rows_in == "quantities" else "INVALID_QUANTITY_NAME"
            yield _error(["input", "name"], "The specified quantity name is invalid.", code)
            return
        if given["reason"] not in REASONS:
            yield _error(["input", "reason"], "The specified reason is invalid.", "INVALID_REASON")
        pairs: set[tuple[str, str]] = set()
        for index, row in enumerate(rows):
            place = ["input", rows_in, str(index)]
            yield from self._wrong_row(place, row, name)
            pair = (row["inventoryItemId"], row["locationId"])
            if pair in pairs and rows_in == "quantities":
                message = "The combination of inventoryItemId and locationId must be unique."
                yield _error(place, message, "NO_DUPLICATE_INVENTORY_ITEM_ID_GROUP_ID_PAIR")
            pairs.add(pair)

    def _wrong_row(self, place: list[str], row: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
        item = self._records.find(InventoryItem, row["inventoryItemId"])
        location = self._records.find(Location, row["locationId"])
        if item is None:
            message = "The specified inventory item could not be found."
            yield _error([*place, "inventoryItemId"], message, "INVALID_INVENTORY_ITEM")
        if location is None:
            yield _error([*place, "locationId"], "The specified location could not be found.", "INVALID_LOCATION")
        quantity, delta, document = row.get("quantity", 0), row.get("delta"), row.get("ledgerDocumentUri")
        if quantity < 0:
            yield _error([*place, "quantity"], "The quantity can't be negative.", "INVALID_QUANTITY_NEGATIVE")
        if quantity > _HIGHEST:
            message = "The total quantity can't be higher than 1,000,000,000."
            yield _error([*place, "quantity"], message, "INVALID_QUANTITY_TOO_HIGH")
        if delta is not None and (document is None) != (name == "available"):
            told = "is not allowed when" if document else "is required except when"
            code = "INVALID_AVAILABLE_DOCUMENT" if document else "INVALID_QUANTITY_DOCUMENT"
            yield _error([*place, "ledgerDocumentUri"], f"A ledger document URI {told} adjusting available.", code)
        level = item.level_at(location) if item and location else None
        expected = row["changeFromQuantity"]
        if level and expected is not None and level.units[name] != expected:
            message = "The changeFromQuantity argument no longer matches the persisted quantity."
            yield _error([*place, "changeFromQuantity"], message, "CHANGE_FROM_QUANTITY_STALE")

    def _change(self, row: Mapping[str, Any], name: str) -> _Change:
        item = self._records.find(InventoryItem, row["inventoryItemId"])
        location = self._records.find(Location, row["locationId"])
        level = item.level_at(location) if item and location else None
        if level is None or "delta" in row:
            return _Change(level, name, row.get("delta", 0))
        return _Change(
            level, "available", row["quantity"] - level.units[name]
        )  # units on hand change by available ones

    def _apply(self, changes: Sequence[_Change], given: Mapping[str, Any]) -> InventoryAdjustmentGroup | None:
        shown = []
        for one in changes:
            assert one.level is not None
            one.level.move(self._records.now(), **{one.name: one.delta})
            self._records.touch(one.level)
            names = (one.name,) if one.name == "incoming" else (one.name, "on_hand")
            shown += [
                {
                    "name": name,
                    "delta": one.delta,
                    "quantityAfterChange": None,  # it is not told for changes that were just made
                    "item": one.level.item,
                    "location": one.level.location,
                    "ledgerDocumentUri": None,
                }
                for name in names
            ]
        if not shown:
            return None
        return self._records.add(
            InventoryAdjustmentGroup(
                reason=given["reason"], changes=shown, reference_document_uri=given.get("referenceDocumentUri")
            )
        )


def _error(place: list[str], message: str, code: str) -> dict[str, Any]:
    return {"field": place, "message": message, "code": code}
