"""The result of an HTTP request: an answer or one of two failures. This module needs no HTTP library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from crossdock.errors import UnavailableError
from crossdock.values import exact_json

TOTAL_TIMEOUT_S, MAX_RESPONSE_BYTES = 60.0, 8 * 1024 * 1024


class NotSentError(UnavailableError):
    """The request was not sent completely, so it can be sent again safely."""

    code = "connection_failed"


class ExpiredError(NotSentError):
    """The time in which the request could be sent ended before its first byte."""

    code = "request_too_late"


class AmbiguousError(UnavailableError):
    """The request may or may not have been carried out."""

    code = "request_ambiguous"


class UnreadableError(AmbiguousError):
    """The answer cannot be read, and the same request would be answered alike."""

    code = "answer_unreadable"


class TooLargeError(UnreadableError):
    """The answer has more bytes than the limit."""

    code = "answer_too_large"


class TimedOutError(UnavailableError):
    """The server did not answer in time."""

    code = "api_unavailable"


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete response. Header names are in lower case, and lines of one name are joined by commas."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def redacted_answer(answer: Answer, redacted: Callable[[str], str]) -> Answer:
    """Apply *redacted* to the texts of *answer*, including those escaped in JSON strings (RFC 8259 section 7)."""
    headers = {name: redacted(value) for name, value in answer.headers.items()}
    body = answer.body
    with suppress(ValueError):  # not JSON, so nothing is escaped
        body = exact_json.dumps(exact_json.loads(body)) if b"\\" in body else body
    clean = redacted(body.decode("latin-1")).encode("latin-1")  # maps every byte; credentials are ASCII
    return replace(answer, headers=headers, body=clean)
