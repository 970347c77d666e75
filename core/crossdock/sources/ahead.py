"""Making the next item while the last one is worked on: polars works without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Iterator[T]:
    """*items* in their order, of which a thread makes one ahead; what it raises is raised in its turn.

    Whoever asks for the last one has worked on all before it.
    """
    end = object()
    with ThreadPoolExecutor(1, "ahead") as pool:
        coming = pool.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, items, end)
            yield item  # type: ignore[misc]  # it is no end, so it is an item
