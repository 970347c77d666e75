"""A fake Vendure shop: a part of its Admin API, whose queries are really executed.

Made from the GraphQL files of vendure-ecommerce/vendure (``packages/core/src/api/schema``, the folders ``admin-api``
and ``common``) and from docs.vendure.io: "Error Handling" (unions with ``ErrorResult``), "Auth" (the token of a session
is in the header ``vendure-auth-token``), "Money & Currency" (integers of minor units) and "Stock Control".
Its habits:

- every list has ``items`` and ``totalItems``, and takes ``skip`` and ``take``, of which 1,000 is the most;
- the filter ``after`` leaves out the very time that it names;
- neither ``settlePayment`` nor a change of stock moves ``updatedAt`` of the order or the variant;
- without a valid session, a query is answered with 200 and the error ``FORBIDDEN``;
- a refused mutation is a type of a union in ``data``, with 200;
- a cancelled order has lines without quantity, which keep their ``orderPlacedQuantity``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from graphql import GraphQLError, GraphQLSchema, build_schema, graphql_sync
from tests.partners.partner_server import PartnerAnswer, PartnerRequest

from crossdock.testing import ManualClock

USER, PASSWORD = "crossdock", "password-of-the-shop"
MOST = 1000  # records of a page
SDL = """
scalar DateTime
scalar Money
scalar JSON
enum SortOrder { ASC DESC }
enum ErrorCode {
  INVALID_CREDENTIALS_ERROR ORDER_STATE_TRANSITION_ERROR CANCEL_ACTIVE_ORDER_ERROR EMPTY_ORDER_LINE_SELECTION_ERROR
  QUANTITY_TOO_GREAT_ERROR MULTIPLE_ORDER_ERROR NATIVE_AUTH_STRATEGY_ERROR
}
interface ErrorResult { errorCode: ErrorCode! message: String! }
input DateOperators { eq: DateTime before: DateTime after: DateTime isNull: Boolean }
input BooleanOperators { eq: Boolean isNull: Boolean }
input StringOperators { eq: String contains: String }
type Query {
  productVariants(options: ProductVariantListOptions, productId: ID): ProductVariantList!
  productVariant(id: ID!): ProductVariant
  stockLocations(options: StockLocationListOptions): StockLocationList!
  customers(options: CustomerListOptions): CustomerList!
  orders(options: OrderListOptions): OrderList!
  order(id: ID!): Order
}
type Mutation {
  login(username: String!, password: String!, rememberMe: Boolean): NativeAuthenticationResult!
  updateProductVariants(input: [UpdateProductVariantInput!]!): [ProductVariant]!
  cancelOrder(input: CancelOrderInput!): CancelOrderResult!
}
type CurrentUser { id: ID! identifier: String! }
type InvalidCredentialsError implements ErrorResult {
  errorCode: ErrorCode! message: String! authenticationError: String!
}
type NativeAuthStrategyError implements ErrorResult { errorCode: ErrorCode! message: String! }
union NativeAuthenticationResult = CurrentUser | InvalidCredentialsError | NativeAuthStrategyError
type StockLocation { id: ID! name: String! description: String! }
type StockLocationList { items: [StockLocation!]! totalItems: Int! }
input StockLocationListOptions { skip: Int take: Int }
type StockLevel { id: ID! stockLocationId: ID! stockOnHand: Int! stockAllocated: Int! stockLocation: StockLocation! }
type ProductVariant {
  id: ID! createdAt: DateTime! updatedAt: DateTime! enabled: Boolean! sku: String! name: String! price: Money!
  currencyCode: String! stockLevels: [StockLevel!]! stockOnHand: Int! @deprecated(reason: "use stockLevels")
}
type ProductVariantList { items: [ProductVariant!]! totalItems: Int! }
input ProductVariantFilterParameter { updatedAt: DateOperators sku: StringOperators enabled: BooleanOperators }
input ProductVariantSortParameter { updatedAt: SortOrder id: SortOrder }
input ProductVariantListOptions {
  skip: Int take: Int sort: ProductVariantSortParameter filter: ProductVariantFilterParameter
}
input StockLevelInput { stockLocationId: ID! stockOnHand: Int! }
input UpdateProductVariantInput { id: ID! sku: String price: Money stockOnHand: Int stockLevels: [StockLevelInput!] }
type Customer {
  id: ID! createdAt: DateTime! updatedAt: DateTime! title: String firstName: String! lastName: String!
  phoneNumber: String emailAddress: String!
}
type CustomerList { items: [Customer!]! totalItems: Int! }
input CustomerFilterParameter { updatedAt: DateOperators emailAddress: StringOperators }
input CustomerSortParameter { updatedAt: SortOrder id: SortOrder }
input CustomerListOptions { skip: Int take: Int sort: CustomerSortParameter filter: CustomerFilterParameter }
type OrderAddress {
  fullName: String company: String streetLine1: String streetLine2: String city: String province: String
  postalCode: String country: String countryCode: String phoneNumber: String
}
type OrderLine {
  id: ID! productVariant: ProductVariant! quantity: Int! orderPlacedQuantity: Int!
  unitPriceWithTax: Money! proratedUnitPriceWithTax: Money!
}
type Order {
  id: ID! createdAt: DateTime! updatedAt: DateTime! orderPlacedAt: DateTime code: String! state: String!
  active: Boolean! customer: Customer shippingAddress: OrderAddress lines: [OrderLine!]! currencyCode: String!
  shippingWithTax: Money! totalWithTax: Money!
}
type OrderList { items: [Order!]! totalItems: Int! }
input OrderFilterParameter { updatedAt: DateOperators active: BooleanOperators code: StringOperators }
input OrderSortParameter { updatedAt: SortOrder id: SortOrder }
input OrderListOptions { skip: Int take: Int sort: OrderSortParameter filter: OrderFilterParameter }
input OrderLineInput { orderLineId: ID! quantity: Int! }
input CancelOrderInput { orderId: ID! lines: [OrderLineInput!] reason: String cancelShipping: Boolean }
type EmptyOrderLineSelectionError implements ErrorResult { errorCode: ErrorCode! message: String! }
type QuantityTooGreatError implements ErrorResult { errorCode: ErrorCode! message: String! }
type MultipleOrderError implements ErrorResult { errorCode: ErrorCode! message: String! }
type CancelActiveOrderError implements ErrorResult { errorCode: ErrorCode! message: String! orderState: String! }
type OrderStateTransitionError implements ErrorResult {
  errorCode: ErrorCode! message: String! transitionError: String! fromState: String! toState: String!
}
union CancelOrderResult =
  Order | EmptyOrderLineSelectionError | QuantityTooGreatError | MultipleOrderError | CancelActiveOrderError
  | OrderStateTransitionError
"""


@lru_cache(maxsize=1)
def admin_schema() -> GraphQLSchema:
    return build_schema(SDL)


class Vendure:
    """One shop with one channel.

    Attributes:
        effects: The mutations that were carried out, oldest first: ``kind`` (``order_cancelled`` or ``stock_set``),
            ``id`` and ``body``, the input.
        records: What it has, by table and id, as its API shows it.
        queries: The bodies of the requests since this was emptied.
    """

    def __init__(self, clock: ManualClock) -> None:
        self.clock, self.effects = clock, list[dict[str, Any]]()
        tables = ("variants", "locations", "customers", "orders")
        self.records: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in tables}
        self.queries = list[dict[str, Any]]()
        self._sessions, self._last = set[str](), 0
        self._stock: dict[tuple[str, str], int] = {}
        self.location()

    # ---- the shop at work

    def location(self, name: str = "Default Stock Location") -> str:
        return self._add("locations", name=name, description="")

    def variant(self, sku: str, price: int, stock: int = 0, *, currency: str = "EUR") -> str:
        """A new variant, with its price in minor units and its stock at the first location."""
        made = self._add("variants", sku=sku, name=f"Lamp {sku}", enabled=True, price=price, currencyCode=currency)
        self._stock[made, "1"] = stock
        return made

    def customer(self, first: str, last: str, email: str) -> str:
        return self._add("customers", firstName=first, lastName=last, emailAddress=email, phoneNumber=None)

    def order(
        self,
        customer: str,
        lines: dict[str, int],
        state: str = "PaymentAuthorized",
        shipping: int = 0,
        **members: Any,
    ) -> str:
        """A placed order of units by variant."""
        variants = [self.records["variants"][each] for each in lines]
        prices = [int(each["price"]) for each in variants]
        rows = [
            {
                "id": str(self._next()),
                "productVariant": variant,
                "quantity": quantity,
                "orderPlacedQuantity": quantity,
                "unitPriceWithTax": price,
                "proratedUnitPriceWithTax": price,
            }
            for variant, quantity, price in zip(variants, lines.values(), prices, strict=True)
        ]
        address = {"fullName": "Ada L.", "streetLine1": "1 Harbour Street", "city": "Hamburg", "countryCode": "DE"}
        given = {
            "code": f"T{self._last}",
            "state": state,
            "active": False,
            "orderPlacedAt": self._now(),
            "customer": self.records["customers"][customer],
            "shippingAddress": address,
            "lines": rows,
            "currencyCode": variants[0]["currencyCode"],
            "shippingWithTax": shipping,
            "totalWithTax": sum(price * units for price, units in zip(prices, lines.values(), strict=True)) + shipping,
        }
        return self._add("orders", **given | members)

    def change(self, table: str, record_id: str, **members: Any) -> None:
        """Edit a record, which moves its ``updatedAt``."""
        self.records[table][record_id] |= members | {"updatedAt": self._now()}

    def settle_payment(self, order_id: str) -> None:
        """The state moves, and ``updatedAt`` does not."""
        self.records["orders"][order_id]["state"] = "PaymentSettled"

    def count_stock(self, variant_id: str, units: int) -> None:
        """A count at the first location, which does not move the variant's ``updatedAt``."""
        self._stock[variant_id, "1"] = units

    def stock_of(self, variant_id: str) -> int:
        return self._stock[variant_id, "1"]

    def end_sessions(self) -> None:
        self._sessions.clear()

    def _add(self, table: str, **members: Any) -> str:
        record_id = str(len(self.records[table]) + 1)
        now = self._now()
        made = {"id": record_id, "createdAt": now, "updatedAt": now, **members}
        if table == "variants":
            made["stockLevels"] = lambda _: self._levels(record_id)
            made["stockOnHand"] = lambda _: self._stock[record_id, "1"]
        self.records[table][record_id] = made
        return record_id

    def _levels(self, variant_id: str) -> list[dict[str, Any]]:
        return [
            {
                "id": f"{variant}-{location}",
                "stockLocationId": location,
                "stockOnHand": units,
                "stockAllocated": 0,
                "stockLocation": self.records["locations"][location],
            }
            for (variant, location), units in self._stock.items()
            if variant == variant_id
        ]

    def _now(self) -> str:
        return _shown(self.clock.now())

    def _next(self) -> int:
        self._last += 1
        return self._last

    # ---- its API

    def throttled(self) -> PartnerAnswer:
        return PartnerAnswer(429, {"message": "Too Many Requests"}, {"retry-after": "1"})

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        if (request.method, request.path) != ("POST", "/admin-api"):
            return PartnerAnswer(404, {"statusCode": 404, "message": f"Cannot {request.method} {request.path}"})
        sent = request.json()
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        call = _Call(self, is_authorized=token in self._sessions)
        self.queries.append(sent)
        found = graphql_sync(admin_schema(), sent["query"], call, variable_values=sent.get("variables"))
        body: dict[str, Any] = {"data": found.data}
        if found.errors:
            body["errors"] = [each.formatted for each in found.errors]
        status = 400 if found.data is None and any(each.original_error is None for each in found.errors or ()) else 200
        return PartnerAnswer(status, body, {} if call.token is None else {"vendure-auth-token": call.token})

    def begin_session(self) -> str:
        token = f"session-{self._next()}"
        self._sessions.add(token)
        return token

    def cancel(self, sent: dict[str, Any]) -> dict[str, Any]:
        order = self.records["orders"].get(sent["orderId"])
        if order is None:
            raise GraphQLError("error.entity-with-id-not-found", extensions={"code": "NOT_FOUND"})
        if order["state"] in {"Shipped", "Delivered", "Cancelled"}:
            return {
                "__typename": "OrderStateTransitionError",
                "errorCode": "ORDER_STATE_TRANSITION_ERROR",
                "message": f'Cannot transition Order from "{order["state"]}" to "Cancelled"',
                "transitionError": "message.cannot-transition",
                "fromState": order["state"],
                "toState": "Cancelled",
            }
        lines = [each | {"quantity": 0} for each in order["lines"]]
        self.change("orders", order["id"], state="Cancelled", lines=lines)
        self.effects.append({"kind": "order_cancelled", "id": order["id"], "body": sent})
        return {"__typename": "Order", **order}

    def update_variant(self, sent: dict[str, Any]) -> dict[str, Any] | None:
        levels = {each["stockLocationId"]: each["stockOnHand"] for each in sent.get("stockLevels") or ()}
        if sent.get("stockOnHand") is not None:
            levels["1"] = sent["stockOnHand"]
        for location, units in levels.items():
            self._stock[sent["id"], location] = units
        self.effects.append({"kind": "stock_set", "id": sent["id"], "body": sent})
        return self.records["variants"].get(sent["id"])


class _Call:
    """The root of one request: a method for each field of ``Query`` and ``Mutation``."""

    def __init__(self, shop: Vendure, *, is_authorized: bool) -> None:
        self._shop, self._is_authorized = shop, is_authorized
        self.token: str | None = None
        for table, field in (
            ("variants", "productVariants"),
            ("locations", "stockLocations"),
            ("customers", "customers"),
            ("orders", "orders"),
        ):
            setattr(self, field, self._list_of(table))
        for table, field in (("variants", "productVariant"), ("orders", "order")):
            setattr(self, field, self._one_of(table))

    def login(self, _: Any, username: str, password: str, **__: Any) -> dict[str, Any]:
        if (username, password) != (USER, PASSWORD):
            return {
                "__typename": "InvalidCredentialsError",
                "errorCode": "INVALID_CREDENTIALS_ERROR",
                "message": "The provided credentials are invalid",
                "authenticationError": "",
            }
        self.token = self._shop.begin_session()
        return {"__typename": "CurrentUser", "id": "1", "identifier": username}

    def cancelOrder(self, _: Any, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002, N802  as the schema has it
        self._check()
        return self._shop.cancel(input)

    def updateProductVariants(self, _: Any, input: list[dict[str, Any]]) -> list[Any]:  # noqa: A002, N802
        self._check()
        return [self._shop.update_variant(each) for each in input]

    def _check(self) -> None:
        if not self._is_authorized:
            message = "You are not currently authorized to perform this action"
            raise GraphQLError(message, extensions={"code": "FORBIDDEN"})

    def _one_of(self, table: str) -> Callable[..., Any]:
        def one(_: Any, id: str) -> Any:  # noqa: A002  as the schema has it
            self._check()
            return self._shop.records[table].get(id)

        return one

    def _list_of(self, table: str) -> Callable[..., Any]:
        def listed(_: Any, options: dict[str, Any] | None = None, **__: Any) -> dict[str, Any]:
            self._check()
            wanted = options or {}
            if (take := wanted.get("take") or MOST) > MOST:
                raise GraphQLError("error.list-query-limit-exceeded", extensions={"code": "USER_INPUT_ERROR"})
            found = [each for each in self._shop.records[table].values() if _meets(each, wanted.get("filter") or {})]
            for member, direction in (wanted.get("sort") or {}).items():
                found.sort(key=lambda each: each[member], reverse=direction == "DESC")
            skip = wanted.get("skip") or 0
            return {"items": found[skip : skip + take], "totalItems": len(found)}

        return listed


def _meets(record: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(
        _OPERATORS[operator](record[member], value)
        for member, operators in wanted.items()
        for operator, value in operators.items()
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda held, value: bool(held == value),
    "after": lambda held, value: _time(held) > _time(value),
    "before": lambda held, value: _time(held) < _time(value),
    "contains": lambda held, value: value in held,
}


def _shown(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"
