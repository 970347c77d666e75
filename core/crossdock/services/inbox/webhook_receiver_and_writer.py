"""The HTTP server that receives webhooks, ``POST /webhooks/CONNECTION``, and the thread that stores them.

The answer is 200 once a webhook is stored; WooCommerce counts any other as a failure. A sender that gets 503 tries
again. With another status it need not. Webhooks that arrive together are stored in one transaction, with one flush to
the disk.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import queue
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import timedelta

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from crossdock.delta.fingerprint import key_hashes
from crossdock.errors import ConfigError, CrossdockError, StateError, as_crossdock_error, text_with_code
from crossdock.services.inbox.webhook_verification_and_parsing import WebhookEndpoint
from crossdock.state import ReceivedWebhook, State
from crossdock.state.tables.webhooks_and_records_to_fetch import REMOVED_AT_ONCE
from crossdock.values.clock import Clock
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

STORED_TOGETHER = 500  # webhooks in one transaction
STORED_TOGETHER_BYTES = 8 << 20  # of their records, besides the last one's
WEBHOOKS_KEPT = timedelta(days=14)  # longer than any sender sends copies
FORGET_EVERY_S = 600.0
QUEUED = 2_000  # further webhooks are refused, so that their senders try again
QUEUED_BYTES = 64 << 20  # of their records, besides the last one's
_RECORD_BYTES = 250  # of the objects for one record, besides its key
_LOGGER = logging.getLogger("crossdock.schedule")  # that of the service, whose module is above this one


class _QueuedWebhook:
    """A webhook until it is stored, or its sender has got another answer. *size* is an estimate in bytes."""

    __slots__ = ("received", "size", "stored")

    def __init__(self, received: ReceivedWebhook) -> None:
        self.received: ReceivedWebhook | None = received
        self.size = sum(_RECORD_BYTES + len(record.key) for record in received.records)
        self.stored = Future[None]()


class WebhookWriter:
    """A thread with its own state, which needs no lease: other processes may run meanwhile."""

    def __init__(
        self, open_state: Callable[[], State], clock: Clock, on_stored_records: Callable[[Collection[str]], None]
    ) -> None:
        self._open, self._clock, self._on_stored_records = open_state, clock, on_stored_records
        self._queue: queue.Queue[_QueuedWebhook | None] = queue.Queue(QUEUED)
        self._held, self._lock = 0, threading.Lock()  # bytes of the webhooks that wait
        self._state: State | None = None
        self._is_outdated = False  # the open state
        self._failing: dict[str, str] = {}  # what failed when it was last tried, with its error
        self._forgot_at: float | None = None
        self._thread = threading.Thread(target=self._store_batches_until_closed, name="webhooks", daemon=True)
        self._thread.start()

    def queue_for_storing(self, received: ReceivedWebhook) -> Future[None]:
        """Store *received*. The future is done once it is on the disk, or has an error.

        A webhook whose future is cancelled before its transaction begins is not stored.
        """
        waiting = _QueuedWebhook(received)
        with self._lock:
            is_full = self._held >= QUEUED_BYTES
            self._held += waiting.size
        waiting.stored.add_done_callback(lambda _: self._release_memory(waiting))
        try:
            if is_full:
                raise queue.Full
            self._queue.put_nowait(waiting)
        except queue.Full:
            waiting.stored.set_exception(StateError("too many webhooks wait to be stored", code="inbox_full"))
        return waiting.stored

    def _release_memory(self, waiting: _QueuedWebhook) -> None:
        waiting.received = None  # a cancelled one stays in the queue
        with self._lock:
            self._held -= waiting.size

    def replace_state(self, open_state: Callable[[], State]) -> None:
        self._open, self._is_outdated = open_state, True

    def store_queued_and_close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _store_batches_until_closed(self) -> None:
        goes_on = True
        while goes_on:
            together, goes_on = self._next_batch()
            if together:
                self._store_and_answer(together)
        self._call_and_log_new_error("the state is not closed", self._close_state)

    def _next_batch(self) -> tuple[list[_QueuedWebhook], bool]:
        """Return the waiting webhooks, as many as are stored together; False at the end."""
        first = self._queue.get()
        together = [] if first is None else [first]
        goes_on = first is not None
        with suppress(queue.Empty):
            while (
                goes_on
                and len(together) < STORED_TOGETHER
                and sum(each.size for each in together) < STORED_TOGETHER_BYTES
            ):
                item = self._queue.get_nowait()
                goes_on = item is not None
                together += [item] if item is not None else []
        return together, goes_on

    def _store_and_answer(self, waiting: list[_QueuedWebhook]) -> None:
        """Store webhooks, and answer their senders. What follows the answer changes it no more."""
        together = [each for each in waiting if each.stored.set_running_or_notify_cancel()]
        received = [each.received for each in together if each.received is not None]
        if not received:
            return
        error = self._call_and_log_new_error(
            "webhooks are not stored", lambda: self._store_in_one_transaction(received)
        )
        for each in together:
            if error is None:
                each.stored.set_result(None)
            else:
                each.stored.set_exception(error)
        if error is not None:
            return
        if streams := {record.stream for each in received for record in each.records}:
            self._call_and_log_new_error(
                "records of webhooks are delivered late", lambda: self._on_stored_records(streams)
            )
        self._call_and_log_new_error("old webhooks are not removed", self._remove_old_webhooks)

    def _call_and_log_new_error(self, failure_text: str, work: Callable[[], None]) -> CrossdockError | None:
        """Do *work* and return its error, which is logged if it is new: no defect may end the thread."""
        try:
            work()
        except Exception as failure:  # noqa: BLE001  the next attempt may succeed
            error = as_crossdock_error(failure)
            if self._failing.get(failure_text) != str(error):
                _LOGGER.error("%s: %s", failure_text, text_with_code(error))  # noqa: TRY400  a traceback may quote data
            self._failing[failure_text], self._is_outdated = str(error), True
            return error
        self._failing.pop(failure_text, None)
        return None

    def _store_in_one_transaction(self, received: list[ReceivedWebhook]) -> None:
        at = self._clock.now()
        hashes = key_hashes([record.key for each in received for record in each.records])
        self._open_state().run_transaction(lambda tx: tx.inbox.receive(received, hashes, at=at))

    def _remove_old_webhooks(self) -> None:
        """Remove webhooks so old that no copy can come any more, occasionally and a part at a time."""
        now = self._clock.monotonic()
        if self._forgot_at is None or now - self._forgot_at >= FORGET_EVERY_S:
            self._forgot_at = now  # also if it fails: to try after each webhook would delay the next ones
            before = self._clock.now() - WEBHOOKS_KEPT
            if self._open_state().run_transaction(lambda tx: tx.inbox.remove_old_webhooks(before)) >= REMOVED_AT_ONCE:
                self._forgot_at = None

    def _open_state(self) -> State:
        if self._is_outdated:
            self._is_outdated = False
            self._close_state()
        if self._state is None:
            self._state = self._open()
        return self._state

    def _close_state(self) -> None:
        state, self._state = self._state, None
        if state is not None:
            state.close()


WEBHOOK_PATH_PREFIX = "/webhooks/"
STORED_WITHIN_S = 4.0  # Shopify waits for 5 s: shopify.dev/docs/apps/build/webhooks/subscribe/https
RETRY_AFTER_S = 5
BODIES_AT_MOST = 64 << 20  # bytes of all bodies that are being read, not counting small ones
READ_AT_MOST = 64 << 20  # bytes of a body that is too large
_CLIENTS = ConnectionLimits(header_s=10.0, body_s=10.0, answer_s=10.0, connections=512)
_LIMITS = ServerLimits(clients=_CLIENTS, accepted_at_once=1024, queued=1024, stops_within_s=5)

_HINTS_BY_ERRNO = {
    errno.EADDRINUSE: "stop the process that listens there, or use another port",
    errno.EACCES: "use a port from 1024 on, behind a proxy",
}

OnRefusedWebhook = Callable[[str, str], None]
"""Called with the connection and the reason code of each refused webhook."""


class WebhookReceiver:
    def __init__(
        self, endpoints: Mapping[str, WebhookEndpoint], writer: WebhookWriter, refused: OnRefusedWebhook
    ) -> None:
        self._endpoints, self._writer, self._refused = endpoints, writer, refused
        self._bodies = BodyBudget(BODIES_AT_MOST)
        self.app = Starlette(routes=[Route(f"{WEBHOOK_PATH_PREFIX}{{connection}}", self._receive, methods=["POST"])])
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
                    await _read_body_or_raise_if_too_large(request, endpoint.max_body_bytes, held),
                    request.scope["headers"],
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


async def _read_body_or_raise_if_too_large(request: Request, most: int, held: HeldBody) -> bytes:
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


class RefusedWebhookCounts:
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
def serve_webhook_receiver_in_thread(receiver: WebhookReceiver, host: str, port: int) -> Iterator[str]:
    def refused(error: OSError) -> ConfigError:
        hint = _HINTS_BY_ERRNO.get(error.errno or 0, "name an address of this machine, such as 127.0.0.1 or 0.0.0.0")
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
