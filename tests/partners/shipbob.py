"""A fake of ShipBob's API with state, version 2026-01.

Facts are from developer.shipbob.com (reference of version 2026-01 with its OpenAPI document, and the pages Errors,
Rate limit, Status reference, Concepts and the guides), read in 2026. Where they leave something open or disagree:

- An order or receiving order is cancelled at ``:cancel`` (2026-01); ``/cancel`` was version 1.0 and 2.0.
- ``shipbob_channel_id`` is required to create and cancel an order, as the reference says; the OpenAPI document requires
  it for creating only. An address and a receiving order need none; if it is there, it must be a channel of the token.
- No order is changed as a whole: ShipBob lets the address of an open shipment change, and the refusal is 400 with a
  code, not 422.
- A reference id is unique per channel (Concepts); the guide says per account.
- Times of filters are exclusive ("later than", "earlier than"), so a second that is a cursor can hide a change.
- An order with a shipment on hold is in ``Exception``, one that was shipped short and closed is ``Fulfilled``; the
  documentation does not derive the status of an order from those of its shipments.
- Orders are listed by creation, newest first; ``SortOrder=Oldest`` turns it round. Receiving orders too, without the
  parameter. Products and inventory are listed by id, invoices by day and then id, newest first.
- An order in a list carries its channel. Products carry it in ``channel_metadata``, inventory only the merchant
  (``user_id``); levels, lots, receiving orders and invoices do not say whose they are.
- Invoices of the last month only are listed without ``FromDate``.

Left out: returns, bundles, transfers, the inventory history, writing products, and what ShipBob requires of
orders of the types DropShip and B2B beyond other orders.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil

from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.shipbob_routes import Routes
from tests.partners.shipbob_state import Channel, Location
from tests.partners.shipbob_stockroom import RefusedError
from tests.partners.shipbob_warehouse import Warehouse
from tests.partners.shipbob_webhooks import Webhooks

LIMIT_PER_MINUTE = 150
_WINDOW = timedelta(minutes=1)


def real_time() -> datetime:
    return datetime.now(UTC)


def _too_many(wait_s: int) -> PartnerAnswer:
    message = f"Rate limit is exceeded. Try again in {wait_s} seconds."
    headers = {"x-retry-after": str(wait_s), "x-remaining-calls": "0"}
    return PartnerAnswer(429, {"statusCode": 429, "message": message}, headers)


class ShipBob:
    """The fake; a `Partner` of `PartnerServer`.

    Args:
        tokens: The channels that each token sees, and writes to.
        channels: All channels; two may belong to one merchant.
        locations: Fulfillment centers, the preferred one first.
        limit: Requests in any minute, by token.
        now: Says the time; aware.

    Attributes:
        warehouse: What a test does at the warehouse, and what is stored.
        effects: What really happened; `tests.partners.shipbob_stockroom.StockRoom` explains it.
        sender: Sends the webhooks.
    """

    def __init__(
        self,
        tokens: Mapping[str, Sequence[int]],
        channels: Sequence[Channel] = (Channel(1, "Shop", 10),),
        locations: Sequence[Location] = (Location(8, "Cicero (IL)"),),
        limit: int = LIMIT_PER_MINUTE,
        now: Callable[[], datetime] = real_time,
    ) -> None:
        self.warehouse = Warehouse(channels, locations, now)
        self.effects = self.warehouse.effects
        self._seen = {f"Bearer {token}": frozenset(channel_ids) for token, channel_ids in tokens.items()}
        self._limit, self._now = limit, now
        self._calls: dict[str, deque[datetime]] = {}
        webhooks = Webhooks(self.warehouse, now)
        self.sender, self._routes = webhooks.sender, Routes(self.warehouse, webhooks)

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        authorization = request.headers.get("authorization", "")
        calls, now = self._calls.setdefault(authorization, deque()), self._now()
        while calls and calls[0] <= now - _WINDOW:
            calls.popleft()
        if len(calls) >= self._limit:
            return _too_many(max(1, ceil((calls[0] + _WINDOW - now).total_seconds())))
        calls.append(now)
        answer = self._checked(request, authorization)
        remaining = {"x-remaining-calls": str(self._limit - len(calls))}
        return PartnerAnswer(answer.status, answer.body, {**answer.headers, **remaining})

    def throttled(self) -> PartnerAnswer:
        return _too_many(1)

    def _checked(self, request: PartnerRequest, authorization: str) -> PartnerAnswer:
        seen = self._seen.get(authorization)
        if seen is None:
            return PartnerAnswer(401, {"statusCode": 401, "message": "Access denied due to an invalid token."})
        try:
            with self.warehouse.lock:
                return self._routes.answer(request, seen, self._named_channel(request, seen))
        except RefusedError as refused:
            return PartnerAnswer(refused.status, refused.body)

    def _named_channel(self, request: PartnerRequest, seen: frozenset[int]) -> Channel | None:
        """The channel in the header, None without one."""
        if (text := request.headers.get("shipbob_channel_id")) is None:
            return None
        if not text.isdecimal():
            raise RefusedError(400, {"shipbob_channel_id": [f"The value '{text}' is not valid."]})
        if int(text) not in seen:
            raise RefusedError(403, {"message": f"The token has no access to channel {text}."})
        return self.warehouse.channels[int(text)]
