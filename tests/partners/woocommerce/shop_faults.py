"""What comes between WooCommerce and its clients: errors of PHP, maintenance, security plugins, bad connections."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from tests.partners.partner_server import Partner, PartnerAnswer, PartnerRequest

ShopFault = Literal[
    "critical_error", "late_critical_error", "maintenance", "too_many_requests", "no_route",
    "notice", "null", "object", "nulls", "cut_json", "cut_body", "slow",
]  # fmt: skip
"""``critical_error``: PHP stops, and WordPress shows a page. ``late_critical_error``: it stops after the request was
carried out. ``maintenance``: WordPress is being updated. ``too_many_requests``: a security plugin refuses the request.
``no_route``: a plugin has removed the address. Nothing is carried out by these, but by `late_critical_error`; the
others are faults of answers:

``notice``: PHP writes a warning before the JSON, so that status and content type are those of a page. ``null`` is the
body. ``object``: a list whose indexes have a gap, which PHP writes as an object. ``nulls``: null for each element of a
list. ``cut_json``: PHP stopped while it wrote the JSON. ``cut_body``: the connection ends before the body does.
``slow``: the answer waits for `Faulty.released`.
"""
_PAGE = {"content-type": "text/html; charset=UTF-8"}
_NOTICE = b"<br />\n<b>Warning</b>:  Undefined array key &quot;sku&quot; in <b>/wp-content/plugins/x.php</b><br />\n"
_LONGEST_WAIT_S = 60.0


def _page(status: int, text: str, **headers: str) -> PartnerAnswer:
    html = f"<!DOCTYPE html><html><body><p>{text}</p></body></html>"
    return PartnerAnswer(status, html.encode(), {**_PAGE, **headers})


def critical_error() -> PartnerAnswer:
    return _page(500, "There has been a critical error on this website.")


def maintenance() -> PartnerAnswer:
    """Source: WordPress's ``wp_maintenance`` and ``wp_die``."""
    text = "Briefly unavailable for scheduled maintenance. Check back in a minute."
    return _page(503, text, **{"retry-after": "600"})


def too_many_requests() -> PartnerAnswer:
    """WooCommerce has no rate limit; plugins and hosts do, and they answer with a page."""
    return _page(429, "Your access to this site has been limited by the site owner.", **{"retry-after": "30"})


def no_route() -> PartnerAnswer:
    """Source: WordPress's ``WP_REST_Server::match_request_to_handler``."""
    message = "No route was found matching the URL and request method."
    return PartnerAnswer(404, {"code": "rest_no_route", "message": message, "data": {"status": 404}})


class _CutBody(bytes):
    """The first half of a body, announced with the length of the whole."""

    def __len__(self) -> int:
        return 2 * super().__len__()


_REFUSALS: dict[str, Callable[[], PartnerAnswer]] = {
    "critical_error": critical_error,
    "maintenance": maintenance,
    "too_many_requests": too_many_requests,
    "no_route": no_route,
}


def _object(answer: PartnerAnswer) -> PartnerAnswer:
    gaps = {str(2 * index): item for index, item in enumerate(answer.body)}
    return replace(answer, body=gaps)


def _half(answer: PartnerAnswer) -> bytes:
    content = answer.content()
    return content[: len(content) // 2]


def _cut_body(answer: PartnerAnswer) -> PartnerAnswer:
    return replace(answer, body=_CutBody(_half(answer)), headers={**answer.headers, "connection": "close"})


_SPOILED: dict[str, Callable[[PartnerAnswer], PartnerAnswer]] = {
    "late_critical_error": lambda _: critical_error(),
    "notice": lambda answer: PartnerAnswer(200, _NOTICE + answer.content(), _PAGE),
    "null": lambda answer: replace(answer, body=b"null"),
    "object": _object,
    "nulls": lambda answer: replace(answer, body=[None] * len(answer.body)),
    "cut_json": lambda answer: replace(answer, body=_half(answer)),
    "cut_body": _cut_body,
}


class Faulty:
    """A shop with planned faults; a `Partner` of `PartnerServer`."""

    def __init__(self, shop: Partner) -> None:
        self._shop, self.released = shop, threading.Event()
        self._planned: list[tuple[ShopFault, Callable[[PartnerRequest], bool]]] = []

    @property
    def effects(self) -> list[dict[str, Any]]:
        return self._shop.effects

    @effects.setter
    def effects(self, value: list[dict[str, Any]]) -> None:
        self._shop.effects = value

    def plan(self, fault: ShopFault, chosen: Callable[[PartnerRequest], bool] = lambda _: True, times: int = 1) -> None:
        """Let the next requests, *times* of those for which *chosen* is true, have a fault."""
        self._planned += [(fault, chosen)] * times

    def throttled(self) -> PartnerAnswer:
        return self._shop.throttled()

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        planned = next((each for each in self._planned if each[1](request)), None)
        if planned is None:
            return self._shop.answer(request)
        self._planned.remove(planned)
        if refused := _REFUSALS.get(planned[0]):
            return refused()
        return _SPOILED.get(planned[0], self._slow)(self._shop.answer(request))

    def _slow(self, answer: PartnerAnswer) -> PartnerAnswer:
        self.released.wait(_LONGEST_WAIT_S)
        return answer
