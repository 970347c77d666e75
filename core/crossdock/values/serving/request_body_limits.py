"""Bodies of requests, of a limited length each and of limited memory before the senders are known."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from starlette.requests import Request

FREE_BYTES = 16 << 10
"""The part of each body that does not count, so that small bodies are always accepted."""
_TRIMMED = 16 << 20
"""Bytes held at once after which the memory is returned to the system when it is no longer held."""


class OverBudgetError(Exception):
    """The body was dropped, so that another can be read."""


class BodyBudget:
    """The budget of one event loop. It drops the slowest bodies, because an attacker holds memory longest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[HeldBody, int] = {}  # the oldest first
        self._total = self._peak = 0

    @contextmanager
    def hold_body(self) -> Iterator[HeldBody]:
        """Hold the memory that the block reads, in its task. Raises OverBudgetError if the body is dropped."""
        task = asyncio.current_task()
        assert task is not None
        held = HeldBody(self, task)
        self._held[held] = 0
        try:
            yield held
        except asyncio.CancelledError:
            if not held.is_given_up:
                raise
            task.uncancel()
            raise OverBudgetError from None
        finally:
            self._release(held)
            self._return_memory_to_system()

    def count_bytes_dropping_oldest(self, held: HeldBody, size: int) -> None:
        self._held[held] += size
        self._total += size
        self._peak = max(self._peak, self._total)
        while self._total > self._most:
            oldest = next(each for each, number in self._held.items() if number)
            self._release(oldest)
            if oldest is held:
                raise OverBudgetError
            oldest.cancel_reading()

    def _release(self, held: HeldBody) -> None:
        self._total -= self._held.pop(held, 0)

    def _return_memory_to_system(self) -> None:
        """Return memory to the system, which the C library would keep otherwise."""
        if self._peak > _TRIMMED and self._total < self._peak // 4:
            self._peak = self._total
            with suppress(OSError, AttributeError):  # not glibc
                ctypes.CDLL(None).malloc_trim(0)


class HeldBody:
    def __init__(self, budget: BodyBudget, task: asyncio.Task[object]) -> None:
        self._budget, self._task = budget, task
        self._size = 0
        self.is_given_up = False

    def add_bytes(self, size: int) -> None:
        """Count *size* bytes that were read and are kept. Raises OverBudgetError if this body must be dropped."""
        before, self._size = self._size, self._size + size
        if counted := max(self._size - FREE_BYTES, 0) - max(before - FREE_BYTES, 0):
            self._budget.count_bytes_dropping_oldest(self, counted)

    def cancel_reading(self) -> None:
        self.is_given_up = True
        self._task.cancel()


async def read_body_cut_if_longer(request: Request, max_bytes: int) -> bytes:
    """Read the body. Only the beginning of a longer one is returned, which is also longer than *max_bytes*."""
    body = b""
    async for chunk in request.stream():  # to its end even if it is too long: then the client reads the response
        if len(body) <= max_bytes:
            body += chunk
    return body


def media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()
