"""Sends a request until it is answered: paced, with a wait when the API throttles, again after a failure."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crossdock import exact_json
from crossdock.clock import Clock
from crossdock.errors import RefusedError, RemoteError, UnauthorizedError, UnavailableError
from crossdock.pacing.backoff import pause_s
from crossdock.pacing.rate_headers import retry_after_s
from crossdock.sources import api_errors
from crossdock.sources.api_request import ApiAnswer, ApiRequest
from crossdock.sources.source_allowance import SourceAllowance
from crossdock.transport.http_answers import Answer, TimedOutError

ATTEMPTS = 5
THROTTLED_AT_MOST_S = 1800.0  # for one request
BASE_PAUSE_S, MAX_PAUSE_S = 1.0, 60.0
_NOT_JSON = object()

Send = Callable[[ApiRequest], Answer]
Smaller = Callable[[ApiRequest], ApiRequest | None]


class ThrottledError(UnavailableError):
    """The rate limit refused a request for too long."""


class _ServerError(UnavailableError):
    """An answer of 500 or above; the server asks for a pause of *wait_s*."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"HTTP {answer.status}")
        self.wait_s = retry_after_s(answer.headers) or 0.0


@dataclass(frozen=True, slots=True)
class RetriedRequests:
    """Sends requests within an allowance.

    Attributes:
        throttled: Recognizes an answer by which the API limits the rate other than by 429.
        redacted: Removes credentials from a text of the server.
    """

    clock: Clock
    allowance: SourceAllowance
    throttled: Callable[[ApiAnswer], bool]
    redacted: Callable[[str], str]
    rng: random.Random

    def answer(
        self, request: ApiRequest, shown: str, send: Send, smaller: Smaller = lambda _: None
    ) -> tuple[ApiRequest, ApiAnswer]:
        """An answer of success, and the request that it answers.

        Args:
            shown: The address for errors.
            smaller: Returns the request to send instead after a time-out, if there is one.

        Raises:
            CrossdockError: As `crossdock.sources.api_client.ApiClient.request`.
        """
        failures = 0
        while True:
            try:
                return request, self._unthrottled(request, shown, send)
            except ThrottledError:
                raise
            except UnavailableError as error:
                lesser = smaller(request) if isinstance(error, TimedOutError) else None
                if lesser is not None:
                    request = lesser
                    continue
                failures += 1
                if failures == ATTEMPTS:
                    message = f"failed {ATTEMPTS} times; last error: {self.redacted(error.message)}"
                    raise UnavailableError(message, where=shown) from None
                self.clock.sleep(max(self._pause_s(failures), getattr(error, "wait_s", 0.0)))

    def _unthrottled(self, request: ApiRequest, shown: str, send: Send) -> ApiAnswer:
        """Send *request* until it is not throttled; that costs time, and no attempt."""
        refusals, until = 0, self.clock.monotonic() + THROTTLED_AT_MOST_S
        while True:
            token = self.allowance.take(request.graphql)
            answer = send(request)
            body = _json(answer)
            read = ApiAnswer(shown, None if body is _NOT_JSON else body, answer.status, answer.headers)
            throttled = answer.status == 429 or is_throttled_query(request, read) or self.throttled(read)
            self.allowance.answered(token, answer, throttled=throttled, query=request.graphql, body=read.body)
            if not throttled:
                self._check(answer, shown, is_json=body is not _NOT_JSON)
                return read
            refusals += 1
            if self.clock.monotonic() >= until:
                message = f"throttled {refusals} times in {THROTTLED_AT_MOST_S / 60:.0f} minutes"
                raise ThrottledError(message, where=shown)
            if refusals > 1:
                self.clock.sleep(self._pause_s(refusals - 1))

    def _check(self, answer: Answer, shown: str, *, is_json: bool) -> None:
        """Raise the error that *answer* stands for; none if it is a success."""
        status = answer.status
        if status in {408, 504}:
            raise TimedOutError(f"HTTP {status}")
        if status >= 500:
            raise _ServerError(answer)
        if not 200 <= status < 300:
            reason = api_errors.reason(answer.body, answer.headers.get("content-type", ""), self.redacted)
            suffix = f": {reason}" if reason else ""
            if status in {401, 403}:
                raise UnauthorizedError(f"refused the credentials (HTTP {status}){suffix}", where=shown)
            raise RemoteError(f"responded with HTTP {status}{suffix}", where=shown)
        if not is_json:
            raise RefusedError(_not_json(answer), where=shown)

    def _pause_s(self, failures: int) -> float:
        return pause_s(failures, base_s=BASE_PAUSE_S, cap_s=MAX_PAUSE_S, rng=self.rng)


def is_throttled_query(request: ApiRequest, answer: ApiAnswer) -> bool:
    """Whether the answer to a GraphQL query says that its cost is too high for the moment."""
    errors = answer.at("/errors") if request.graphql is not None else None
    found = [item for item in errors if isinstance(item, dict)] if isinstance(errors, list) else []
    codes = (item.get("extensions") for item in found)
    return any(isinstance(code, dict) and code.get("code") == "THROTTLED" for code in codes)


def _json(answer: Answer) -> Any:
    try:
        return exact_json.loads(answer.body) if answer.body else None
    except ValueError:
        return _NOT_JSON


def _not_json(answer: Answer) -> str:
    if "html" in answer.headers.get("content-type", ""):
        return "cannot be read as JSON: it is an HTML page, such as that of a log-in or a proxy"
    try:
        exact_json.loads(answer.body)
    except ValueError as error:
        return f"cannot be read as JSON: {error}"
    return "cannot be read as JSON"
