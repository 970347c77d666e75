"""The state as the engine uses it: one object, short transactions, each table's questions in a module of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy.engine import URL

from crossdock.state.backlog import Refused, Waiting
from crossdock.state.bindings import Bindings
from crossdock.state.engine import Pin, open_engine, translated
from crossdock.state.intake import Intake
from crossdock.state.intents import Intents
from crossdock.state.lock import run_lock
from crossdock.state.runs import Buckets, Cursors, Runs


@dataclass(frozen=True, slots=True)
class Transaction:
    """What can be read and written together; committed as a whole when its block ends."""

    runs: Runs
    bindings: Bindings
    intents: Intents
    intake: Intake
    refused: Refused
    waiting: Waiting
    cursors: Cursors
    buckets: Buckets


class State:
    """An open state; one thread works with it.

    Raises:
        StateError: From every block, if the database fails.
    """

    def __init__(self, url: URL, pin: Pin, *, read_only: bool = False) -> None:
        self._url = url
        self._engine = open_engine(url, pin, read_only=read_only)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other runs off this state; the operating system or the database lets go when the process dies.

        Raises:
            StateError: If another run is at work on it.
        """
        with translated(self._url), run_lock(self._engine, self._url):
            yield

    @contextmanager
    def begin(self) -> Iterator[Transaction]:
        """A transaction; rolled back when the block raises."""
        with translated(self._url), self._engine.begin() as connection:
            yield Transaction(
                Runs(connection),
                Bindings(connection),
                Intents(connection),
                Intake(connection),
                Refused(connection),
                Waiting(connection),
                Cursors(connection),
                Buckets(connection),
            )

    def close(self) -> None:
        self._engine.dispose()
