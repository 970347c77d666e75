"""Several items worked on at once: polars works without the interpreter's lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE = 2  # each is worked on by more than one core at times; more of them cost memory


def prefetched(work: Callable[[T], R], items: Iterator[T]) -> Generator[R, None, None]:
    """What *work* makes of each of *items*, in their order; what it or they raise is raised in its turn.

    Threads work on some items that come next, while the caller is busy with what it was given.
    """
    with ThreadPoolExecutor(_AT_ONCE, "ahead") as pool:

        def begun() -> Iterator[Future[R]]:
            try:
                for item in items:
                    yield pool.submit(work, item)
            except Exception as error:  # noqa: BLE001  it is raised again, once all before it is done
                failed = Future[R]()
                failed.set_exception(error)
                yield failed

        more = begun()
        coming = deque(islice(more, _AT_ONCE))
        while coming:
            result = coming.popleft().result()
            coming.extend(islice(more, 1))
            yield result
