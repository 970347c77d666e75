"""Requests to partners that a page waits for, since a person has asked for them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from crossdock.console.page_request_context import PageError

_AT_ONCE = threading.BoundedSemaphore(3)
"""Partners may be slow to answer, and what waits for them must leave threads for other pages."""


@contextmanager
def limit_partner_requests() -> Iterator[None]:
    """Send requests in the block. Raises PageError if others do so already."""
    if not _AT_ONCE.acquire(blocking=False):
        raise PageError(503, "Other requests to partners are under way.", "Try again once they have ended.")
    try:
        yield
    finally:
        _AT_ONCE.release()
