"""The HTTP server that receives webhooks: ``POST /webhooks/CONNECTION``.

The answer is 200 once a webhook is stored; WooCommerce counts any other as a failure. A sender that gets 503 tries
again. With another status it need not.
"""

from __future__ import annotations

import asyncio
import errno
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from crossdock.errors import ConfigError, CrossdockError
from crossdock.services.inbox.webhook_verification_and_parsing import WebhookEndpoint
from crossdock.services.inbox.webhook_writer import WebhookWriter
from crossdock.state import ReceivedWebhook, State
from crossdock.values.serving import (
    BodyBudget,
    ConnectionLimits,
    HeldBody,
    OverBudgetError,
    ServerLimits,
    problem_response,
    serve_in_thread,
)
from crossdock.webhooks import WebhookError

PATH = "/webhooks/"
STORED_WITHIN_S = 4.0  # Shopify waits for 5 s: shopify.dev/docs/apps/build/webhooks/subscribe/https
RETRY_AFTER_S = 5
BODIES_AT_MOST = 64 << 20  # bytes of all bodies that are being read, not counting small ones
READ_AT_MOST = 64 << 20  # bytes of a body that is too large
_CLIENTS = ConnectionLimits(header_s=10.0, body_s=10.0, answer_s=10.0, connections=512)
_LIMITS = ServerLimits(clients=_CLIENTS, accepted_at_once=1024, queued=1024, stops_within_s=5)

_HINTS = {
    errno.EADDRINUSE: "stop the process that listens there, or use another port",
    errno.EACCES: "use a port from 1024 on, behind a proxy",
}

Refused = Callable[[str, str], None]
"""Called with the connection and the reason code of each refused webhook."""


class Receiver:
    def __init__(self, endpoints: Mapping[str, WebhookEndpoint], writer: WebhookWriter, refused: Refused) -> None:
        self._endpoints, self._writer, self._refused = endpoints, writer, refused
        self._bodies = BodyBudget(BODIES_AT_MOST)
        self.app = Starlette(routes=[Route(f"{PATH}{{connection}}", self._receive, methods=["POST"])])
        self.app.router.redirect_slashes = False

    def replace_endpoints_and_state(
        self, endpoints: Mapping[str, WebhookEndpoint], open_state: Callable[[], State]
    ) -> None:
        self._endpoints = endpoints
        self._writer.replace_state(open_state)

    def count_non_http_request(self) -> None:
        self._refused("", "not_http")

    async def _receive(self, request: Request) -> Response:
        name = request.path_params["connection"]
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            self._refused("", "unknown_connection")
            return problem_response(404, "No connection of this name receives webhooks.")
        try:
            with self._bodies.hold_body() as held:  # no variable keeps the body while its records are being stored
                received = endpoint.verify_and_read(
                    await _read_body(request, endpoint.max_body_bytes, held), request.scope["headers"]
                )
        except WebhookError as error:
            self._refused(name, error.reason)
            headers = {"connection": "close"} if error.reason == "too_large" else None
            return problem_response(error.status, f"{error.message[:1].upper()}{error.message[1:]}.", headers=headers)
        except OverBudgetError:
            self._refused(name, "too_much_at_once")
            detail = "Too many large webhooks arrive at once. Send it again."
            return problem_response(503, detail, headers={"retry-after": str(RETRY_AFTER_S), "connection": "close"})
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        return Response() if received is None else await self._store_and_respond(name, received)

    async def _store_and_respond(self, name: str, received: ReceivedWebhook) -> Response:
        try:  # a webhook that is late is given up, unless it is being stored at this moment
            await asyncio.wait_for(asyncio.wrap_future(self._writer.queue_for_storing(received)), STORED_WITHIN_S)
        except (CrossdockError, TimeoutError):
            self._refused(name, "not_stored")
            detail = "The webhook could not be stored now. Send it again."
            return problem_response(503, detail, headers={"retry-after": str(RETRY_AFTER_S)})
        if received.problem is not None:
            self._refused(name, "unreadable")
        return Response()


async def _read_body(request: Request, most: int, held: HeldBody) -> bytes:
    """Read the body, or raise WebhookError if it is larger than *most* bytes.

    Up to `READ_AT_MOST` bytes of it are read and dropped: a sender whose connection is closed while it sends may not
    see the answer.
    """
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size <= most:
            held.add_bytes(len(part))
            parts.append(part)
        elif size > READ_AT_MOST:
            break
    if size > most:
        raise WebhookError("too_large", f"the body has more than {most:,} bytes")
    return b"".join(parts)


class RefusedCounts:
    """Counts refused webhooks by connection and reason, because a forger must not fill the log. Thread-safe."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def __call__(self, connection: str, reason: str) -> None:
        with self._lock:
            self._counts[connection, reason] += 1

    def pop_counts(self) -> Mapping[tuple[str, str], int]:
        """Return the counts since the last call."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return counts


@contextmanager
def serve(receiver: Receiver, host: str, port: int) -> Iterator[str]:
    def refused(error: OSError) -> ConfigError:
        hint = _HINTS.get(error.errno or 0, "name an address of this machine, such as 127.0.0.1 or 0.0.0.0")
        reason = (error.strerror or type(error).__name__).partition(" (while ")[0]  # which repeats the address
        return ConfigError(f"cannot listen: {reason}", where=f"{host}:{port}", hint=hint, code="port_unavailable")

    with serve_in_thread(
        receiver.app,
        _LIMITS,
        host,
        port,
        name="receiver",
        address_error=refused,
        malformed=receiver.count_non_http_request,
    ) as base_url:
        yield base_url
