"""The result of an HTTP request: an answer or one of two failures; problem documents (RFC 9457) and other bodies of
error answers; and refusals of credentials, which are remembered. This module needs no HTTP library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from msgspec import Struct

from crossdock.errors import UnauthorizedError, UnavailableError, strip_traceback_and_causes
from crossdock.printable import printable
from crossdock.values import exact_json
from crossdock.values.clock import Clock

REFUSED_FOR_S = 900.0
"""Long enough that a process that reads each minute does not lock the user out, short enough to recover by itself."""


class RefusedCredentials:
    """The last refusal of the credentials of one connection, for all that use the connection in this process."""

    def __init__(self) -> None:
        self._kept: tuple[str, float, UnauthorizedError] | None = None

    def raise_if_refused(self, credential: str, clock: Clock) -> None:
        """Raise the refusal of *credential*, if it was refused shortly before."""
        kept = self._kept
        if kept is not None and kept[0] == credential and clock.monotonic() < kept[1]:
            raise strip_traceback_and_causes(kept[2])

    @contextmanager
    def remembering_refusal(self, credential: str, clock: Clock) -> Iterator[None]:
        """Keep an UnauthorizedError of the block, which judges the answer to *credential*."""
        try:
            yield
        except UnauthorizedError as error:
            self._kept = credential, clock.monotonic() + REFUSED_FOR_S, error
            raise


MAX_TEXT = 10_000  # characters of a message or a type; RFC 9457 sets no bound
MAX_ERRORS = 100
MAX_POINTER = 300  # characters; stored with each rejected record
SHOWN = 300  # characters of a message, after masking


class Problem(Struct, frozen=True):
    """The problem that an answer describes, in printable texts of limited length. `pointers` are JSON pointers."""

    status: int
    kind: str
    message: str
    pointers: tuple[str, ...]


def parse_error_answer(status: int, body: bytes) -> Problem:
    """Read an error answer. Members of a wrong type are ignored, as the RFC requires, and so is a body without JSON.

    Only the first `MAX_ERRORS` errors are read. Longer pointers are truncated: their beginning names the member.
    """
    try:
        document = exact_json.loads(body)
    except ValueError:
        document = None
    members: dict[str, Any] = document if isinstance(document, dict) else {}
    errors = members.get("errors") or members.get("o:errorDetails")  # the second one is Oracle's
    found = [item for item in errors[:MAX_ERRORS] if isinstance(item, dict)] if isinstance(errors, list) else []
    details = [_printable_text(item.get("detail")) for item in found]
    message = _printable_text(members.get("detail")) or _printable_text(members.get("title")) or f"HTTP {status}"
    if any(details):
        message = "; ".join(detail for detail in details if detail)
    named = (_printable_text(item.get("pointer")).removeprefix("#") for item in found)
    pointers = tuple(pointer[:MAX_POINTER] for pointer in named if pointer)
    return Problem(status, _printable_text(members.get("type")) or "about:blank", message[:MAX_TEXT], pointers)


def _printable_text(value: object) -> str:
    return printable(value[:MAX_TEXT]) if isinstance(value, str) else ""


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
