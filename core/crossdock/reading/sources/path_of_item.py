"""The path of a request about one record of a list."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from crossdock.values.json_paths import at_path, column_text

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_NO_SEGMENTS = frozenset({"", ".", ".."})  # RFC 3986, 5.2.4


def path_of_item(path: str, item: Any) -> str | None:
    """Return *path* with the members of *item* that it names in braces, percent-encoded.

    None if one is missing, or is neither a text nor a number, or no segment of a path.
    """
    texts = {name: _text_at(item, name) for name in _PLACEHOLDER.findall(path)}
    if not _NO_SEGMENTS.isdisjoint(texts.values()):
        return None
    return _PLACEHOLDER.sub(lambda place: quote(texts[place[1]], safe=""), path)


def _text_at(item: Any, name: str) -> str:
    value = at_path(item, name)
    return column_text(value) or "" if type(value) in {str, int, Decimal} else ""
