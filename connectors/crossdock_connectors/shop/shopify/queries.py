"""The GraphQL queries, which the published Admin schema of version 2026-10 validates.

Each list has the same fields in a bulk operation as in pages, so that a record reads the same in both.
"""

from __future__ import annotations

from json import dumps

from msgspec import Struct

VERSION = "2026-10"
SUPPORTED_UNTIL = "2027-10-01"
"""The end of support: each version is supported for at least twelve months (shopify.dev/docs/api/usage/versioning)."""

MOST = 250  # elements of a list in an answer
PARTS = 100  # refunds and fulfillments of an order that its list has
PARCELS = 20  # tracking numbers of a fulfillment that the list has


def _unpaged_lists_selection(refunds: int, fulfillments: int, parcels: int) -> str:
    """Select the lists of an order that have no pages: ``first`` cuts them off, and nothing in the answer says so."""
    return f"""refunds(first: {refunds}) {{ id }}
  fulfillments(first: {fulfillments}) {{ status trackingInfo(first: {parcels}) {{ company number url }} }}"""


_MONEY = "{ shopMoney { amount currencyCode } presentmentMoney { amount currencyCode } }"
_ADDRESS = "{ name company address1 address2 city province provinceCode zip countryCodeV2 phone }"
_LINE = f"""id name sku quantity currentQuantity isGiftCard requiresShipping
  variant {{ id sku }} originalUnitPriceSet {_MONEY} discountAllocations {{ allocatedAmountSet {_MONEY} }}"""
_ORDER = f"""id name createdAt updatedAt processedAt cancelledAt edited test email phone
  currencyCode presentmentCurrencyCode taxesIncluded displayFinancialStatus displayFulfillmentStatus
  customer {{ id }} billingAddress {_ADDRESS} shippingAddress {_ADDRESS}
  subtotalPriceSet {_MONEY} totalShippingPriceSet {_MONEY} totalTaxSet {_MONEY} totalTipReceivedSet {_MONEY}
  totalPriceSet {_MONEY} originalTotalDutiesSet {_MONEY} originalTotalAdditionalFeesSet {_MONEY}
  currentSubtotalPriceSet {_MONEY} currentShippingPriceSet {_MONEY} currentTotalTaxSet {_MONEY}
  currentTotalPriceSet {_MONEY} currentTotalDutiesSet {_MONEY} currentTotalAdditionalFeesSet {_MONEY}
  totalReceivedSet {_MONEY}
  {_unpaged_lists_selection(PARTS, PARTS, PARCELS)}"""
_VARIANT = "id sku title barcode price updatedAt"
_PRODUCT = "id title descriptionHtml status updatedAt"
_CUSTOMER = f"""id displayName updatedAt defaultEmailAddress {{ emailAddress }}
  defaultPhoneNumber {{ phoneNumber }} defaultAddress {_ADDRESS}"""
_LEVEL = 'id isActive location { id } quantities(names: ["available", "on_hand"]) { name quantity }'
_PAGE = "pageInfo { hasNextPage endCursor }"


def _query_by_ids(name: str, type_name: str, fields: str) -> str:
    return f"query {name}($ids: [ID!]!) {{ nodes(ids: $ids) {{ ... on {type_name} {{ {fields} }} }} }}"


class Children(Struct, frozen=True):
    """A connection inside the records of a list. Children beyond *size* are requested separately.

    *inside* is the object of the record that has the field, if the record does not; *beside* are its other fields.
    """

    name: str
    fields: str
    size: int
    inside: str = ""
    beside: str = ""

    def wrap_in_parent_object(self, connection: str) -> str:
        return f"{self.inside} {{ {self.beside} {connection} }}" if self.inside else connection


def further_children_query(type_name: str, child: Children) -> str:
    """Return the query for further pages of a connection inside a record."""
    connection = f"{child.name}(first: 100, after: $after) {{ nodes {{ {child.fields} }} {_PAGE} }}"
    return f"""query {child.name}($id: ID!, $after: String) {{
  node(id: $id) {{ ... on {type_name} {{ {child.wrap_in_parent_object(connection)} }} }}
}}"""


class ShopList(Struct, frozen=True):
    """A list of the shop. *size* is the number of records of a page: a query may cost at most 1,000 points.

    A query by *named_size* ids must stay within that even if each id counts, which Shopify does not document.
    """

    name: str
    type_name: str
    fields: str
    size: int
    children: Children | None = None
    sorting: str = "sortKey: UPDATED_AT"
    named_size: int = 50

    @property
    def node_selection(self) -> str:
        child = self.children
        if child is None:
            return self.fields
        inner = child.wrap_in_parent_object(
            f"{child.name}(first: {child.size}) {{ nodes {{ {child.fields} }} {_PAGE} }}"
        )
        return f"{self.fields} {inner}"

    @property
    def page_selection(self) -> str:
        return f"{{ nodes {{ {self.node_selection} }} {_PAGE} }}"

    @property
    def paged_query(self) -> str:
        return f"""query {self.name}($first: Int!, $after: String, $query: String) {{
  {self.name}(first: $first, after: $after, query: $query, {self.sorting}) {self.page_selection}
}}"""

    @property
    def query_by_ids(self) -> str:
        """The query for the records with some ids, the variable ``ids``. A null stands for one that does not exist."""
        return _query_by_ids(self.name, self.type_name, self.node_selection)

    def bulk_query(self, found: str) -> str:
        child, inner = self.children, ""
        if child is not None:
            inner = child.wrap_in_parent_object(f"{child.name} {{ edges {{ node {{ {child.fields} }} }} }}")
        where = f"(query: {dumps(found)})" if found else ""
        return f"{{ {self.name}{where} {{ edges {{ node {{ {self.fields} {inner} }} }} }} }}"


ORDERS = ShopList("orders", "Order", _ORDER, 15, Children("lineItems", _LINE, 30), named_size=9)
PRODUCTS = ShopList("products", "Product", _PRODUCT, 100, Children("variants", _VARIANT, 50))
CUSTOMERS = ShopList("customers", "Customer", _CUSTOMER, 250)
STOCK = ShopList(
    "productVariants",
    "ProductVariant",
    "id sku",
    50,
    Children("inventoryLevels", _LEVEL, 20, inside="inventoryItem", beside="id tracked"),
    sorting="sortKey: ID",
    named_size=25,
)
_SOLD = f"{_VARIANT} product {{ {_PRODUCT} }}"
VARIANTS = ShopList("productVariants", "ProductVariant", _SOLD, 250, sorting="sortKey: ID")
"""The variants of `PRODUCTS`, each with the product's fields."""

ORDERS_OF_CUSTOMER = f"""query ordersOfCustomer($id: ID!, $first: Int!, $after: String) {{
  customer(id: $id) {{ orders(first: $first, after: $after) {ORDERS.page_selection} }}
}}"""

ORDERS_OF_REFUNDS = _query_by_ids("ordersOfRefunds", "Refund", "order { id }")
VARIANTS_OF_ITEMS = _query_by_ids(
    "variantsOfItems", "InventoryItem", f"variants(first: 50) {{ nodes {{ id }} {_PAGE} }}"
)

PARTS_OF_ORDER = f"""query partsOfOrder($id: ID!) {{
  node(id: $id) {{ ... on Order {{ {_unpaged_lists_selection(MOST, MOST, MOST)} }} }}
}}"""
"""The lists without pages of an order of which `ORDERS` may have cut one."""

REFUND_LISTS = (
    Children("refundLineItems", f"quantity subtotalSet {_MONEY} totalTaxSet {_MONEY} lineItem {{ {_LINE} }}", 100),
    Children("refundShippingLines", f"subtotalAmountSet {_MONEY} taxAmountSet {_MONEY}", 20),
    Children("orderAdjustments", f"amountSet {_MONEY} taxAmountSet {_MONEY}", 20),
    Children("transactions", "kind status", 20),
)
_LISTS_OF_REFUND = " ".join(
    f"{each.name}(first: {each.size}) {{ nodes {{ {each.fields} }} {_PAGE} }}" for each in REFUND_LISTS
)
_REFUND = f"id createdAt totalRefundedSet {_MONEY} duties {{ amountSet {_MONEY} }} {_LISTS_OF_REFUND}"
REFUNDS = _query_by_ids("refunds", "Refund", _REFUND)
"""Refunds by their ids. They are not part of `ORDERS`, because a bulk operation reads no list inside a list."""

EXISTING = "query existing($ids: [ID!]!) { nodes(ids: $ids) { id } }"
"""Which of some records exist."""

LOCATIONS = f"""query locations($first: Int!, $after: String) {{
  locations(first: $first, after: $after, includeInactive: true, includeLegacy: true) {{
    nodes {{ id name isActive }} {_PAGE}
  }}
}}"""

DELETIONS = f"""query events($first: Int!, $after: String, $query: String) {{
  events(first: $first, after: $after, query: $query, sortKey: CREATED_AT) {{
    nodes {{ ... on BasicEvent {{ subjectId subjectType }} }} {_PAGE}
  }}
}}"""


def list_query(name: str, fields: str) -> str:
    return f"""query {name}($first: Int!, $after: String) {{
  {name}(first: $first, after: $after, sortKey: ID) {{ nodes {{ {fields} }} {_PAGE} }}
}}"""


SHOP = """query shop {
  shop { name myshopifyDomain currencyCode enabledPresentmentCurrencies }
  currentAppInstallation { accessScopes { handle } }
}"""
COUNTS = """query counts($orders: String) {
  ordersCount(limit: null, query: $orders) { count }
  productVariantsCount(limit: null) { count }
  customersCount(limit: null) { count }
}"""

RUN_BULK = """mutation bulkOperationRunQuery($query: String!) {
  bulkOperationRunQuery(query: $query) { bulkOperation { id status } userErrors { field message code } }
}"""
_BULK = "id status errorCode objectCount rootObjectCount fileSize url query createdAt completedAt"
BULK = f"query bulkOperation($id: ID!) {{ bulkOperation(id: $id) {{ {_BULK} }} }}"
RECENT_BULK = f"""query bulkOperations($query: String) {{
  bulkOperations(first: 50, query: $query, sortKey: CREATED_AT, reverse: true) {{ nodes {{ {_BULK} }} {_PAGE} }}
}}"""
