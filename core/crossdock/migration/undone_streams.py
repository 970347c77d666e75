"""The streams whose records an undo takes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass

from crossdock.delivery.operations import Operation
from crossdock.migration.reconcile import platform_context
from crossdock.migration.undone_records import Referred, UndoneRecord, nothing_referred, undone_records
from crossdock.progress import Silent
from crossdock.project.connector_instances import BoundStream
from crossdock.runs.state_session import Session
from crossdock.state import Scope

ChangedAmong = Callable[[Scope, Sequence[str]], AbstractSet[str]]
"""Those of some ids of a scope whose records others have changed."""


@dataclass(frozen=True, slots=True)
class UndoneStreams:
    """The streams *names*, of which *runs* are undone."""

    session: Session
    names: Sequence[str]
    runs: AbstractSet[int]

    @property
    def scopes(self) -> set[Scope]:
        """What they write."""
        return {self.session.project.scopes[name] for name in self.names}

    @contextmanager
    def bound(self) -> Iterator[list[BoundStream]]:
        """The streams, those that refer to others first."""
        session, run = self.session, platform_context(self.session, Silent())
        with run.at_end:
            yield session.project.bind(set(self.names), targets=session.targets, run=run)[::-1]

    def records(
        self, bound: BoundStream, changed: ChangedAmong, referred: Referred = nothing_referred
    ) -> Iterator[UndoneRecord]:
        """What happens to each record of *bound*; see `undone_records`."""
        return undone_records(self.session.state, bound, self.runs, lambda ids: changed(bound.scope, ids), referred)


def operations(records: Iterator[UndoneRecord]) -> Iterator[Operation]:
    """Those of the records that do not stay as they are."""
    return (each.operation for each in records if each.operation is not None)
