"""Signs that the state has forgotten a record that it has sent, which the source names and the state does not know.

Without one, a record of the platform with the same content is somebody else's, and the record of the source is new.
"""

from __future__ import annotations

from collections import defaultdict

from crossdock.reading.sources.stream_input_report import known_file_description
from crossdock.runs.imported_file_log import IntakeOrderReader
from crossdock.state import FileFacts, RecordIdentity, Scope, State, Transaction


class FilesOfReading(IntakeOrderReader):
    """Remembers which files were read, by stream and name."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.facts_by_name = defaultdict[str, dict[str, FileFacts]](dict)

    def record_accepted_files(self, stream: str, version: str, files: list[FileFacts]) -> None:  # noqa: ARG002
        own = stream.partition(":")[0]  # of a stream with joins, each source is a log of its own
        self.facts_by_name[own].update({each.name: each for each in files})


class SignsOfForgottenRecords:
    def __init__(self, state: State, files: FilesOfReading) -> None:
        self._state, self._files = state, files
        self._known_files: dict[str, set[object]] = {}
        with state.begin_read_only() as tx:
            self._is_restored = tx.runs.is_state_restored()

    def may_be_forgotten(self, scope: Scope, identity: RecordIdentity) -> bool:
        """Return whether the state was restored or is new, or an earlier run has delivered the record or read its file.

        The state is new for a stream that no run has read.
        """
        if self._is_restored:
            return True
        with self._state.begin_read_only() as tx:
            return (
                not _was_read_before(tx, identity.stream)
                or bool(
                    tx.delivered_history.delivered_operations_of_records(scope, [identity.key_hash])[identity.key_hash]
                )
                or self._is_of_file_read_before(tx, identity)
            )

    def _is_of_file_read_before(self, tx: Transaction, identity: RecordIdentity) -> bool:
        """Return whether an earlier run has read the file, with the content that it has now."""
        stream, source = identity.stream, identity.source
        if stream not in self._known_files:
            known = tx.intake.known_files(stream)
            self._known_files[stream] = {fact for each in known for fact in _facts_that_identify(each)}
        read = (
            each
            for name, each in self._files.facts_by_name[stream].items()
            if source == name or source.startswith(f"{name}/")  # a member of an archive
        )
        return any(not self._known_files[stream].isdisjoint(_facts_that_identify(each)) for each in read)


def _facts_that_identify(file: FileFacts) -> set[object]:
    return {file.content_hash, known_file_description(file)}


def _was_read_before(tx: Transaction, stream: str) -> bool:
    return (
        tx.intake.has_files(stream)
        or tx.cursors.mapping_version_of_cursor(stream) is not None
        or tx.snapshots.last_snapshot_time(stream) is not None
    )
