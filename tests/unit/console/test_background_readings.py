"""Readings that take longer than a page may."""

from __future__ import annotations

import threading

import pytest

from crossdock.console.page_request_context import FRESH_S, SHARE, CachedBackgroundReads
from crossdock.errors import StateError
from crossdock.testing.manual_clock import ManualClock

NAME = ("acme", "migration")
LONG_S = 60.0


def test_a_page_need_not_wait() -> None:
    """Until the first reading ends nothing is known; then its result is shown, also while the next one takes long."""
    clock, begun, ended, calls = ManualClock(), threading.Semaphore(0), threading.Event(), list[int]()
    readings = CachedBackgroundReads(clock)

    def read() -> int:
        calls.append(len(calls))
        begun.release()
        assert ended.wait(LONG_S)
        return calls[-1]

    assert readings.read_or_cached_if_slow(NAME, read, wait_s=0) is None
    assert readings.read_or_cached_if_slow(NAME, read, wait_s=0) is None
    ended.set()
    assert readings.read_or_cached_if_slow(NAME, read, wait_s=LONG_S) == 0
    ended.clear()
    clock.advance(FRESH_S)
    assert readings.read_or_cached_if_slow(NAME, read, wait_s=0) == 0
    assert begun.acquire(timeout=LONG_S)
    assert begun.acquire(timeout=LONG_S)
    assert len(calls) == 2
    ended.set()
    assert readings.read_or_cached_if_slow(NAME, read, wait_s=LONG_S) == 1


def test_a_long_reading_is_shown_for_long() -> None:
    """So that readings take at most a small share of the time."""
    clock, calls = ManualClock(), list[int]()
    readings = CachedBackgroundReads(clock)

    def read() -> int:
        clock.advance(10.0)
        calls.append(1)
        return len(calls)

    assert readings.read_or_cached_if_slow(NAME, read, wait_s=LONG_S) == 1
    clock.advance(10.0 * SHARE - 1)
    assert readings.read_or_cached_if_slow(NAME, read, wait_s=LONG_S) == 1
    clock.advance(2.0)
    assert readings.read_or_cached_if_slow(NAME, read, wait_s=LONG_S) == 2


def test_an_error_is_raised_for_who_asks() -> None:
    """And the next reading may succeed."""
    clock, errors = ManualClock(), [StateError("is locked")]
    readings = CachedBackgroundReads(clock)

    def read() -> str:
        if errors:
            raise errors.pop()
        return "read"

    with pytest.raises(StateError, match="is locked"):
        readings.read_or_cached_if_slow(NAME, read, wait_s=LONG_S)
    clock.advance(FRESH_S)
    assert readings.read_or_cached_if_slow(NAME, read, wait_s=LONG_S) == "read"
