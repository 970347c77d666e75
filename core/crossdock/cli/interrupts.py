"""Signals that stop the command in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from crossdock.cli.sentence_printing import say


def _print_notice(text: str) -> None:
    say("", text, err=True)


@contextmanager
def interruptible(notify: Callable[[str], None] = _print_notice) -> Iterator[threading.Event]:
    """Yield an event set by SIGINT and SIGTERM, so that a run stops in order. A second signal stops it at once."""
    stop = threading.Event()

    def request_stop(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        notify(f"{signal.Signals(number).name}: finishing requests in flight; repeat to stop at once")

    before = {number: signal.signal(number, request_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
