"""Orders, shipments and bills of the fake of ShipBob as its API shows them, version 2026-01."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.partners.shipbob_state import Invoice, Line, Order, Product, Shipment, Transaction
from tests.partners.shipbob_stockroom import StockRoom

Json = dict[str, Any]


def moment(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def order_view(order: Order, room: StockRoom) -> Json:
    """``Orders.OrderViewModel``. It has no time of its last change; its shipments have."""
    body = order.body
    return {
        "id": order.id,
        "created_date": moment(order.created),
        "purchase_date": body.get("purchase_date"),
        "reference_id": body["reference_id"],
        "order_number": body.get("order_number") or body["reference_id"],
        "status": order.status,
        "type": body["type"],
        "channel": {"id": order.channel.id, "name": order.channel.name},
        "shipping_method": body["shipping_method"],
        "recipient": body["recipient"],
        "products": [_ordered(product, item) for product, item in order.lines],
        "financials": body.get("financials") or {"total_price": None},
        "gift_message": body.get("gift_message"),
        "tags": body.get("tags") or [],
        "shipments": [shipment_view(shipment, order, room) for shipment in order.shipments],
        **{name: body[name] for name in ("retailer_program_data", "shipping_terms") if body.get(name)},
    }


def _ordered(product: Product, item: Json) -> Json:
    said = ("external_line_id", "gtin", "quantity_unit_of_measure_code", "unit_price", "upc")
    return {
        "id": product.id,
        "reference_id": product.sku,
        "sku": product.sku,
        "quantity": item["quantity"],
        **{name: item.get(name) for name in said},
    }


def shipment_view(shipment: Shipment, order: Order, room: StockRoom) -> Json:
    """``Orders.ShipmentViewModel``; what a shipment costs is only in the invoices."""
    sent = shipment.updated if shipment.closed == "Completed" else None
    recipient = shipment.recipient
    return {
        "id": shipment.id,
        "order_id": order.id,
        "reference_id": order.body["reference_id"],
        "status": shipment.status,
        "status_details": [],
        "location": {"id": shipment.location.id, "name": shipment.location.name},
        "created_date": moment(shipment.created),
        "last_update_at": moment(shipment.updated),
        "last_tracking_update_at": moment(sent),
        "actual_fulfillment_date": moment(sent),
        "estimated_fulfillment_date": None,
        "delivery_date": None,
        "is_tracking_uploaded": False,
        "require_signature": False,
        "ship_option": order.body["shipping_method"],
        "gift_message": order.body.get("gift_message"),
        "insurance_value": None,
        "invoice_amount": None,
        "invoice_currency_code": None,
        "parent_cartons": [],
        "recipient": {"email": None, "phone_number": None, **recipient, "full_name": recipient["name"]},
        "products": [_packed(line, room) for line in shipment.lines],
        **({"tracking": _tracking(shipment.tracking, sent)} if shipment.tracking else {}),
    }


def _tracking(said: Json, sent: datetime | None) -> Json:
    return {
        **said,
        "carrier_service": None,
        "tracking_url": f"https://track.example/{said['tracking_number']}",
        "shipping_date": moment(sent),
        "bol": None,
        "pro_number": None,
        "scac": None,
    }


def _packed(line: Line, room: StockRoom) -> Json:
    """The units of a line: one inventory item for each lot, and one without a lot for the units that are missing."""
    held = [(place.lot, units, units) for place, units in line.held.items()]
    lots = held + ([(None, line.missing, 0)] if line.missing else [])
    product = line.product
    return {
        "id": product.id,
        "name": product.name,
        "reference_id": product.sku,
        "sku": product.sku,
        "inventory_items": [
            {
                "id": product.inventory_id,
                "name": product.name,
                "lot": lot,
                "expiration_date": moment(room.stock.lot_dates.get((product.inventory_id, lot))),
                "quantity": units,
                "quantity_committed": committed,
                "is_dangerous_goods": False,
                "serial_numbers": [],
            }
            for lot, units, committed in lots
        ],
    }


def invoice_view(invoice: Invoice) -> Json:
    """``Billing.InvoiceDtoV3``; it names no merchant."""
    return {
        "invoice_id": invoice.id,
        "invoice_date": invoice.day.isoformat(),
        "invoice_type": invoice.type,
        "amount": invoice.amount,
        "currency_code": invoice.currency,
        "running_balance": invoice.running_balance,
    }


def transaction_view(transaction: Transaction, invoice: Invoice) -> Json:
    """``Billing.TransactionDtoV3``."""
    return {
        "transaction_id": transaction.id,
        "transaction_type": "Charge",
        "transaction_fee": transaction.fee,
        "amount": transaction.amount,
        "currency_code": invoice.currency,
        "charge_date": invoice.day.isoformat(),
        "reference_id": transaction.reference_id,
        "reference_type": transaction.reference_type,
        "invoice_id": invoice.id,
        "invoice_date": invoice.day.isoformat(),
        "invoice_type": invoice.type,
        "invoiced_status": True,
        "fulfillment_center": None,
        "taxes": [],
        "additional_details": {},
    }
