"""The memory that the bodies of requests may take together, before it is known who sent them."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress

FREE_BYTES = 16 << 10
"""Of each body, which count as nothing: what is small always gets through."""
_TRIMMED = 16 << 20
"""Bytes held at once after which the memory is given back to the system when they are not held any more."""


class OverBudgetError(Exception):
    """The body was given up, so that another can be read."""


class BodyBudget:
    """Of one event loop. If the bodies that are being read exceed it, those that have taken longest are given up.

    An honest sender is faster than one that holds memory: a body that arrives at once outlives those that trickle.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[HeldBody, int] = {}  # the oldest first
        self._total = self._peak = 0

    @contextmanager
    def body(self) -> Iterator[HeldBody]:
        """Hold what the block reads, in the task that it runs in.

        Raises:
            OverBudgetError: If it is given up.
        """
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
            self._trim()

    def take(self, held: HeldBody, size: int) -> None:
        """Count *size* more bytes of *held*."""
        self._held[held] += size
        self._total += size
        self._peak = max(self._peak, self._total)
        while self._total > self._most:
            oldest = next(each for each, number in self._held.items() if number)
            self._release(oldest)
            if oldest is held:
                raise OverBudgetError
            oldest.give_up()

    def _release(self, held: HeldBody) -> None:
        self._total -= self._held.pop(held, 0)

    def _trim(self) -> None:
        """Give memory back to the system, which the C library keeps otherwise."""
        if self._peak > _TRIMMED and self._total < self._peak // 4:
            self._peak = self._total
            with suppress(OSError, AttributeError):  # not glibc
                ctypes.CDLL(None).malloc_trim(0)


class HeldBody:
    """A body that is being read."""

    def __init__(self, budget: BodyBudget, task: asyncio.Task[object]) -> None:
        self._budget, self._task = budget, task
        self._size = 0
        self.is_given_up = False

    def add(self, size: int) -> None:
        """A part of *size* bytes was read, and is kept.

        Raises:
            OverBudgetError: If all that are read exceed the budget, and no other has taken longer.
        """
        before, self._size = self._size, self._size + size
        if counted := max(self._size - FREE_BYTES, 0) - max(before - FREE_BYTES, 0):
            self._budget.take(self, counted)

    def give_up(self) -> None:
        self.is_given_up = True
        self._task.cancel()
