"""The number of changes that a run finds and no webhook announced."""

from __future__ import annotations

from collections.abc import Iterator

from crossdock.config.project.connector_instances import BoundStream
from crossdock.planning.planned_chunk import PlannedChunk
from crossdock.state import State


class MissedChanges:
    """Counts the changes of one stream in one run, if its connection has received webhooks."""

    def __init__(self, state: State, bound: BoundStream) -> None:
        self._state, self._bound, self._number = state, bound, 0
        self._counts = False
        if bound.is_hinted:
            with state.look() as tx:
                self._counts = tx.inbox.receives(bound.name.partition(".")[0])

    def counted(self, chunks: Iterator[PlannedChunk]) -> Iterator[PlannedChunk]:
        """Count the operations of *chunks*, except those on records that are to be fetched anyway."""
        for chunk in chunks:
            if self._counts and chunk.operations:
                hashes = {operation.identity.key_hash for operation in chunk.operations}
                with self._state.look() as tx:
                    self._number += len(hashes) - len(tx.inbox.among(self._bound.name, list(hashes)))
            yield chunk

    def note(self) -> None:
        if self._number:
            changes = "1 change" if self._number == 1 else f"{self._number:,} changes"
            self._bound.context.run.note(self._bound.name, f"no webhook has told of {changes}")
