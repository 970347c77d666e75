"""A fake of ShipHero: a part of its public GraphQL API, whose queries are really executed.

Made from developer.shiphero.com: "Getting Started" (tokens, request ids, complexity, credits), "Error Glossary" (errors
in answers with 200, with ``code`` and ``operation``) and "Schema" (``types/``: ``order``, ``create-order-input``,
``product``, ``warehouse-product``, ``item-location``, ``location``), and from the schema of
outliers-rocks/shiphero-python.
Its habits:

- a refresh token is exchanged for an access token by a JSON body;
- every query answers with ``request_id``, ``complexity`` and ``data``; connections have ``edges`` and ``pageInfo``,
  and cursors that are positions (``arrayconnection:49`` in Base64);
- a query needs credits for what it may return (`MOST_CREDITS`, `RESTORED_PER_S`), and is refused with 200 and code 30
  if there are too few: ``required_credits``, ``remaining_credits`` and ``time_remaining``, such as ``18 seconds``;
- what goes wrong is in ``errors``, with 200 and null in place of the data;
- times have no offset, and are UTC;
- an order with the ``partner_order_id`` of another one is taken as well.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    IntValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
    build_schema,
    graphql_sync,
    parse,
)
from tests.partners.partner_server import PartnerAnswer, PartnerRequest

from crossdock.testing import ManualClock

REFRESH_TOKEN = "refresh-token-of-ours"
MOST_CREDITS, RESTORED_PER_S = 4004, 60
DEFAULT_FIRST = 100
NOT_ENOUGH, NOT_FOUND, INVALID = 30, 5, 3
_PAGE = "sort: String before: String after: String first: Int last: Int"
SDL = f"""
scalar ISODateTime
scalar Decimal
type PageInfo {{ hasNextPage: Boolean! hasPreviousPage: Boolean! startCursor: String endCursor: String }}
type Query {{
  products(
    sku: String created_from: ISODateTime created_to: ISODateTime updated_from: ISODateTime updated_to: ISODateTime
    customer_account_id: String analyze: Boolean
  ): ProductsQueryResult
  locations(warehouse_id: String analyze: Boolean): LocationsQueryResult
  warehouse_products(
    warehouse_id: String active: Boolean sku: String customer_account_id: String updated_from: ISODateTime
    updated_to: ISODateTime analyze: Boolean
  ): WarehouseProductsQueryResult
  orders(
    shop_name: String partner_order_id: String order_number: String fulfillment_status: String updated_from: ISODateTime
    updated_to: ISODateTime customer_account_id: String analyze: Boolean
  ): OrdersQueryResult
  order(id: String! analyze: Boolean): OrderQueryResult
}}
type Mutation {{
  order_create(data: CreateOrderInput!): OrderMutationOutput
  order_cancel(data: CancelOrderInput!): OrderMutationOutput
}}
type Product {{ id: String sku: String name: String barcode: String created_at: ISODateTime updated_at: ISODateTime }}
type ProductEdge {{ node: Product cursor: String! }}
type ProductConnection {{ pageInfo: PageInfo! edges: [ProductEdge]! }}
type ProductsQueryResult {{ request_id: String complexity: Int data({_PAGE}): ProductConnection }}
type Location {{ id: String warehouse_id: String name: String zone: String pickable: Boolean sellable: Boolean }}
type LocationEdge {{ node: Location cursor: String! }}
type LocationConnection {{ pageInfo: PageInfo! edges: [LocationEdge]! }}
type LocationsQueryResult {{ request_id: String complexity: Int data({_PAGE}): LocationConnection }}
type Lot {{ id: String name: String sku: String expires_at: ISODateTime }}
type ItemLocation {{
  id: String warehouse_id: String location_id: String sku: String quantity: Int location: Location expiration_lot: Lot
}}
type ItemLocationEdge {{ node: ItemLocation cursor: String! }}
type ItemLocationConnection {{ pageInfo: PageInfo! edges: [ItemLocationEdge]! }}
type WarehouseProduct {{
  id: String sku: String warehouse_id: String on_hand: Int updated_at: ISODateTime
  locations(customer_account_id: String {_PAGE}): ItemLocationConnection
}}
type WarehouseProductEdge {{ node: WarehouseProduct cursor: String! }}
type WarehouseProductConnection {{ pageInfo: PageInfo! edges: [WarehouseProductEdge]! }}
type WarehouseProductsQueryResult {{ request_id: String complexity: Int data({_PAGE}): WarehouseProductConnection }}
type ShippingLabel {{ id: String carrier: String tracking_number: String status: String }}
type Shipment {{ id: String order_id: String created_date: ISODateTime shipping_labels: [ShippingLabel] }}
type Order {{
  id: String legacy_id: Int order_number: String partner_order_id: String shop_name: String fulfillment_status: String
  order_date: ISODateTime updated_at: ISODateTime currency: String shipments: [Shipment]
}}
type OrderEdge {{ node: Order cursor: String! }}
type OrderConnection {{ pageInfo: PageInfo! edges: [OrderEdge]! }}
type OrdersQueryResult {{ request_id: String complexity: Int data({_PAGE}): OrderConnection }}
type OrderQueryResult {{ request_id: String complexity: Int data: Order }}
type OrderMutationOutput {{ request_id: String complexity: Int order: Order }}
input CreateOrderAddressInput {{
  first_name: String last_name: String company: String address1: String address2: String city: String state: String
  state_code: String zip: String country: String country_code: String email: String phone: String
}}
input CreateLineItemInput {{
  sku: String! partner_line_item_id: String! quantity: Int! price: String! product_name: String
}}
input CreateOrderInput {{
  customer_account_id: String order_number: String partner_order_id: String shop_name: String fulfillment_status: String
  order_date: ISODateTime currency: String shipping_address: CreateOrderAddressInput!
  billing_address: CreateOrderAddressInput line_items: [CreateLineItemInput] email: String
}}
input CancelOrderInput {{
  customer_account_id: String order_id: String! reason: String void_on_platform: Boolean force: Boolean
}}
"""


@lru_cache(maxsize=1)
def public_schema() -> GraphQLSchema:
    return build_schema(SDL)


class RefusedError(Exception):
    """What an operation is refused with, with further members of the error."""

    def __init__(self, code: int, message: str, **members: Any) -> None:
        super().__init__(message)
        self.members = {"code": code, **members}


@dataclass(frozen=True, slots=True)
class Received:
    """A GraphQL request, when it came, and for how long it must wait if there were too few credits; both in seconds."""

    query: str
    at: float
    wait_s: int = 0


class ShipHero:
    """One account with one warehouse.

    Attributes:
        effects: The mutations that were carried out, oldest first: ``kind`` (``order_created`` or ``order_cancelled``),
            ``id`` and ``body``, the input.
        orders: Its orders by id.
        credits: Those that are left.
        requests: Each GraphQL request.
    """

    def __init__(self, clock: ManualClock) -> None:
        self.clock, self.effects = clock, list[dict[str, Any]]()
        self.products: dict[str, dict[str, Any]] = {}
        self.locations: dict[str, dict[str, Any]] = {}
        self.orders: dict[str, dict[str, Any]] = {}
        self.stock: dict[str, list[dict[str, Any]]] = {}
        self.credits, self._restored_at = float(MOST_CREDITS), clock.monotonic()
        self.requests = list[Received]()
        self._tokens, self._last = set[str](), 0

    # ---- the warehouse at work

    def product(self, sku: str) -> None:
        made = {"id": f"P-{sku}", "sku": sku, "name": f"Lamp {sku}", "barcode": f"40{len(self.products)}"}
        self.products[sku] = made | {"created_at": self._now(), "updated_at": self._now()}
        self.stock[sku] = []

    def rename(self, sku: str, name: str) -> None:
        self.products[sku] |= {"name": name, "updated_at": self._now()}

    def location(self, name: str, zone: str = "A") -> str:
        location_id = f"L-{name}"
        made = {"warehouse_id": "W1", "name": name, "zone": zone, "pickable": True, "sellable": True}
        self.locations[location_id] = {"id": location_id, **made}
        return location_id

    def put(self, sku: str, location: str, quantity: int, lot: Mapping[str, Any] | None = None) -> None:
        """Set the units in a location; none take it from the list."""
        rows = [each for each in self.stock[sku] if each["location_id"] != location]
        made = {"id": f"I-{sku}-{location}", "warehouse_id": "W1", "location_id": location, "sku": sku}
        row = made | {"quantity": quantity, "location": self.locations[location], "expiration_lot": lot}
        self.stock[sku] = [*rows, row] if quantity else rows

    def ship(self, order_id: str, *parcels: list[str], status: str = "fulfilled", is_dated: bool = True) -> None:
        """Ship an order: each of *parcels* is a shipment, the tracking numbers of its labels."""
        order = self.orders[order_id]
        for numbers in parcels:
            labels = [{"id": each, "carrier": "ups", "tracking_number": each, "status": "valid"} for each in numbers]
            order["shipments"].append({"id": f"S-{self._next()}", "order_id": order_id, "shipping_labels": labels})
        order["fulfillment_status"] = status
        if is_dated:
            order["updated_at"] = self._now()

    def order_of_others(self, partner_order_id: str) -> str:
        """An order that somebody else has placed."""
        return self._placed({"partner_order_id": partner_order_id, "order_number": partner_order_id})

    def expire_tokens(self) -> None:
        self._tokens.clear()

    def _placed(self, sent: Mapping[str, Any]) -> str:
        order_id = f"T3JkZXI6{self._next()}"
        shown = {name: sent.get(name) for name in ("order_number", "partner_order_id", "shop_name", "currency")}
        status = sent.get("fulfillment_status") or "pending"
        self.orders[order_id] = {
            "id": order_id, "fulfillment_status": status, "updated_at": self._now(), "shipments": [], **shown,
        }  # fmt: skip
        return order_id

    def _now(self) -> str:
        return f"{self.clock.now():%Y-%m-%dT%H:%M:%S}"

    def _next(self) -> int:
        self._last += 1
        return self._last

    # ---- its API

    def throttled(self) -> PartnerAnswer:
        left = math.floor(self._left())
        return self._answered(None, [self._error(_not_enough(left + RESTORED_PER_S, left), "orders")])

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        match (request.method, request.path):
            case "POST", "/auth/refresh":
                return self._token(request.json())
            case "POST", "/graphql":
                return self._executed(request)
        return PartnerAnswer(404, {"message": "not found"})

    def _token(self, sent: Any) -> PartnerAnswer:
        if sent != {"refresh_token": REFRESH_TOKEN}:
            return PartnerAnswer(
                403, {"error": "invalid_grant", "error_description": "Unknown or invalid refresh token."}
            )
        token = f"access-token-{self._next()}"
        self._tokens.add(token)
        granted = {"access_token": token, "expires_in": 2419200, "scope": "openid profile", "token_type": "Bearer"}
        return PartnerAnswer(200, granted)

    def _executed(self, request: PartnerRequest) -> PartnerAnswer:
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self._tokens:
            return PartnerAnswer(401, {"code": "token_expired", "description": "token is expired"})
        sent = request.json()
        query, variables = sent["query"], sent.get("variables") or {}
        operation, cost = _costs(query, variables)
        if (left := self._left()) < cost:
            refusal = _not_enough(cost, math.floor(left))
            wait_s = int(str(refusal.members["time_remaining"]).split()[0])
            self.requests.append(Received(query, self.clock.monotonic(), wait_s))
            return self._answered({operation: None}, [self._error(refusal, operation)])
        self.requests.append(Received(query, self.clock.monotonic()))
        self.credits = left - cost
        found = graphql_sync(public_schema(), query, _Call(self, cost), variable_values=variables)
        if found.data is None:
            return PartnerAnswer(400, {"errors": [each.formatted for each in found.errors or ()]})
        return self._answered(found.data, [self._error(each, operation) for each in found.errors or ()])

    def _left(self) -> float:
        now = self.clock.monotonic()
        passed, self._restored_at = now - self._restored_at, now
        self.credits = min(MOST_CREDITS, self.credits + passed * RESTORED_PER_S)
        return self.credits

    def _answered(self, data: Any, errors: list[dict[str, Any]]) -> PartnerAnswer:
        return PartnerAnswer(200, {"errors": errors, "data": data} if errors else {"data": data})

    def _error(self, error: Exception, operation: str) -> dict[str, Any]:
        cause = error.original_error if isinstance(error, GraphQLError) else error
        members = cause.members if isinstance(cause, RefusedError) else {"code": INVALID}
        shown = str(cause) if isinstance(cause, RefusedError) else getattr(error, "message", str(error))
        request_id = f"{self._next():024x}"
        return {"message": shown, "operation": operation, "field": operation, "request_id": request_id, **members}

    def create(self, sent: dict[str, Any]) -> dict[str, Any]:
        unknown = [each["sku"] for each in sent["line_items"] or () if each["sku"] not in self.products]
        if unknown:
            raise RefusedError(INVALID, f"Product with sku {unknown[0]} does not exist")
        order_id = self._placed(sent)
        self.effects.append({"kind": "order_created", "id": order_id, "body": sent})
        return self.orders[order_id]

    def cancel(self, sent: dict[str, Any]) -> dict[str, Any]:
        order = self.orders.get(sent["order_id"])
        if order is None:
            raise RefusedError(NOT_FOUND, "Order not found")
        if order["fulfillment_status"] == "fulfilled":
            raise RefusedError(INVALID, "Order is already fulfilled and cannot be canceled")
        order |= {"fulfillment_status": "canceled", "updated_at": self._now()}
        self.effects.append({"kind": "order_cancelled", "id": order["id"], "body": sent})
        return order


class _Call:
    """The root of one request: a method for each field of ``Query`` and ``Mutation``."""

    def __init__(self, account: ShipHero, cost: int) -> None:
        self._account, self._cost = account, cost

    def products(self, _: Any, **wanted: Any) -> dict[str, Any]:
        return self._listed(self._account.products.values(), wanted)

    def locations(self, _: Any, **wanted: Any) -> dict[str, Any]:
        return self._listed(self._account.locations.values(), wanted)

    def orders(self, _: Any, **wanted: Any) -> dict[str, Any]:
        return self._listed(self._account.orders.values(), wanted)

    def warehouse_products(self, _: Any, **wanted: Any) -> dict[str, Any]:
        rows = [
            {
                "id": f"WP-{sku}",
                "sku": sku,
                "warehouse_id": "W1",
                "on_hand": sum(each["quantity"] for each in held),
                "locations": lambda _, held=held, **page: _connection(held, page),
            }
            for sku, held in self._account.stock.items()
        ]
        return self._listed(rows, wanted)

    def order(self, _: Any, id: str, **__: Any) -> dict[str, Any]:  # noqa: A002  as the schema has it
        if id not in self._account.orders:
            raise RefusedError(NOT_FOUND, "Order not found")
        return self._result() | {"data": self._account.orders[id]}

    def order_create(self, _: Any, data: dict[str, Any]) -> dict[str, Any]:
        return self._result() | {"order": self._account.create(data)}

    def order_cancel(self, _: Any, data: dict[str, Any]) -> dict[str, Any]:
        return self._result() | {"order": self._account.cancel(data)}

    def _result(self) -> dict[str, Any]:
        return {"request_id": "5f0d1e2c", "complexity": self._cost}

    def _listed(self, rows: Any, wanted: Mapping[str, Any]) -> dict[str, Any]:
        found = [each for each in rows if all(_meets(each, *rule) for rule in wanted.items())]
        return self._result() | {"data": lambda _, **page: _connection(found, page)}


def _meets(row: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether *row* meets one argument of a query; those that are null or tell nothing of rows are met."""
    if value is None or name in {"analyze", "customer_account_id"}:
        return True
    if name == "updated_from":
        return _time(row["updated_at"]) >= _time(value)
    return bool(row.get(name) == value)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=None)


def _connection(rows: list[dict[str, Any]], page: Mapping[str, Any]) -> dict[str, Any]:
    if member := page.get("sort"):
        rows = sorted(rows, key=lambda each: str(each[member]))
    after = page.get("after")
    start = 0 if after is None else int(base64.b64decode(after).decode().removeprefix("arrayconnection:")) + 1
    shown = rows[start : start + (page.get("first") or DEFAULT_FIRST)]
    edges = [{"node": row, "cursor": _cursor(start + number)} for number, row in enumerate(shown)]
    info = {
        "hasNextPage": start + len(shown) < len(rows),
        "hasPreviousPage": start > 0,
        "startCursor": edges[0]["cursor"] if edges else None,
        "endCursor": edges[-1]["cursor"] if edges else None,
    }
    return {"edges": edges, "pageInfo": info}


def _cursor(position: int) -> str:
    return base64.b64encode(f"arrayconnection:{position}".encode()).decode()


def _not_enough(required: int, left: int) -> RefusedError:
    wait_s = math.ceil((required - left) / RESTORED_PER_S)
    message = (
        f"There are not enough credits to perform the requested operation, which requires {required} credits, but there"
        f" are only {left} left. In {wait_s} seconds you will have enough credits to perform the operation"
    )
    members = {"required_credits": required, "remaining_credits": left, "time_remaining": f"{wait_s} seconds"}
    return RefusedError(NOT_ENOUGH, message, **members)


def _costs(query: str, variables: Mapping[str, Any]) -> tuple[str, int]:
    """The alias of the first operation, and the credits for the most that the query can return."""
    document = parse(query)
    fragments = {each.name.value: each for each in document.definitions if isinstance(each, FragmentDefinitionNode)}
    (operation,) = (each for each in document.definitions if isinstance(each, OperationDefinitionNode))

    def cost(selected: SelectionSetNode | None) -> int:
        total = 0
        for each in selected.selections if selected else ():
            if isinstance(each, FragmentSpreadNode):
                total += cost(fragments[each.name.value].selection_set)
            elif isinstance(each, FieldNode):
                total += field_cost(each)
        return total

    def field_cost(field: FieldNode) -> int:
        inner = field.selection_set.selections if field.selection_set else ()
        is_connection = any(isinstance(each, FieldNode) and each.name.value == "edges" for each in inner)
        within = cost(field.selection_set)
        return 1 + _first(field, variables) * max(1, within) if is_connection else within

    first = operation.selection_set.selections[0]
    assert isinstance(first, FieldNode)
    name = first.alias.value if first.alias else first.name.value
    return name, 1 + cost(operation.selection_set)


def _first(field: FieldNode, variables: Mapping[str, Any]) -> int:
    value = next((each.value for each in field.arguments or () if each.name.value == "first"), None)
    if isinstance(value, VariableNode):
        return int(variables.get(value.name.value) or DEFAULT_FIRST)
    return int(value.value) if isinstance(value, IntValueNode) else DEFAULT_FIRST
