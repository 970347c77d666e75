"""Record keys as text."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, unquote

from crossdock.printable import BLANKS

MAX_KEY_BYTES = 1_000
"""The limit for each part of a key, in UTF-8: twice the limit of the platform's externalId."""


def key_text(parts: Sequence[str]) -> str:
    """Return the text form of a record key: each part percent-encoded (RFC 3986 unreserved stay), joined by ``|``."""
    return "|".join(quote(part, safe="") for part in parts)


def key_parts_of(key: str) -> tuple[str, ...]:
    """Return the columns of a record key that is given as one text."""
    return tuple(unquote(part) for part in key.split("|"))


def key_text_of_input(key: str) -> str:
    """Return the text form of a key that a person gives in this form, or as its only column is in the source."""
    return key if key_text(key_parts_of(key)) == key else key_text([key])


def trimmed_key(key: str) -> str:
    """Remove white space around the parts of a record key in its text form."""
    return key_text([part.strip(BLANKS) for part in key_parts_of(key)]) if "%" in key else key
