"""Habits in which 3PLs with a plain REST API differ, and the answers that follow from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from types import MappingProxyType
from typing import Any, Literal
from zoneinfo import ZoneInfo

from tests.partners.partner_server import PartnerAnswer

from crossdock.values.exact_json import decimal_text
from crossdock.values.texts_of_numbers_and_times import json_time_text

WORDS: Mapping[str, str] = MappingProxyType(
    {
        "new": "Awaiting",
        "part_shipped": "PartDespatched",
        "shipped": "Despatched",
        "short": "ClosedShort",
        "cancelled": "Void",
    }
)


class RefusedError(Exception):
    """A request that the 3PL refuses, with the status of its answer, and members that the answer has besides."""

    def __init__(self, status: int, code: str, message: str, **members: Any) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.members = status, code, message, members


@dataclass(frozen=True, slots=True)
class Habits:
    """One 3PL's way to do things; the defaults are those of a careful one."""

    errors: Literal["status", "in_200"] = "status"
    """``in_200``: a refusal is HTTP 200 with ``{"Success": false, "Errors": [...]}``, as Logiwa has it. A wrong key and
    too many requests keep their status."""
    throttling: Literal["429_seconds", "429_date", "429_float", "403_milliseconds"] = "429_seconds"
    """How too many requests are answered: ``Retry-After`` in whole seconds, as an HTTP date (ShipMonk) or in fractions
    of a second; or 403 with "retry after {t} milliseconds" in the text (Logiwa)."""
    retry_after_s: Decimal = Decimal("1.5")
    """Seconds to wait after too many requests; whole seconds and dates are rounded up."""
    idempotency_keys: bool = True
    """A write with an ``Idempotency-Key`` is carried out once: a repeat gets the answer of the first, 422 if it has
    other content. Refusals are not kept. False: the header is ignored."""
    repeated_reference: Literal[409, 422] | None = None
    """How a second order of an owner with the same reference is refused, also if the first is cancelled; None: it is
    another order."""
    accepts: bool = False
    """Writes are answered by 202 Accepted, as by APIs that carry them out later. This one does it at once."""
    look_up: bool = True
    """Orders can be listed by ``reference``. False: the parameter is ignored like any unknown one, so the list is not
    filtered."""
    conditional: Literal["none", "accepted", "required"] = "none"
    """Orders have an ``ETag``, and a change with another ``If-Match`` is refused by 412; ``required``: one without it
    by 428 (Extensiv)."""
    stock_writes: Literal["set", "adjust"] = "set"
    """``set``: ``PUT /v1/stock/{id}`` with ``quantity``, and 409 with the present one if it is not
    ``expected_quantity``. ``adjust``: ``POST /v1/stock/{id}/adjustments`` with a signed ``delta``, carried out once for
    each ``id``."""
    negative_stock: bool = False
    """Whether quantities may be below zero."""
    statuses: Mapping[str, str] = field(default_factory=lambda: WORDS)
    """The words for the statuses of an order."""
    timezone: str | None = None
    """IANA time zone of times without an offset, as Extensiv writes them; None: times are in UTC with ``Z``."""

    def time_text(self, moment: datetime) -> str:
        """*moment* in whole seconds. Texts sort as times do, except in the hour that a local clock repeats."""
        moment = moment.replace(microsecond=0)
        if self.timezone is None:
            return json_time_text(moment)
        return moment.astimezone(ZoneInfo(self.timezone)).replace(tzinfo=None).isoformat()

    def asked_time(self, text: str) -> str:
        """A time in a request as `json_time_text` writes it. Without an offset it is local, or UTC without a time zone.

        Raises:
            RefusedError: If it is not in ISO 8601.
        """
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise RefusedError(400, "bad_time", f"{text!r} is no time in ISO 8601") from None
        return self.time_text(moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(self.timezone or "UTC")))

    def shown(self, value: Any) -> Any:
        """*value* as JSON, with its times as text."""
        match value:
            case datetime():
                return self.time_text(value)
            case dict():
                return {name: self.shown(inner) for name, inner in value.items()}
            case list():
                return [self.shown(inner) for inner in value]
        return value

    def refusal(self, refused: RefusedError) -> PartnerAnswer:
        """The answer to a request that is refused."""
        if self.errors == "in_200" and refused.status != 401:
            return PartnerAnswer(200, self._in_200(f"{refused.code}: {refused.message}") | refused.members)
        body = {"code": refused.code, "message": refused.message, **refused.members}
        return PartnerAnswer(refused.status, body)

    def throttled(self, now: datetime) -> PartnerAnswer:
        """The answer to too many requests."""
        wait_s = self.retry_after_s
        if self.throttling == "403_milliseconds":
            text = f"Too many requests, retry after {math.ceil(wait_s * 1000)} milliseconds"
            return PartnerAnswer(403, self._in_200(text) if self.errors == "in_200" else {"message": text})
        until = now + timedelta(seconds=math.ceil(wait_s))
        value = {
            "429_seconds": str(math.ceil(wait_s)),
            "429_date": format_datetime(until, usegmt=True),
            "429_float": decimal_text(wait_s),
        }[self.throttling]
        headers = {"retry-after": value, "date": format_datetime(now, usegmt=True)}
        return PartnerAnswer(429, {"code": "too_many_requests", "message": "Too many requests"}, headers)

    @staticmethod
    def _in_200(text: str) -> dict[str, Any]:
        return {"Success": False, "Errors": [text]}
