"""The mutation ``fulfillmentCreate``: units of fulfillment orders were shipped, with a tracking number.

It knows no idempotency keys: sent twice, it ships twice, if the fulfillment order still has units. The texts of the
refusals are Shopify's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.partners.shopify.access import MUTATIONS, check
from tests.partners.shopify.execution import Info
from tests.partners.shopify.fulfillments import (
    OPEN,
    Fulfillment,
    FulfillmentLineItem,
    FulfillmentOrder,
    FulfillmentOrderLineItem,
)
from tests.partners.shopify.records import Records

Shipped = list[tuple[FulfillmentOrder, FulfillmentOrderLineItem, int]]


class _RefusedError(Exception):
    """A request with a user error."""


class Shipments:
    def __init__(self, records: Records) -> None:
        self._records = records

    def create(self, info: Info, fulfillment: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        """``fulfillmentCreate``"""
        check(info.field_name, MUTATIONS[info.field_name], info.context.scopes)
        try:
            shipped = self._wanted(fulfillment["lineItemsByFulfillmentOrder"])
        except _RefusedError as refused:
            return {"fulfillment": None, "userErrors": [{"field": ["fulfillment"], "message": str(refused)}]}
        made = self._ship(shipped, _tracking(fulfillment.get("trackingInfo") or {}))
        self._records.log("fulfillment_created", fulfillment=made.id, order=made.order.id, input=fulfillment)
        return {"fulfillment": made, "userErrors": []}

    def ship(self, one: FulfillmentOrder, **tracking: str) -> Fulfillment:
        """Ship what is left of a fulfillment order, as a merchant does; *tracking* is that of the mutation."""
        return self._ship([(one, line, line.remaining_quantity) for line in one.line_items], _tracking(tracking))

    def cancel(self, shipment: Fulfillment) -> None:
        """Cancel a fulfillment, as a merchant does whose parcel has not left: the order is unfulfilled again."""
        shipment.status = "CANCELLED"
        [one] = shipment.fulfillment_orders
        for shipped in shipment.fulfillment_line_items:
            shipped.line_item.fulfilled -= shipped.quantity
            for item in one.line_items:
                item.remaining_quantity += shipped.quantity if item.line_item is shipped.line_item else 0
        one.status = "OPEN"
        self._records.touch(shipment.order)

    def _wanted(self, groups: list[Mapping[str, Any]]) -> Shipped:
        found: Shipped = []
        for group in groups:
            one = self._records.find(FulfillmentOrder, group["fulfillmentOrderId"])
            if one is None:
                raise _RefusedError("Fulfillment order does not exist.")
            if one.status not in OPEN:
                message = (
                    f"Fulfillment order {one.legacy_resource_id} has an unfulfillable status= {one.status.lower()}."
                )
                raise _RefusedError(message)
            chosen = group.get("fulfillmentOrderLineItems")
            rows = chosen or [{"id": line.id, "quantity": line.remaining_quantity} for line in one.line_items]
            lines = {line.id: line for line in one.line_items}
            for row in rows:
                line = lines.get(row["id"])
                if (
                    line is None
                    or not 0 <= row["quantity"] <= line.remaining_quantity
                    or (chosen and not row["quantity"])
                ):
                    raise _RefusedError("Invalid fulfillment order line item quantity requested.")
                found.append((one, line, row["quantity"]))
        if len({one.order for one, _, _ in found}) != 1 or len({one.location for one, _, _ in found}) != 1:
            raise _RefusedError("All fulfillment orders must belong to the same order and location.")
        return found

    def _ship(self, shipped: Shipped, tracking: list[dict[str, str | None]]) -> Fulfillment:
        first, records = shipped[0][0], self._records
        order = first.order
        made = Fulfillment(
            order=order, location=first.location, number=len(order.fulfillments) + 1, tracking_info=tracking
        )
        for one, line, units in shipped:
            if not units:
                continue
            line.remaining_quantity -= units
            line.line_item.fulfilled += units
            made.fulfillment_line_items.append(
                records.add(FulfillmentLineItem(line_item=line.line_item, quantity=units))
            )
            level = line.variant.inventory_item.level_at(one.location) if line.variant else None
            if level:
                level.move(records.now(), committed=-units)
                records.touch(level)
        for one in dict.fromkeys(one for one, _, _ in shipped):
            one.status = "IN_PROGRESS" if one.remaining else "CLOSED"
            one.fulfillments.append(made)
            made.fulfillment_orders.append(one)
            records.touch(one)
        order.fulfillments.append(records.add(made))
        records.touch(order)
        return made


def _tracking(given: Mapping[str, Any]) -> list[dict[str, str | None]]:
    numbers = given.get("numbers") or ([given["number"]] if given.get("number") else [])
    urls = given.get("urls") or ([given["url"]] if given.get("url") else [])
    return [
        {"company": given.get("company"), "number": number, "url": urls[index] if index < len(urls) else None}
        for index, number in enumerate(numbers)
    ]
