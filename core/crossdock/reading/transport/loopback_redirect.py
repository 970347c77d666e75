"""The page on this machine to which a vendor sends the browser of the person who gave access (RFC 8252 section 7.3)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from crossdock.errors import ConfigError
from crossdock.values.serving import AllowedHostNames, ConnectionLimits, ServerLimits, problem_response, serve_in_thread
from crossdock.values.web_address_checks import is_loopback

PATH = "/callback"
_CLIENTS = ConnectionLimits(header_s=5.0, body_s=5.0, answer_s=5.0, connections=8)
_LIMITS = ServerLimits(clients=_CLIENTS, accepted_at_once=8, queued=16, stops_within_s=2)
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def is_loopback_redirect(redirect_url: str) -> bool:
    """Return whether the browser's answer can be taken here, rather than by a person who copies the address."""
    parts = urlsplit(redirect_url)
    return parts.scheme == "http" and is_loopback(parts.hostname or "")


class LoopbackRedirect:
    """Waits in `has_arrived_within` for an answer that *take* accepts. Other requests get a page and change nothing."""

    def __init__(self, redirect_url: str, path: str) -> None:
        self.url, self._path = redirect_url, path
        self.take: Callable[[str], bool] = lambda _: False
        self._taken, self._names = threading.Event(), AllowedHostNames((), "crossdock connect")

    def has_arrived_within(self, within_s: float) -> bool:
        """Return whether an answer came within so many seconds."""
        return self._taken.wait(within_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._response(scope)(scope, receive, send)

    def _response(self, scope: Scope) -> Response:
        if self._names.refusal_reason(scope):
            return problem_response(403, "Host or Origin is another site.")
        if (scope["method"], scope["path"]) != ("GET", self._path):
            return problem_response(404, "There is nothing here.")
        if self._taken.is_set():
            return _page(409, "An answer has arrived before. Only the first one counts.")
        if not self.take(scope["query_string"].decode("latin-1")):
            return _page(400, "This is not the answer that crossdock waits for. Open the address that it shows.")
        self._taken.set()
        return _page(200, "The answer has arrived. crossdock says in the terminal whether the connection works now.")


@contextmanager
def listening_for_redirect(redirect_url: str | None = None) -> Iterator[LoopbackRedirect]:
    """Listen at the port and the path of *redirect_url*, by default at a free port."""
    parts = urlsplit(redirect_url or f"http://127.0.0.1:0{PATH}")
    served, port = LoopbackRedirect(redirect_url or "", parts.path or "/"), parts.port or (80 if redirect_url else 0)
    host = "::1" if parts.hostname == "::1" else "127.0.0.1"

    def refused(error: OSError) -> ConfigError:
        hint = "stop the process that listens there, or use another redirect_url that the vendor knows"
        return ConfigError(
            f"cannot wait for the browser: {error.strerror}", where=f"{host}:{port}", hint=hint, code="port_unavailable"
        )

    with serve_in_thread(served, _LIMITS, host, port, name="connect", address_error=refused) as base_url:
        served.url = redirect_url or f"{base_url}{PATH}"
        yield served


def _page(status: int, text: str) -> Response:
    page = f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>crossdock</title><p>{text}</p></html>"
    return HTMLResponse(page, status, _HEADERS)
