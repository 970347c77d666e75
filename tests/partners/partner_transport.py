"""A fake of a partner in place of the network, in this process."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs

import httpx
from tests.partners.partner_server import Partner, PartnerRequest


def transport(partner: Partner, loses: Callable[[PartnerRequest], bool] = lambda _: False) -> httpx.MockTransport:
    """Answers every request, whatever its host, as *partner* does.

    Args:
        loses: Requests that are carried out, and whose answers are lost.
    """

    def answer(request: httpx.Request) -> httpx.Response:
        params = parse_qs(request.url.query.decode(), keep_blank_values=True)
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = PartnerRequest(request.method, request.url.path, params, headers, request.read())
        given = partner.answer(asked)
        if loses(asked):
            raise httpx.ReadError("the answer was lost", request=request)
        named = {"content-type": "application/json", **given.headers}
        return httpx.Response(given.status, headers=named, content=given.content())

    return httpx.MockTransport(answer)
