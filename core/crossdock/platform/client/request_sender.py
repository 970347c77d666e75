"""Sends one request and repeats it, with the same bytes and the same idempotency key, until it is answered."""

from __future__ import annotations

import random
import uuid
from typing import Any

import httpx
from msgspec import Struct, field

from crossdock.errors import RemoteError, UnavailableError
from crossdock.pacing.backoff import pause_s
from crossdock.pacing.rate_limit_headers import retry_after_s
from crossdock.platform.client.refused_request_errors import ProblemError
from crossdock.reading.transport.connector_http_client import httpx_errors_as_unavailable
from crossdock.reading.transport.http_answer_and_error_types import UnreadableError
from crossdock.values import exact_json
from crossdock.values.clock import Clock

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 60.0


class RequestSender(Struct, frozen=True):
    """An HTTP client with the rules for idempotency keys and retries. *attempts* include the first."""

    http: httpx.Client
    key_header: str | None
    attempts: int
    clock: Clock
    rng: random.Random = field(default_factory=random.Random)

    def read(self, path: str, query: dict[str, str] | None = None) -> Any:
        """Send a GET request and return its JSON. Errors are as in `write`."""
        return self._json_in(self._send_with_retries(self.http.build_request("GET", path, params=query), None))

    def write(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        """Send a request under *key*, by default a new one, and return the JSON of the answer; None without a body.

        Raises:
            ProblemError: The platform refused the request, or all attempts.
            UnavailableError: No attempt was answered. The request may have been executed.
            RemoteError: The answer is not JSON. The request was executed.
            ValueError: If *key* is not 1 to 255 printable ASCII characters without quotation marks and backslashes.
            UnauthorizedError: If no access token is granted.
        """
        key = (str(uuid.uuid4()) if key is None else _checked_key(key)) if self.key_header else None
        patch = "application/merge-patch+json" if method == "PATCH" else "application/json"
        content = None if body is None else exact_json.dumps(body)
        headers = {"content-type": patch} if content is not None else {}
        if self.key_header and key:
            headers[self.key_header] = f'"{key}"'
        return self._json_in(
            self._send_with_retries(self.http.build_request(method, path, content=content, headers=headers), key)
        )

    def _send_with_retries(self, request: httpx.Request, key: str | None) -> httpx.Response:
        where = f"{request.method} {request.url.path}"
        repeatable = request.method == "GET" or key is not None
        hint = f"Repeat it with idempotency_key={key!r}: it may have been carried out." if key else None
        for attempt in range(1, self.attempts + 1):
            pause = pause_s(attempt, base_s=_FIRST_PAUSE_S, cap_s=_LONGEST_PAUSE_S, rng=self.rng)
            try:
                with httpx_errors_as_unavailable():
                    response = self.http.send(request)
            except UnavailableError as error:
                if attempt == self.attempts or not repeatable or isinstance(error, UnreadableError):
                    raise UnavailableError(error.message, where=where, hint=hint, code=error.code) from None
            else:
                if response.is_success:
                    return response
                asked = retry_after_s({name.lower(): value for name, value in response.headers.items()})
                if attempt == self.attempts or not _may_succeed_later(response.status_code, asked, repeatable):
                    unknown = hint if response.status_code >= 500 else None
                    raise ProblemError(response.status_code, response.content, where=where, hint=unknown)
                pause += asked or 0.0
            self.clock.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")

    @staticmethod
    def _json_in(response: httpx.Response) -> Any:
        if not response.content:
            return None
        try:
            return exact_json.loads(response.content)
        except ValueError as error:
            where = f"{response.request.method} {response.request.url.path}"
            raise RemoteError(f"the answer is not JSON: {error}", where=where, code="answer_unreadable") from None


def _may_succeed_later(status: int, asked_s: float | None, repeatable: bool) -> bool:
    """Return whether an answer is a reason to repeat a request.

    429 means that nothing happened. 503 may follow an effect, and 409 with Retry-After says that the first attempt is
    still in progress, so that only the same key makes it safe to repeat them.
    """
    return status == 429 or (repeatable and (status == 503 or (status == 409 and asked_s is not None)))


def _checked_key(key: str) -> str:
    if not (1 <= len(key) <= 255 and key.isascii() and key.isprintable() and not {'"', "\\"} & set(key)):
        raise ValueError(
            "an idempotency key is 1 to 255 printable ASCII characters without quotation mark and backslash"
        )
    return key
