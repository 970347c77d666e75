"""Sends a request until it is answered: paced, with a wait when the API throttles, and again after a failure."""

from __future__ import annotations

import codecs
import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from crossdock.errors import RefusedError, RemoteError, UnauthorizedError, UnavailableError
from crossdock.pacing.answer_headers import Throttling, retry_after_s
from crossdock.pacing.backoff import jittered_backoff_pause_s
from crossdock.reading.sources import errors_in_api_answers
from crossdock.reading.sources.api_declaration import no_failure_status
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer, ApiRequest
from crossdock.reading.sources.api_token_buckets import RequestAllowanceOfRun
from crossdock.reading.transport.http_answers_and_errors import (
    Answer,
    TimedOutError,
    TooLargeError,
    UnreadableError,
)
from crossdock.values.clock import Clock
from crossdock.values.exact_json import loads_replacing_invalid_values
from crossdock.values.json_paths import value_at_path_or_missing

ATTEMPTS = 5
LESSENED_AT_MOST = 30  # times that a request is halved, or an author's paginator says that it is
THROTTLED_AT_MOST_S = 1800.0  # for one request
BASE_PAUSE_S, MAX_PAUSE_S = 1.0, 60.0
_SMALLER = "request fewer records at a time, or raise the limit: max_answer_bytes of the Api, for files max_file_bytes"
_CREDENTIALS = "check that they are still valid, and what they permit"
_NOT_FOUND = "check the base URL in the config, and the path of the request"
_REDIRECTED = "redirects are not followed, since they could lead to another host: use the new address in the config"

Send = Callable[[ApiRequest], Answer]
Smaller = Callable[[ApiRequest], ApiRequest | None]


class ThrottledError(UnavailableError):
    """The rate limit refused a request for too long."""

    code = "api_throttled"


class ForbiddenError(UnauthorizedError):
    """An answer of 403: what was asked for is not permitted, or some APIs do not say that it is not there."""

    code = "credential_refused"


class RequestRefusedError(RemoteError):
    """An answer of 400, 404, 410, 416 or 422: what was asked for is not there, or cannot be."""

    code = "answer_refused"


class NotFoundError(RequestRefusedError):
    """An answer of 404 or 410, or one that means the same.

    Attributes:
        code_in_answer: The member ``code`` of an answer in JSON, by which some APIs say what was not found.
    """

    code_in_answer: str | None = None


class _ServerError(UnavailableError):
    """An answer of 500 or above. The server asks for a pause of *wait_s*."""

    code = "api_unavailable"

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"HTTP {answer.status}")
        self.wait_s = retry_after_s(answer.headers) or 0.0


class RetryingRequestSender(Struct, frozen=True):
    """Sends requests within an allowance.

    Attributes:
        throttling: Returns what an answer says by which the API limits the rate other than by 429; None for others.
        redacted: Removes credentials from a text of the server.
        failed: Returns the status that an answer of success stands for if the request failed.
    """

    clock: Clock
    allowance: RequestAllowanceOfRun
    throttling: Callable[[ApiAnswer], Throttling | None]
    redacted: Callable[[str], str]
    rng: random.Random
    failed: Callable[[ApiAnswer], int | None] = no_failure_status

    def send_until_answered(
        self, request: ApiRequest, shown: str, send: Send, smaller: Smaller = lambda _: None
    ) -> tuple[ApiRequest, ApiAnswer]:
        """Return a successful answer, and the request that it answers.

        Args:
            shown: The address for errors.
            smaller: Returns the request to send instead after a time-out, if there is one.

        Raises:
            CrossdockError: As `crossdock.reading.sources.paginated_api_client.ApiClient.request`.
        """
        failures = lessened = 0
        while True:
            try:
                return request, self._send_until_not_throttled(request, shown, send)
            except ThrottledError:
                raise
            except UnreadableError as error:
                hint = _SMALLER if isinstance(error, TooLargeError) else None
                raise RefusedError(error.message, where=shown, hint=hint, code=error.code) from None
            except UnavailableError as error:
                lesser = smaller(request) if isinstance(error, TimedOutError) and lessened < LESSENED_AT_MOST else None
                if lesser is not None:
                    request, lessened = lesser, lessened + 1
                    continue
                failures += 1
                if failures == ATTEMPTS:
                    message = f"failed {ATTEMPTS} times; last error: {self.redacted(error.message)}"
                    raise UnavailableError(message, where=shown, code="api_unavailable") from None
                self.clock.sleep(max(self._pause_s(failures), getattr(error, "wait_s", 0.0)))

    def _send_until_not_throttled(self, request: ApiRequest, shown: str, send: Send) -> ApiAnswer:
        """Send *request* until it is not throttled. That costs time, but no attempt."""
        refusals, until = 0, self.clock.monotonic() + THROTTLED_AT_MOST_S
        while True:
            sent = self.allowance.wait_for_token(request.graphql)
            try:
                answer = send(request)
                body, unreadable = parsed_json_and_unreadable_reason(answer)
                read = ApiAnswer(shown, body, answer.status, answer.headers)
                stands_for = self._failure_status_in_success(read, unreadable)
                answer = answer if stands_for is None else replace(answer, status=stands_for)
                throttling = self.throttling(read)
                if throttling is None and (
                    answer.status == 429 or errors_in_api_answers.is_graphql_query_throttled(request, read)
                ):
                    throttling = Throttling()
            except BaseException:
                self.allowance.record_unanswered_request(sent)
                raise
            wait_s = None if throttling is None else throttling.wait_s
            self.allowance.record_answer(sent, answer, throttled=throttling is not None, wait_s=wait_s, body=read.body)
            if throttling is None:
                if answer.status in request.ends:
                    return read
                self._raise_if_status_is_error(answer, shown, unreadable, body, read.status)
                if errors_in_api_answers.is_graphql_internal_error(request, read):
                    said = errors_in_api_answers.redacted_error_message_in_json(read.at("/errors"), self.redacted)
                    raise UnavailableError(
                        f"a GraphQL query failed with an internal error{said and f': {said}'}", code="graphql_failed"
                    )
                return read
            refusals += 1
            if self.clock.monotonic() >= until:
                message = f"throttled {refusals} times in {THROTTLED_AT_MOST_S / 60:.0f} minutes"
                raise ThrottledError(message, where=shown)
            if refusals > 1:
                self.clock.sleep(self._pause_s(refusals - 1))

    def _failure_status_in_success(self, read: ApiAnswer, unreadable: str) -> int | None:
        is_read = 200 <= read.status < 300 and not unreadable and read.body is not None
        return self.failed(read) if is_read else None

    def _raise_if_status_is_error(self, answer: Answer, shown: str, unreadable: str, body: Any, answered: int) -> None:
        """Raise the error for the status of *answer*, which was *answered* or is the one that it stands for."""
        status = answer.status
        said = f"HTTP {status}" if answered == status else f"HTTP {answered}, which means {status} here"
        if status in {408, 504}:
            raise TimedOutError(f"HTTP {status}")
        if status >= 500 and not is_permanent_server_failure(status, body):
            raise _ServerError(answer)
        if not 200 <= status < 300:
            reason = errors_in_api_answers.redacted_error_message_of_body(
                answer.body, answer.headers.get("content-type", ""), self.redacted
            )
            suffix = f": {reason}" if reason else ""
            if status in {401, 403}:
                kind = ForbiddenError if status == 403 else UnauthorizedError
                message = f"refused the credentials ({said}){suffix}"
                raise kind(message, where=shown, hint=_CREDENTIALS, code="credential_refused")
            if 300 <= status < 400 and (target := _shown_redirect_target(answer)):
                message = f"redirects to {self.redacted(target)} (HTTP {status})"
                raise RemoteError(message, where=shown, hint=_REDIRECTED, code="redirect_refused")
            is_refused = status in {400, 416, 422} and answered == status
            other = NotFoundError if status in {404, 410} else RequestRefusedError if is_refused else RemoteError
            hint = _NOT_FOUND if status in {404, 410} else None
            error = other(f"responded with {said}{suffix}", where=shown, hint=hint)
            if isinstance(error, NotFoundError):
                code = value_at_path_or_missing(body, "code")
                error.code_in_answer = code if isinstance(code, str) else None
            raise error
        if status == 206:
            raise RefusedError("is only a part of the answer (HTTP 206)", where=shown, code="answer_unreadable")
        if unreadable:
            raise RefusedError(unreadable, where=shown, code="answer_unreadable")

    def _pause_s(self, failures: int) -> float:
        return jittered_backoff_pause_s(failures, base_s=BASE_PAUSE_S, cap_s=MAX_PAUSE_S, rng=self.rng)


def _shown_redirect_target(answer: Answer) -> str:
    """Return the scheme and host of a redirect, since the rest may contain a secret."""
    try:
        parts = urlsplit(answer.headers.get("location", ""))
        host = f"{parts.scheme or 'https'}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        return ""
    if parts.hostname:
        return host
    return "another path of the same host" if parts.path else ""


_CHARSET = re.compile(r"charset\s*=\s*\"?([A-Za-z0-9._-]{1,40})", re.IGNORECASE)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NOT_JSON = "cannot be read as JSON: "


def parsed_json_and_unreadable_reason(answer: Answer) -> tuple[Any, str]:
    """Return the value, or None for an empty body, and the reason why it cannot be read, or an empty text.

    A byte order mark is ignored, as RFC 8259 section 8.1 permits. The reason quotes nothing of the body.
    """
    try:
        body = answer.body.removeprefix(codecs.BOM_UTF8)
        return (loads_replacing_invalid_values(body) if answer.body else None), ""
    except ValueError as error:
        return None, _NOT_JSON + _reason_not_json(answer, error)


def _reason_not_json(answer: Answer, error: ValueError) -> str:
    start, kind = answer.body[:100].lstrip().lower(), answer.headers.get("content-type", "").lower()
    if "html" in kind or start.startswith((b"<!doctype html", b"<html")):
        return "it is an HTML page, such as that of a log-in or a proxy"
    if start.startswith(b"<"):
        return "it is XML; the API may have another address or parameter for JSON"
    if start.startswith(_UTF_16) or b"\0" in start[:4]:
        return "it is UTF-16, and JSON must be UTF-8 (RFC 8259)"
    if isinstance(error, UnicodeDecodeError):
        declared = _foreign_charset_note(kind)
        return f"byte {error.start + 1:,} is not UTF-8, which JSON must be (RFC 8259){declared}"
    return str(error)


def _foreign_charset_note(content_type: str) -> str:
    """Return the charset of a content type if it is a known one other than UTF-8. Other texts could contain a
    secret.
    """
    found = _CHARSET.search(content_type)
    try:
        name = codecs.lookup(found[1]).name if found else "utf-8"
    except LookupError:
        return ""
    return "" if name == "utf-8" else f"; its content type declares {name}"


_PERMANENT = frozenset({-32700, -32600, -32601, -32602})
"""Codes of JSON-RPC 2.0, section 5.1: not JSON, no request, no such method, wrong parameters."""


_WRONG_QUERY = frozenset({
    "BAD_REQUEST", "BAD_USER_INPUT", "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED",
    "OPERATION_RESOLUTION_FAILURE",
})  # fmt: skip
"""Codes of GraphQL servers for a query that they do not execute."""


_NOT_IMPLEMENTED = frozenset({501, 505})


def is_permanent_server_failure(status: int, body: Any) -> bool:
    """Return whether an answer of 500 or above, or its body, says that another attempt would fail, too."""
    if status in _NOT_IMPLEMENTED:
        return True
    if not isinstance(body, dict):
        return False
    error, errors = body.get("error"), body.get("errors")
    if isinstance(error, dict) and error.get("code") in _PERMANENT:
        return True
    codes = [each.get("extensions") for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
    return bool(codes) and all(isinstance(each, dict) and each.get("code") in _WRONG_QUERY for each in codes)
