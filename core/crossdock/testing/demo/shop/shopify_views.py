"""The sample shop's records as Shopify's Admin API shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from crossdock.testing.demo.shop.sample_shop import CURRENCY, Article, Buyer, OrderLine, Parcel, ShopOrder
from crossdock.testing.demo.shop.sample_shop import LOCATION as LOCATION_ID

_SCOPES = (
    "read_all_orders", "read_customers", "read_locations", "read_orders", "read_products", "write_inventory",
    "write_merchant_managed_fulfillment_orders",
)  # fmt: skip
_WITHOUT = (
    "originalTotalDutiesSet", "originalTotalAdditionalFeesSet", "currentTotalDutiesSet",
    "currentTotalAdditionalFeesSet",
)  # fmt: skip
SHOP = {
    "id": "gid://shopify/Shop/1",
    "name": "Sample shop",
    "myshopifyDomain": "sample.myshopify.com",
    "currencyCode": CURRENCY,
    "enabledPresentmentCurrencies": [CURRENCY],
}
INSTALLATION = {"accessScopes": [{"handle": scope} for scope in _SCOPES]}
LOCATION = {
    "id": f"gid://shopify/Location/{LOCATION_ID}",
    "name": "Main warehouse",
    "isActive": True,
}


def page(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    return {"nodes": nodes, "pageInfo": {"hasNextPage": False, "endCursor": None}}


def flattened_bulk_records(nodes: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield records and their children separately, as the file of a bulk operation has them."""
    for node in nodes:
        own, children = dict(node), []
        holder = own
        if "inventoryItem" in own:
            holder = own["inventoryItem"] = dict(own["inventoryItem"])
        for name in ("lineItems", "variants", "inventoryLevels"):
            children += holder.pop(name, {"nodes": []})["nodes"]
        yield own
        yield from ({**child, "__parentId": own["id"]} for child in children)


def money(amount: Decimal) -> dict[str, Any]:
    money = {"amount": f"{amount:f}", "currencyCode": CURRENCY}
    return {"shopMoney": money, "presentmentMoney": money}


def time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def product(article: Article, opened: datetime) -> dict[str, Any]:
    variant = {
        "id": f"gid://shopify/ProductVariant/{article.id}",
        "sku": article.sku,
        "title": "Default Title",
        "barcode": None,
        "price": f"{article.price:f}",
        "updatedAt": time(opened),
    }
    return {
        "id": f"gid://shopify/Product/{article.id}",
        "title": article.title,
        "descriptionHtml": "",
        "status": "ACTIVE",
        "updatedAt": time(opened),
        "variants": page([variant]),
    }


def inventory_item(article: Article) -> dict[str, Any]:
    quantities = [{"name": name, "quantity": article.stock} for name in ("available", "on_hand")]
    return {
        "id": f"gid://shopify/InventoryItem/{article.id}",
        "sku": article.sku,
        "tracked": True,
        "inventoryLevel": {"isActive": True, "quantities": quantities},
    }


def variant_with_stock(article: Article) -> dict[str, Any]:
    shown = inventory_item(article)
    level = {"id": f"gid://shopify/InventoryLevel/{article.id}", "location": {"id": LOCATION["id"]}}
    shown["inventoryLevels"] = page([{**level, **shown.pop("inventoryLevel")}])
    return {"id": f"gid://shopify/ProductVariant/{article.id}", "sku": article.sku, "inventoryItem": shown}


def address(buyer: Buyer) -> dict[str, Any]:
    empty = dict.fromkeys(("address2", "province", "provinceCode", "zip", "phone"))
    return {
        **empty,
        "name": buyer.name,
        "address1": buyer.street,
        "city": buyer.city,
        "countryCodeV2": buyer.country,
    }


def customer(buyer: Buyer) -> dict[str, Any]:
    return {
        "id": f"gid://shopify/Customer/{buyer.id}",
        "displayName": buyer.name,
        "updatedAt": "2026-01-01T00:00:00Z",
        "defaultEmailAddress": {"emailAddress": buyer.email},
        "defaultPhoneNumber": None,
        "defaultAddress": address(buyer),
    }


def line(line: OrderLine, discount: Decimal) -> dict[str, Any]:
    return {
        "id": f"gid://shopify/LineItem/{line.id}",
        "name": line.article.title,
        "sku": line.article.sku,
        "quantity": line.quantity,
        "currentQuantity": line.quantity - line.returned,
        "isGiftCard": False,
        "requiresShipping": True,
        "variant": {"id": f"gid://shopify/ProductVariant/{line.article.id}", "sku": line.article.sku},
        "originalUnitPriceSet": money(line.article.price),
        "discountAllocations": [{"allocatedAmountSet": money(discount)}] if discount else [],
    }


def order(order: ShopOrder) -> dict[str, Any]:
    goods_back = sum((each.amount for each in order.refunds), Decimal(0))
    tax_back = sum((each.tax for each in order.refunds), Decimal(0))
    shipped = any(order.parcels)
    states = "FULFILLED" if order.is_shipped else "PARTIALLY_FULFILLED" if shipped else "UNFULFILLED"
    lines = [line(each, order.discount if number == 0 else Decimal(0)) for number, each in enumerate(order.lines)]
    return {
        "id": f"gid://shopify/Order/{order.id}",
        "name": f"#{order.id}",
        "createdAt": time(order.placed),
        "updatedAt": time(order.changed),
        "processedAt": time(order.placed),
        "cancelledAt": None,
        "edited": False,
        "test": False,
        "email": order.buyer.email,
        "phone": None,
        "currencyCode": CURRENCY,
        "presentmentCurrencyCode": CURRENCY,
        "taxesIncluded": False,
        "displayFinancialStatus": "PARTIALLY_REFUNDED" if order.refunds else "PAID",
        "displayFulfillmentStatus": states,
        "customer": None if order.buyer.id is None else {"id": f"gid://shopify/Customer/{order.buyer.id}"},
        "billingAddress": address(order.buyer),
        "shippingAddress": address(order.buyer),
        "lineItems": page(lines),
        "subtotalPriceSet": money(order.subtotal),
        "totalShippingPriceSet": money(order.shipping),
        "totalTaxSet": money(order.tax),
        "totalTipReceivedSet": money(Decimal(0)),
        "totalPriceSet": money(order.total),
        "totalReceivedSet": money(order.total),
        **dict.fromkeys(_WITHOUT),
        "currentSubtotalPriceSet": money(order.subtotal - goods_back),
        "currentShippingPriceSet": money(order.shipping),
        "currentTotalTaxSet": money(order.tax - tax_back),
        "currentTotalPriceSet": money(order.total - goods_back - tax_back),
        "refunds": [{"id": f"gid://shopify/Refund/{each.id}"} for each in order.refunds],
        "fulfillments": [fulfillment(each) for each in order.parcels],
    }


def fulfillment(parcel: Parcel) -> dict[str, Any]:
    tracking = {"company": parcel.carrier, "number": parcel.number, "url": parcel.url}
    return {"id": f"gid://shopify/Fulfillment/{parcel.id}", "status": "SUCCESS", "trackingInfo": [tracking]}


def order_to_ship(order: ShopOrder) -> dict[str, Any]:
    lines = [
        {
            "id": f"gid://shopify/FulfillmentOrderLineItem/{line.id}",
            "sku": line.article.sku,
            "remainingQuantity": line.quantity - line.shipped,
        }
        for line in order.lines
    ]
    fulfillment_order = {
        "id": f"gid://shopify/FulfillmentOrder/{order.id}",
        "status": "CLOSED" if order.is_shipped else "OPEN",
        "assignedLocation": {"location": {"id": LOCATION["id"]}},
        "lineItems": page(lines),
    }
    return {
        "id": f"gid://shopify/Order/{order.id}",
        "fulfillments": [fulfillment(each) for each in order.parcels],
        "fulfillmentOrders": page([fulfillment_order]),
    }
