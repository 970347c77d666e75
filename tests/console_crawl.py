"""The pages of a console, found by following links; of each kind, by address and parameters, some."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urldefrag, urljoin, urlsplit

from tests.plain_browser import Browser, Page
from tests.waiting import eventually

from crossdock.console.web_server import PAGE_ROUTES

_ROUTES = sorted(
    (page.path, re.compile(re.sub(r"\{[^}]*\}", "[^/]+", page.path))) for page in PAGE_ROUTES if not page.is_form
)


def route_of(address: str) -> str:
    """The path in the table of routes."""
    path = urlsplit(address).path
    return next((route for route, pattern in _ROUTES if pattern.fullmatch(path)), "")


def kind_of(address: str) -> str:
    """The route of an address, or the path where it has few values, with the names of its parameters."""
    parts, route = urlsplit(address), route_of(address)
    path = route if route.endswith(("{run}", "{command}", "{month}")) else parts.path
    return f"{path}?{'&'.join(sorted(each.partition('=')[0] for each in parts.query.split('&')))}"


def crawl(browser: Browser, begin: str, *, of_each: int = 1) -> Iterator[tuple[str, Page]]:
    """Yield addresses that links lead to from *begin*, with their pages, some of each kind and as many missing ones."""
    waiting, seen, known = [begin], Counter[tuple[str, bool]](), {begin}
    while waiting:
        address = waiting.pop(0)
        kind = kind_of(address)
        if seen[kind, True] >= of_each:
            continue
        page = complete_page(browser, address)
        is_found = page.status == 200
        seen[kind, is_found] += 1
        if is_found or seen[kind, False] <= of_each:
            yield address, page
        for link in page.links:
            found, _ = urldefrag(urljoin(address, link.address))
            if found not in known and found.startswith("/"):
                known.add(found)
                waiting.append(found)


def complete_page(browser: Browser, address: str) -> Page:
    """Open a page, again while it says that it comes again at once because something is not read yet."""
    pages = [browser.open(address)]

    def is_complete() -> bool:
        if 'data-refreshes="2"' in pages[0].html:
            pages[0] = browser.open(address)
        return 'data-refreshes="2"' not in pages[0].html

    eventually(is_complete)
    return pages[0]
