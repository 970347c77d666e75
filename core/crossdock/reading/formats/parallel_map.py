"""A parallel map with a small look-ahead: polars releases the interpreter's lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_THREADS = 2  # polars uses more cores itself; more threads cost memory


def map_in_parallel(work: Callable[[T], R], items: Iterator[T]) -> Generator[R, None, None]:
    """Yield the results of *work* in order, with threads ahead of the caller. Exceptions follow all earlier results."""
    first = list(islice(items, 1))
    failure: Exception | None = None
    try:
        first += islice(items, 1)
    except Exception as error:  # noqa: BLE001  raised again after the results before it
        failure = error
    if len(first) < _THREADS:
        yield from map(work, first)
        if failure:
            raise failure
        return
    items = chain(first, items)
    with ThreadPoolExecutor(_THREADS, "ahead") as pool:

        def submitted() -> Iterator[Future[R]]:
            try:
                for item in items:
                    yield pool.submit(work, item)
            except Exception as error:  # noqa: BLE001  raised again after the results before it
                failed = Future[R]()
                failed.set_exception(error)
                yield failed

        more = submitted()
        ahead = deque(islice(more, _THREADS))
        while ahead:
            result = ahead.popleft().result()
            ahead.extend(islice(more, 1))
            yield result
