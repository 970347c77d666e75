"""Parsing of error answers: problem documents (RFC 9457), and other bodies of servers and gateways."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from crossdock.printable import printable
from crossdock.values import exact_json

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


def read(status: int, body: bytes) -> Problem:
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
