"""Where the records of a stream come from in a run, as the run uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from crossdock.delta.scan import KeyedRecord
from crossdock.planning.removals import Removals
from crossdock.project.connector_errors import FailureCount
from crossdock.state import Intent


class Source(Protocol):
    """Where a stream's records come from: its source, or its dead letters."""

    def read(self, unsettled: list[Intent], advance: Callable[[int], None]) -> None: ...

    def give_up(self) -> None: ...

    @property
    def expected(self) -> int: ...

    def records(self) -> Iterator[KeyedRecord]: ...

    def finish(self) -> None: ...

    def failing(self) -> FailureCount: ...

    @property
    def gone(self) -> Removals: ...
