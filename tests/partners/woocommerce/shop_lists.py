"""Which orders and products a list of the fake WooCommerce shop has, and in which order.

Sources: ``WC_REST_Orders_Controller::prepare_objects_query``, ``OrdersTableQuery::sanitize_status`` and
``WC_REST_Products_Controller`` in github.com/woocommerce/woocommerce. Sorted are lists by date, id and change only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tests.partners.woocommerce.shop_catalog import Catalog, Product
from tests.partners.woocommerce.shop_errors import invalid_parameter
from tests.partners.woocommerce.shop_orders import Order, Orders
from tests.partners.woocommerce.shop_queries import Query
from tests.partners.woocommerce.shop_records import Record

Row = TypeVar("Row", bound=Record)


def listed_orders(orders: Orders, query: Query) -> Sequence[Order]:
    """``status=any`` is all registered statuses: not the trash, and not one whose extension is gone."""
    registered = query.settings.statuses
    allowed = ("any", "trash", *registered)
    statuses = query.texts("status") or ["any"]
    for index, status in enumerate(statuses):
        if status not in allowed:
            raise invalid_parameter("status", f"status[{index}] is not one of {', '.join(allowed)}.")
    wanted = registered if "any" in statuses else statuses
    customers, within = query.ids("customer"), query.within(kept_in_gmt=True)
    found = [
        order
        for order in orders.orders.values()
        if order.status in wanted
        and query.chosen(order.id)
        and (not customers or order.members["customer_id"] in customers)
        and within(order.created, order.changed)
    ]
    return _sorted(query, found, by_local_time=False)


def listed_products(catalog: Catalog, query: Query, parent: Product | None) -> Sequence[Product]:
    """Products without variations, or those of *parent*. With ``sku``, products and variations."""
    skus, within = query.texts("sku"), query.within(kept_in_gmt=False)
    status = query.choice("status", "any", "publish", "draft", "pending", "private", "trash")
    found = [
        product
        for product in catalog.products.values()
        if (product.members["sku"] in skus if skus and not parent else product.parent is parent)
        and (product.members["status"] != "trash" if status == "any" else product.members["status"] == status)
        and query.chosen(product.id)
        and within(product.created, product.changed)
    ]
    return _sorted(query, found, by_local_time=True)


def _sorted(query: Query, found: list[Row], *, by_local_time: bool) -> list[Row]:
    """Equal times by id in the same direction; latest first by default.

    Args:
        by_local_time: Times are compared on the site's clocks, as those of products are: in autumn's repeated hour a
            later time may come first.
    """
    by = query.choice("orderby", "date", "id", "modified")

    def key(record: Row) -> tuple[Any, int]:
        if by == "id":
            return 0, record.id
        at = record.created if by == "date" else record.changed
        return query.settings.local(at) if by_local_time else at, record.id

    return sorted(found, key=key, reverse=query.choice("order", "desc", "asc") == "desc")
