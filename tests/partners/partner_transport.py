"""A fake of a partner in place of the network, in this process."""

from __future__ import annotations

from urllib.parse import parse_qs

import httpx
from tests.partners.partner_server import Partner, PartnerRequest


def transport(partner: Partner) -> httpx.MockTransport:
    """Answers every request, whatever its host, as *partner* does."""

    def answer(request: httpx.Request) -> httpx.Response:
        params = parse_qs(request.url.query.decode(), keep_blank_values=True)
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = PartnerRequest(request.method, request.url.path, params, headers, request.read())
        given = partner.answer(asked)
        named = {"content-type": "application/json", **given.headers}
        return httpx.Response(given.status, headers=named, content=given.content())

    return httpx.MockTransport(answer)
