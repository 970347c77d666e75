"""Why an API refused a request, in words that may be shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from crossdock import exact_json
from crossdock.printable import printable

SHOWN = 300  # characters
_NAMES = ("detail", "title", "message", "error_description", "error", "errors")
_PERSONAL = re.compile(r"[^\s@]+@[^\s@]+|\+?\d(?:[\s()/.-]?\d){5,}")  # mail addresses, telephone and other numbers


def reason(body: bytes) -> str:
    """The message of an error answer, at most `SHOWN` characters; empty if it has none or is not JSON.

    Mail addresses and long numbers are masked. Credentials are not: the caller knows them.
    """
    try:
        document = exact_json.loads(body)
    except ValueError:
        return ""
    return message_of(document)


def message_of(document: Any) -> str:
    """As `reason`, for a document or the list of GraphQL errors."""
    text = "; ".join(dict.fromkeys(_messages(document, 3)))
    return _PERSONAL.sub("(personal)", printable(text))[:SHOWN]


def _messages(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if text := value.strip():
            yield text
    elif isinstance(value, list) and depth:
        for item in value[:3]:
            yield from _messages(item, depth - 1)
    elif isinstance(value, dict) and depth:
        for name in _NAMES:
            found = list(_messages(value.get(name), depth - 1))
            if found:
                yield from found
                return
