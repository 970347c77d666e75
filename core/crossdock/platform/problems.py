"""Reading error answers: problem documents (RFC 9457), and whatever else servers and gateways send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crossdock import wire
from crossdock.printable import printable

MAX_TEXT = 10_000
SHOWN = 300  # of it, once what must not be shown is masked


@dataclass(frozen=True, slots=True)
class Problem:
    """What an answer says went wrong; its texts are `crossdock.printable`.

    Attributes:
        kind: The problem type's address, ``about:blank`` without one.
        pointers: Where in the body, as JSON pointers; may be empty.
    """

    status: int
    kind: str
    message: str
    pointers: tuple[str, ...]


def read(status: int, body: bytes) -> Problem:
    """Read an error answer; members of a wrong type are ignored, as the RFC asks, and so is a body that is no JSON."""
    try:
        document = wire.loads(body)
    except ValueError:
        document = None
    members: dict[str, Any] = document if isinstance(document, dict) else {}
    errors = members.get("errors")
    found = [item for item in errors if isinstance(item, dict)] if isinstance(errors, list) else []
    details = [_text(item.get("detail")) for item in found]
    message = _text(members.get("detail")) or _text(members.get("title")) or f"HTTP {status}"
    if any(details):
        message = "; ".join(detail for detail in details if detail)
    pointers = tuple(pointer for item in found if (pointer := _text(item.get("pointer")).removeprefix("#")))
    return Problem(status, _text(members.get("type")) or "about:blank", message[:MAX_TEXT], pointers)


def _text(value: object) -> str:
    return printable(value) if isinstance(value, str) else ""
