"""The pauses between two looks at the files of a run, by which growing files are recognized.

All sources of a run share the pauses: before each one, every source that is still to be read looks at its files. Only
time that was slept counts, so that no clock, and no machine that was suspended, can make a pause shorter than it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from itertools import chain
from typing import Any, Protocol, runtime_checkable

from crossdock.errors import CrossdockError
from crossdock.reading.transport.file_store import FileStore
from crossdock.values.clock import Clock

Look = Callable[[FileStore], None]
"""Looks at the files of one source."""
_Due = Callable[[], Iterable[Look]]


@runtime_checkable
class AnnouncesFiles(Protocol):
    def announce_file_growth_checks(self, ctx: Any) -> None:
        """Called when a run begins that will read the stream, to call `GrowthChecks.announce_connection`."""


class GrowthChecks:
    """The looks and pauses of one run; it has paused for `paused` seconds so far."""

    def __init__(self) -> None:
        self.paused = 0.0
        self._expected: dict[str, tuple[Callable[[], FileStore], list[_Due]]] = {}

    def announce_connection(self, connection: str, open_store: Callable[[], FileStore], due: _Due) -> None:
        """Announce that the run will read *connection*. *due* returns the looks at files that are not taken in yet."""
        _, all_due = self._expected.setdefault(connection, (open_store, []))
        all_due.append(due)

    def let_others_look_and_pause(
        self, seconds: float, clock: Clock, connection: str, store: FileStore, looked: Look
    ) -> None:
        """Let all sources look at their files, then wait for *seconds*. Do nothing if *seconds* is not positive."""
        if seconds > 0:
            self._let_other_sources_look(connection, store, looked)
        clock.sleep(seconds)
        self.paused += max(seconds, 0.0)

    def _let_other_sources_look(self, connection: str, store: FileStore, looked: Look) -> None:
        for name, (open_store, all_due) in self._expected.items():
            with suppress(CrossdockError):  # the stream meets it again when it is read
                if looks := [each for each in dict.fromkeys(chain(*(due() for due in all_due))) if each != looked]:
                    with nullcontext(store) if name == connection else open_store() as opened:
                        for look in looks:
                            with suppress(CrossdockError):
                                look(opened)
