"""A fake WooCommerce shop with state: the REST API ``wc/v3``, and the extension Shipment Tracking.

| address below ``/wp-json/wc/v3`` | what it does |
|---|---|
| ``orders``, ``products``, ``products/{id}/variations``, ``customers``, ``webhooks`` | list, create |
| each with ``/{id}`` | read, update, delete |
| each with ``/batch`` | create, update, delete up to 100 |
| ``orders/{id}/refunds``, ``orders/{id}/notes`` | list, create, read |
| ``refunds`` | list |

Facts are from WooCommerce's own code (github.com/woocommerce/woocommerce; orders have tables of their own, the default
since 8.2), from WordPress's, and from woocommerce.github.io/woocommerce-rest-api-docs. Each module names its sources.
Records that are deleted leave no trace: 404, and they are on no list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.woocommerce.shop_catalog import Catalog, Product, product_view
from tests.partners.woocommerce.shop_customers import Customers
from tests.partners.woocommerce.shop_errors import RefusedError, invalid_id, no_route
from tests.partners.woocommerce.shop_faults import too_many_requests
from tests.partners.woocommerce.shop_keys import Access, ApiKey
from tests.partners.woocommerce.shop_lists import listed_orders, listed_products
from tests.partners.woocommerce.shop_order_parts import all_refunds_answer, notes_answer, refunds_answer
from tests.partners.woocommerce.shop_order_views import order_view
from tests.partners.woocommerce.shop_orders import Order, Orders
from tests.partners.woocommerce.shop_queries import Query
from tests.partners.woocommerce.shop_records import Change, Record, Shelf
from tests.partners.woocommerce.shop_resources import Resource, Writes
from tests.partners.woocommerce.shop_settings import ShopSettings
from tests.partners.woocommerce.shop_tracking import TRACKING, Tracking
from tests.partners.woocommerce.shop_webhooks import Webhooks

from crossdock.testing import ManualClock
from crossdock.values.clock import Clock

API = "/wp-json/wc/v3"


class FakeShop:
    """A shop; a `Partner` of `PartnerServer`. What its merchant and shoppers do are methods of its parts.

    Args:
        site: The address that WordPress has for itself, with the scheme that decides how keys are sent.

    Attributes:
        effects: The writes of the API, oldest first: ``kind`` such as ``order_updated``, ``id``, ``body`` as sent.
        sender: Sends the webhooks.
    """

    def __init__(
        self,
        settings: ShopSettings | None = None,
        *,
        clock: Clock | None = None,
        keys: Iterable[ApiKey] = (ApiKey(),),
        site: str = "https://shop.example",
    ) -> None:
        self.settings, self.site = settings or ShopSettings(), site
        self.effects: list[dict[str, Any]] = []
        clock = clock or ManualClock()
        self._shelf, self._access = Shelf(self.settings, clock), Access(keys, clock, self.settings)
        self._writes = Writes(self.effects)
        self.catalog, self.customers = Catalog(self._shelf), Customers(self._shelf)
        self.orders = Orders(self._shelf, self.catalog, self.customers)
        self.webhooks = Webhooks(self._shelf, clock.now, lambda: self.site)
        self.sender, self._tracking = self.webhooks.sender, Tracking(self._shelf, self.orders, self._writes)
        self._shelf.watchers.append(self._changed)
        self._resources = {
            "orders": self._orders_resource,
            "products": self._products_resource,
            "customers": self._customers_resource,
            "webhooks": self._webhooks_resource,
        }
        self._meanwhile: list[tuple[Callable[[PartnerRequest], bool], Callable[[], object]]] = []

    def meanwhile(self, before: Callable[[PartnerRequest], bool], action: Callable[[], object]) -> None:
        """Do *action* once, just before the next request for which *before* is true is answered."""
        self._meanwhile.append((before, action))

    def throttled(self) -> PartnerAnswer:
        return too_many_requests()

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        for planned in [each for each in self._meanwhile if each[0](request)]:
            self._meanwhile.remove(planned)
            planned[1]()
        try:
            if not self._tracking.is_public(request):
                self._access.check(request, self.site)
            return self._routed(request, Query.of(request, self.settings))
        except RefusedError as refused:
            return refused.answer()

    def _routed(self, request: PartnerRequest, query: Query) -> PartnerAnswer:
        if request.path.startswith(f"{TRACKING}/"):
            return self._tracking.answer(request)
        if not request.path.startswith(f"{API}/"):
            raise no_route()
        match request.path.removeprefix(f"{API}/").split("/"):
            case ["orders", number, "refunds", *rest]:
                order, url = self.orders.numbered(number), f"{self.site}{API}/orders/{number}/refunds"
                return refunds_answer(order, self.orders, self._writes, rest, request, query, url)
            case ["refunds"]:
                return all_refunds_answer(self.orders, request, query, f"{self.site}{API}/refunds")
            case ["orders", number, "notes", *rest]:
                order = self.orders.numbered(number)
                return notes_answer(order, self.orders, self._writes, rest, request, query)
            case ["products", number, "variations", *rest]:
                resource = self._variations(number)
            case [name, *rest] if name in self._resources:
                resource = self._resources[name]()
            case _:
                raise no_route()
        return self._writes.answer(resource, rest, request, query)

    # ---- resources

    def _orders_resource(self) -> Resource:
        return Resource(
            "order", "shop_order", f"{self.site}{API}/orders",
            find=self.orders.orders.get,
            rows=lambda query: listed_orders(self.orders, query),
            create=self.orders.create,
            change=self.orders.edit,
            trash=self.orders.trash,
            delete=self.orders.delete,
            view=lambda order, query: order_view(order, self.settings, query.number("dp", self.settings.decimals)),
        )  # fmt: skip

    def _products_resource(self) -> Resource:
        """Products. Through ``/products/{id}`` variations are read and changed as well."""
        return Resource(
            "product", "product", f"{self.site}{API}/products",
            find=self.catalog.products.get,
            rows=lambda query: listed_products(self.catalog, query, None),
            create=self.catalog.create,
            change=self.catalog.change,
            trash=self.catalog.trash,
            delete=self.catalog.delete,
            view=lambda product, _: product_view(product, self.catalog, self._shelf),
        )  # fmt: skip

    def _variations(self, number: str) -> Resource:
        """The variations of the product with this id. They can be trashed, other than the documentation says."""
        products = self._products_resource()
        parent = self.catalog.products.get(int(number)) if number.isdecimal() else None
        if parent is None:
            raise invalid_id("product")
        own = {each.id: each for each in self.catalog.variations(parent)}
        return replace(
            products,
            name="variation",
            kind="product_variation",
            url=f"{products.url}/{parent.id}/variations",
            find=own.get,
            rows=lambda query: listed_products(self.catalog, query, parent),
            create=lambda sent: self.catalog.create({"name": parent.members["name"], **sent}, parent),
        )

    def _customers_resource(self) -> Resource:
        return Resource(
            "customer", "customer", f"{self.site}{API}/customers",
            find=self.customers.customers.get,
            rows=self.customers.listed,
            create=self.customers.create,
            change=self.customers.change,
            delete=self.delete_customer,
            view=lambda customer, _: self.customers.view(customer),
        )  # fmt: skip

    def _webhooks_resource(self) -> Resource:
        hooks = self.webhooks
        return Resource(
            "webhook", "shop_webhook", f"{self.site}{API}/webhooks",
            find=hooks.webhooks.get,
            rows=lambda _: list(hooks.webhooks.values()),
            create=hooks.create,
            change=hooks.change,
            delete=hooks.delete,
            view=lambda webhook, _: hooks.view(webhook),
        )  # fmt: skip

    def delete_customer(self, customer: Record) -> None:
        """Delete a user for ever; the orders become a guest's."""
        del self.customers.customers[customer.id]
        if customer.members["role"] == "customer":
            self._shelf.tell(customer, "deleted")
        self.orders.forget_customer(customer.id)

    def _changed(self, record: Record, change: Change) -> None:
        """Queue webhooks, with the record as the API shows it; of one that is deleted, with its id."""
        name = "order" if isinstance(record, Order) else "product" if isinstance(record, Product) else "customer"
        if not self.webhooks.is_wanted(f"{name}.{change}"):
            return
        body: dict[str, Any] = {"id": record.id}
        if change != "deleted":
            body = self._resources[f"{name}s"]().shown(record, Query({}, self.settings))
        self.webhooks.queue(f"{name}.{change}", body)
