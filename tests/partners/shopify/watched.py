"""A fake Shopify shop that a test watches: what happens before its answers, and what becomes of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.shopify.bulk import FILES
from tests.partners.shopify.fake_shop import FakeShopify

_OPERATION = re.compile(r"(?:query|mutation)\s+(\w+)")
Changed = Callable[[str, Any], Any]


class WatchedShop:
    """A `Partner` around a fake.

    Attributes:
        before: Called before each answer, with the number of the request.
        changed: Given the name of a query and the body of its answer; returns the body that is sent. The name of a
            bulk operation's file is ``file``, its body is bytes, and its size is not told.
        asked: The names of all queries, oldest first.
        points: What all of them cost.
        throttles: How many were refused for want of points.
    """

    def __init__(self, shop: FakeShopify) -> None:
        self.shop, self.points, self.throttles = shop, 0, 0
        self.effects = shop.effects
        self.asked: list[str] = []
        self.before: Callable[[int], None] = lambda _: None
        self.changed: Changed | None = None

    def throttled(self) -> PartnerAnswer:
        return self.shop.throttled()

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        name = "file" if request.path.startswith(FILES) else _name(request)
        self.asked.append(name)
        self.before(len(self.asked))
        answer = self.shop.answer(request)
        if name != "file":
            self._count(answer)
        return answer if self.changed is None else self._with(answer, name)

    def _count(self, answer: PartnerAnswer) -> None:
        body = _read(answer) if answer.status == 200 else {}
        self.points += body.get("extensions", {}).get("cost", {}).get("actualQueryCost") or 0
        codes = [error.get("extensions", {}).get("code") for error in body.get("errors", ())]
        self.throttles += "THROTTLED" in codes

    def _with(self, answer: PartnerAnswer, name: str) -> PartnerAnswer:
        assert self.changed is not None
        if name == "file":
            return PartnerAnswer(answer.status, self.changed(name, answer.content()), answer.headers)
        body = _read(answer)
        if name == "bulkOperation" and (body.get("data") or {}).get("bulkOperation"):
            body["data"]["bulkOperation"]["fileSize"] = None
        return PartnerAnswer(answer.status, json.dumps(self.changed(name, body)).encode(), answer.headers)


def _read(answer: PartnerAnswer) -> Any:
    return json.loads(answer.content())


def _name(request: PartnerRequest) -> str:
    found = _OPERATION.match(str(request.json()["query"]))
    return found[1] if found else ""
