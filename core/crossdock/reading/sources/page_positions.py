"""Distinguishes lists that are paged by position from those paged by record, by the links of the API.

Records can be missed if a list that is paged by position changes while it is read. A position is ``?page=2``, or a
cursor that stands for the number of records before the page.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from crossdock.reading.sources.api_request import ApiRequest

_PAGE = re.compile(r"page(_?(no|num|number|index))?|p|pg", re.IGNORECASE)
_COUNTS = frozenset({0, 1})  # a cursor is the number of records before the page, or of the last of them
_SIZE = re.compile("limit|size|per_?page|count|first|top|take|rows|max", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]+")
_LONGEST = 200  # characters of an examined value


@dataclass
class _Parameter:
    """A parameter of the requests so far.

    Attributes:
        last: Its number in the last request.
        counts: The differences between the number of records read and its value, as far as they are 0 or 1.
        ascends: Whether each number was one more than the one before.
        requests: In how many requests it was.
    """

    last: int
    counts: frozenset[int]
    ascends: bool = True
    requests: int = 1

    def followed_by(self, number: int, read: int) -> _Parameter:
        ascends = self.ascends and number == self.last + 1
        return _Parameter(number, self.counts & {read - number}, ascends, self.requests + 1)


class PagePositions:
    def __init__(self) -> None:
        self._known: dict[str, _Parameter] | None = None

    def are_counted(self, following: ApiRequest, read: int) -> bool:
        """Return whether the list is paged by position, as far as the requests so far show.

        Args:
            read: The number of records before it.
        """
        found = dict(_numbers(following))
        if self._known is None:
            self._known = {name: _Parameter(each, _COUNTS & {read - each}) for name, each in found.items()}
        else:
            known = self._known.items()
            self._known = {name: each.followed_by(found[name], read) for name, each in known if name in found}
        return any(_is_position(name, each) for name, each in self._known.items())


def _is_position(name: str, found: _Parameter) -> bool:
    if found.requests > 1:
        return bool(found.counts) or found.ascends
    is_page = found.last in {1, 2} and _PAGE.fullmatch(name) is not None
    return is_page or (bool(found.counts) and _SIZE.search(name) is None)


def _numbers(request: ApiRequest) -> Iterator[tuple[str, int]]:
    """Yield the parameters of *request* that are numbers, or have a number in a cursor."""
    params = [
        *parse_qsl(urlsplit(request.path).query),
        *((name, str(value)) for name, value in request.page_params.items()),
    ]
    for name, value in params:
        if value.isascii() and value.isdigit() and len(value) <= _LONGEST:
            yield name, int(value)
        elif len(numbers := _NUMBER.findall(_decoded(value))) == 1:
            yield name, int(numbers[0])


def _decoded(cursor: str) -> str:
    """Return the text that *cursor* has in Base64, such as ``arrayconnection:9``, or an empty text."""
    try:
        text = base64.b64decode(cursor.replace("-", "+").replace("_", "/") + "==", validate=False).decode("ascii")
    except (binascii.Error, ValueError):
        return ""
    return text if text.isprintable() and len(text) <= _LONGEST else ""
