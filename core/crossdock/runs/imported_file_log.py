"""Intake logs: the files that a stream has imported. A sync writes them to the state, a plan only reads them.

They also show whether the mapping has changed since, so that all records that the source still has are mapped again.
"""

from __future__ import annotations

from crossdock.state import FileDescription, FileFacts, PackedDigests, State, Transaction
from crossdock.values.clock import Clock


class EmptyIntakeLog:
    """An empty log that stores nothing, for checks that read nothing."""

    def finished_files(self, stream: str, version: str) -> dict[str, FileFacts]:  # noqa: ARG002  nothing depends on it
        return {}

    def unfinished_files(self, stream: str) -> dict[str, FileFacts]:  # noqa: ARG002  nothing depends on it
        return {}

    def digests_removed_by_retention(self, stream: str, version: str) -> PackedDigests:  # noqa: ARG002  nothing depends on it
        return PackedDigests()

    def mark_still_listed(self, stream: str, version: str, content_hashes: list[str]) -> None:
        """Do nothing."""

    def known_files(self, stream: str) -> list[FileFacts]:  # noqa: ARG002  nothing depends on it
        return []

    def passed_over_files(self, stream: str) -> set[FileDescription]:  # noqa: ARG002  nothing depends on it
        return set()

    def record_passed_over_files(self, stream: str, files: set[FileDescription]) -> None:
        """Do nothing."""

    def record_accepted_files(self, stream: str, version: str, files: list[FileFacts]) -> None:
        """Do nothing."""

    def mark_accepted_finished(self, stream: str, version: str) -> None:
        """Do nothing."""


class RereadAllIntakeLog(EmptyIntakeLog):
    """A log by which all files are read again, and none that is older than one that was read before."""

    def __init__(self, state: State) -> None:
        self._state = state

    def known_files(self, stream: str) -> list[FileFacts]:
        with self._state.begin_read_only() as tx:
            return tx.intake.known_files(stream)

    def passed_over_files(self, stream: str) -> set[FileDescription]:
        with self._state.begin_read_only() as tx:
            return tx.intake.passed_over_snapshots(stream)


class ReadOnlyIntakeLog(RereadAllIntakeLog):
    def finished_files(self, stream: str, version: str) -> dict[str, FileFacts]:
        with self._state.begin_read_only() as tx:
            return tx.intake.finished_files(stream, version)

    def unfinished_files(self, stream: str) -> dict[str, FileFacts]:
        with self._state.begin_read_only() as tx:
            return tx.intake.unfinished_files(stream)

    def digests_removed_by_retention(self, stream: str, version: str) -> PackedDigests:
        with self._state.begin_read_only() as tx:
            return tx.intake.digests_removed_by_retention(stream, version)


class IntakeLogInState(ReadOnlyIntakeLog):
    def __init__(self, state: State, clock: Clock) -> None:
        super().__init__(state)
        self._clock = clock

    def record_accepted_files(self, stream: str, version: str, files: list[FileFacts]) -> None:
        with self._state.begin() as tx:
            tx.intake.accept(stream, version, files, at=self._clock.now())

    def record_passed_over_files(self, stream: str, files: set[FileDescription]) -> None:
        with self._state.begin() as tx:
            tx.intake.replace_passed_over_snapshots(stream, files)

    def mark_still_listed(self, stream: str, version: str, content_hashes: list[str]) -> None:
        with self._state.begin() as tx:
            tx.intake.mark_listed_by_source(stream, version, content_hashes, at=self._clock.now())

    def mark_accepted_finished(self, stream: str, version: str) -> None:
        with self._state.begin() as tx:
            tx.intake.finish_accepted_files(stream, version)


def mapping_changed_since_text(tx: Transaction, name: str, version: str) -> str:
    """Return since when a stream has another mapping than its last import had; empty if it has not."""
    finished = tx.intake.last_finished_import(name)
    if finished is not None:
        return "" if finished.version == version else f"since the import of {finished.at:%Y-%m-%d %H:%M}Z"
    stored = tx.cursors.mapping_version_of_cursor(name)
    return "" if stored is None or stored.partition(":")[0] == version else "since the last run"
