"""A transport for tests of HTTP connectors that answers some requests with a fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import httpx

_HTML = "<html><body>Maintenance</body></html>"

FAULTS: dict[str, Callable[[httpx.Response], httpx.Response | None]] = {
    "429": lambda _: httpx.Response(429, headers={"retry-after": "2"}),
    "500": lambda _: httpx.Response(500, text="internal error"),
    "503": lambda _: httpx.Response(503),
    "401": lambda _: httpx.Response(401, json={"error": "the token has expired"}),
    "403": lambda _: httpx.Response(403, json={"error": "missing scope"}),
    "404": lambda _: httpx.Response(404),
    "302": lambda _: httpx.Response(302, headers={"location": "https://other.example/"}),
    "HTML": lambda _: httpx.Response(200, html=_HTML),
    "malformed JSON": lambda answer: httpx.Response(
        200, content=answer.content[:-1], headers=_paging_and_retry_headers(answer)
    ),
    "an empty body": lambda answer: httpx.Response(200, headers=_paging_and_retry_headers(answer)),
    "null": lambda answer: httpx.Response(200, text="null", headers=_paging_and_retry_headers(answer)),
    "another charset": lambda answer: httpx.Response(
        200, content=b'{"\xff": "\xe9"}', headers=_paging_and_retry_headers(answer)
    ),
    "a broken connection": lambda _: None,
}
"""The replacements of a proper answer, by name; None for a connection that breaks."""


def transport_with_faults(
    transport: httpx.BaseTransport, fault: str, first: int, times: int | None, echoed: Sequence[str] = ()
) -> httpx.BaseTransport:
    """Answer the requests to *transport* from number *first* (from 0) on with *fault*.

    Args:
        times: The number of such answers; None for all.
        echoed: Texts that answers of 400 and above repeat, as systems do with credentials.
    """
    seen = 0

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal seen
        number, seen = seen, seen + 1
        if number < first or (times is not None and number >= first + times):
            return transport.handle_request(request)
        made = FAULTS[fault](transport.handle_request(request))
        if made is None:
            raise httpx.RemoteProtocolError(f"broken {' '.join(echoed)}", request=request)
        if made.status_code >= 400 and echoed:
            return httpx.Response(
                made.status_code, headers=_paging_and_retry_headers(made), json={"detail": list(echoed)}
            )
        return made

    return httpx.MockTransport(answer)


def _paging_and_retry_headers(answer: httpx.Response) -> dict[str, str]:
    return {name: answer.headers[name] for name in ("link", "retry-after") if name in answer.headers}
