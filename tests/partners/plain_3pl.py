"""A fake 3PL with a plain REST API, one account of several merchants, for connections that a config alone declares.

It imitates no vendor. Its habits are those of several: Logiwa, ShipMonk, Extensiv, ShipHero, ShipBob. See `Habits`.

| request | answer |
|---|---|
| ``GET /v1/{table}`` | ``{"items": [...], "next_cursor": "..."}``, null on the last page |
| ``GET /v1/{table}/{id}`` | the record |
| ``POST /v1/orders``, ``PUT`` or ``PATCH /v1/orders/{id}``, ``POST /v1/orders/{id}/cancel`` | the order |
| ``PUT /v1/stock/{id}``, ``POST /v1/stock/{id}/adjustments`` | the stock record |

Tables are products, locations, stock, orders, shipments, receipts and bills. A list is sorted by ``updated_at`` and id,
and has the records of all owners unless ``owner`` is given. ``updated_since`` is included, ``limit`` is at most
`MOST_ON_A_PAGE`, and a request with ``cursor`` repeats the other parameters. Unknown parameters are ignored.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection
from typing import Any, cast

from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.plain_3pl_habits import Habits, RefusedError
from tests.partners.plain_3pl_orders import accepted, is_number, merged
from tests.partners.plain_3pl_warehouse import Number, Stored, Table, Warehouse

from crossdock.testing import ManualClock

API_KEY = "plain-3pl-key"
MOST_ON_A_PAGE = 50
_NAMING = ("owner", "reference")


class Plain3pl:
    """One account at the 3PL.

    Attributes:
        effects: The writes that were carried out, oldest first: ``kind`` (``order_created``, ``order_replaced``,
            ``order_patched``, ``order_cancelled``, ``stock_set`` or ``stock_adjusted``), ``id`` of the order or stock
            record, ``body`` as it was sent.
    """

    def __init__(
        self,
        habits: Habits | None = None,
        *,
        clock: ManualClock | None = None,
        owners: Collection[str] = ("acme", "globex"),
    ) -> None:
        self.habits, self.clock, self._owners = habits or Habits(), clock or ManualClock(), owners
        self.warehouse = Warehouse(self.clock, negative_stock=self.habits.negative_stock)
        self.effects: list[dict[str, Any]] = []
        self._kept: dict[str, tuple[tuple[str, str, bytes], PartnerAnswer]] = {}
        self._adjustments: dict[tuple[str, str], Any] = {}
        self._meanwhile: list[tuple[Callable[[PartnerRequest], bool], Callable[[], object]]] = []

    def meanwhile(self, before: Callable[[PartnerRequest], bool], action: Callable[[], object]) -> None:
        """Let the warehouse do *action* once, just before the next request for which *before* is true is answered."""
        self._meanwhile.append((before, action))

    def throttled(self) -> PartnerAnswer:
        return self.habits.throttled(self.clock.now())

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        for planned in [each for each in self._meanwhile if each[0](request)]:
            self._meanwhile.remove(planned)
            planned[1]()
        try:
            if request.headers.get("api-key") != API_KEY:
                raise RefusedError(401, "unauthorized", "the header Api-Key has no valid key")
            return self._read(request) if request.method == "GET" else self._written_once(request)
        except RefusedError as refused:
            return self.habits.refusal(refused)

    # ---- reading

    def _read(self, request: PartnerRequest) -> PartnerAnswer:
        match _segments(request):
            case [table] if table in self.warehouse.tables:
                return PartnerAnswer(200, self._page(table, request))
            case [table, record_id] if table in self.warehouse.tables:
                return self._shown(200, table, record_id)
        raise _not_found(request)

    def _page(self, table: Table, request: PartnerRequest) -> dict[str, Any]:
        filters = {name: request.param(name) for name in ("owner", "reference") if name in request.params}
        if table != "orders" or not self.habits.look_up:
            filters.pop("reference", None)
        since = request.param("updated_since") and self.habits.asked_time(request.param("updated_since"))
        after = _position(request.param("cursor")) if "cursor" in request.params else ("", "")
        found = sorted(
            position
            for record_id, stored in self.warehouse.tables[table].items()
            if (position := (self.habits.time_text(stored.updated_at), record_id)) > after
            and position[0] >= since
            and filters.items() <= stored.members.items()
        )
        size = _size(request.param("limit", str(MOST_ON_A_PAGE)))
        items = [self._record(table, record_id) for _, record_id in found[:size]]
        return {"items": items, "next_cursor": _cursor(found[size - 1]) if len(found) > size else None}

    def _record(self, table: Table, record_id: str) -> Any:
        stored = self.warehouse.tables[table][record_id]
        times = {"created_at": stored.created_at, "updated_at": stored.updated_at}
        record = {"id": record_id, **stored.members, **times}
        if table == "orders":
            record["status"] = self.habits.statuses.get(record["status"], record["status"])
        return self.habits.shown(record)

    def _shown(self, status: int, table: Table, record_id: str) -> PartnerAnswer:
        stored = self._stored(table, record_id)
        has_tag = table == "orders" and self.habits.conditional != "none"
        return PartnerAnswer(status, self._record(table, record_id), {"etag": _etag(stored)} if has_tag else {})

    def _stored(self, table: Table, record_id: str) -> Stored:
        try:
            return self.warehouse.tables[table][record_id]
        except KeyError:
            raise RefusedError(404, "not_found", f"{table} has no record {record_id}") from None

    # ---- writing

    def _written_once(self, request: PartnerRequest) -> PartnerAnswer:
        key = request.headers.get("idempotency-key", "") if self.habits.idempotency_keys else ""
        content = (request.method, request.path, request.body)
        if key in self._kept:
            first, answer = self._kept[key]
            if first != content:
                raise RefusedError(422, "key_reused", "this Idempotency-Key was used for another request")
            return answer
        answer = self._write(request)
        if key:
            self._kept[key] = (content, answer)
        return answer

    def _write(self, request: PartnerRequest) -> PartnerAnswer:
        match [request.method, *_segments(request), self.habits.stock_writes]:
            case ["POST", "orders", _]:
                return self._create(request)
            case ["PUT" | "PATCH", "orders", order_id, _]:
                return self._change(order_id, request)
            case ["POST", "orders", order_id, "cancel", _]:
                self._check_change(order_id, request)
                self.warehouse.cancel(order_id)
                return self._done("order_cancelled", "orders", order_id, request)
            case ["PUT", "stock", stock_id, "set"]:
                return self._set(stock_id, request)
            case ["POST", "stock", stock_id, "adjustments", "adjust"]:
                return self._adjust(stock_id, request)
        raise _not_found(request)

    def _done(
        self, kind: str, table: Table, record_id: str, request: PartnerRequest, status: int = 200
    ) -> PartnerAnswer:
        self.effects.append({"kind": kind, "id": record_id, "body": request.json()})
        return self._shown(202 if self.habits.accepts else status, table, record_id)

    def _create(self, request: PartnerRequest) -> PartnerAnswer:
        order = accepted(_body(request), self.warehouse)
        if order["owner"] not in self._owners:
            raise RefusedError(422, "unknown_owner", f"there is no owner {order['owner']!r}")
        name = {member: order[member] for member in _NAMING}.items()
        repeats = any(name <= each.members.items() for each in self.warehouse.tables["orders"].values())
        if repeats and self.habits.repeated_reference is not None:
            message = f"{order['owner']} has an order with the reference {order['reference']}"
            raise RefusedError(self.habits.repeated_reference, "duplicate_reference", message)
        return self._done("order_created", "orders", self.warehouse.add_order(order), request, 201)

    def _change(self, order_id: str, request: PartnerRequest) -> PartnerAnswer:
        self._check_change(order_id, request)
        stored, body = self._stored("orders", order_id), _body(request)
        order = accepted(body if request.method == "PUT" else merged(stored.members, body), self.warehouse)
        if changed := [name for name in _NAMING if order[name] != stored.members[name]]:
            raise RefusedError(422, "fixed_member", f"{changed[0]} cannot be changed")
        self.warehouse.replace_order(order_id, order)
        kind = "order_replaced" if request.method == "PUT" else "order_patched"
        return self._done(kind, "orders", order_id, request)

    def _check_change(self, order_id: str, request: PartnerRequest) -> None:
        stored, expected = self._stored("orders", order_id), request.headers.get("if-match")
        if self.habits.conditional == "required" and expected is None:
            raise RefusedError(428, "condition_required", "the header If-Match is required")
        if self.habits.conditional != "none" and expected not in {None, _etag(stored)}:
            raise RefusedError(412, "changed_meanwhile", f"order {order_id} is at {_etag(stored)}")
        if not self.warehouse.is_untouched(order_id):
            status = self._record("orders", order_id)["status"]
            raise RefusedError(
                409, "too_late", f"order {order_id} is {status} and cannot be changed", order_status=status
            )

    def _set(self, stock_id: str, request: PartnerRequest) -> PartnerAnswer:
        stored, body = self._stored("stock", stock_id), _body(request)
        wanted, expected = _number(body, "quantity"), _number(body, "expected_quantity")
        present = stored.members["quantity"]
        if expected != present:
            raise RefusedError(409, "changed_meanwhile", f"the quantity is {present}", quantity=present)
        return self._adjusted("stock_set", stock_id, wanted - present, request)

    def _adjust(self, stock_id: str, request: PartnerRequest) -> PartnerAnswer:
        self._stored("stock", stock_id)
        body = _body(request)
        delta, adjustment_id = _number(body, "delta"), body.get("id")
        if not isinstance(adjustment_id, str) or not adjustment_id:
            raise RefusedError(422, "missing_member", "id must be a text that identifies the adjustment")
        name = (stock_id, adjustment_id)
        if name not in self._adjustments:
            answer = self._adjusted("stock_adjusted", stock_id, delta, request)
            self._adjustments[name] = body
            return answer
        if self._adjustments[name] != body:
            raise RefusedError(409, "id_reused", f"adjustment {adjustment_id} has other content")
        return self._shown(200, "stock", stock_id)

    def _adjusted(self, kind: str, stock_id: str, delta: Number, request: PartnerRequest) -> PartnerAnswer:
        try:
            self.warehouse.adjust(stock_id, delta)
        except ValueError as error:
            raise RefusedError(422, "negative_stock", str(error)) from None
        return self._done(kind, "stock", stock_id, request)


def _segments(request: PartnerRequest) -> list[str]:
    """The parts of the path below ``/v1``."""
    version, *segments = request.path.removeprefix("/").split("/")
    if version != "v1":
        raise _not_found(request)
    return segments


def _not_found(request: PartnerRequest) -> RefusedError:
    return RefusedError(404, "not_found", f"there is no {request.method} {request.path}")


def _body(request: PartnerRequest) -> dict[str, Any]:
    try:
        body = request.json()
    except ValueError as error:
        raise RefusedError(400, "bad_json", str(error)) from None
    if not isinstance(body, dict):
        raise RefusedError(400, "bad_json", "the body must be an object")
    return body


def _number(body: dict[str, Any], name: str) -> Number:
    value = body.get(name)
    if not is_number(value):
        raise RefusedError(422, "bad_value", f"{name} must be a number")
    return cast("Number", value)


def _etag(stored: Stored) -> str:
    return f'"{stored.version}"'


def _size(text: str) -> int:
    """Records on a page; more than the most is the most."""
    if not text.isdecimal() or int(text) == 0:
        raise RefusedError(400, "bad_limit", "limit must be a whole number above zero")
    return min(int(text), MOST_ON_A_PAGE)


def _cursor(position: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def _position(cursor: str) -> tuple[str, str]:
    """The position of the last record of the page before."""
    try:
        time, record_id = json.loads(base64.urlsafe_b64decode(cursor))
    except ValueError:
        raise RefusedError(400, "bad_cursor", "the cursor is none of ours") from None
    return time, record_id
