"""The work of SQLite in steps of its virtual machine, which no load of the machine changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, event


@dataclass
class Steps:
    """How many were taken."""

    taken: int = 0

    def count(self) -> int:
        """One more; 0, so that SQLite goes on."""
        self.taken += 1
        return 0


@contextmanager
def counted() -> Iterator[Steps]:
    """Of connections that are opened meanwhile."""
    steps = Steps()

    def watch(connection: Any, _: object) -> None:
        connection.set_progress_handler(steps.count, 1)

    event.listen(Engine, "connect", watch)
    try:
        yield steps
    finally:
        event.remove(Engine, "connect", watch)
