"""Calls that are repeated in a thread while something else goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def call_periodically_in_thread(call: Callable[[], bool], every_s: float, name: str) -> Iterator[None]:
    """Call *call* every *every_s* seconds in a thread, until it returns False or the block ends, which waits for it."""
    over = threading.Event()

    def repeat() -> None:
        goes_on = True
        while goes_on and not over.wait(every_s):
            goes_on = call()

    thread = threading.Thread(target=repeat, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
