"""The context that a run gives its sources, such as its clock, its folders, the log of accepted files and the pauses by
which growing files are recognized.

Before each such pause, every source that is still to be read looks at its files. Only time that was slept counts, so
that no clock, and no machine that was suspended, can make a pause shorter than it was.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from msgspec import Struct

from crossdock.errors import CrossdockError, StateError, add_code_to_first_line
from crossdock.pacing.token_bucket import BucketState
from crossdock.reading.sources.api_token_buckets import ApiUsage, SharedBuckets
from crossdock.reading.sources.list_completeness_evidence import OpenLists
from crossdock.reading.transport.file_store import FileStore
from crossdock.state import FileDescription, FileFacts, PackedDigests
from crossdock.values.author_code_errors import AuthorCodeError, convert_author_errors
from crossdock.values.clock import Clock
from crossdock.values.raw_rows_and_records import RawBatch
from crossdock.values.run_progress_and_messages import (
    Progress,
    RunMessages,
    warning_and_note_texts_by_stream,
    warning_texts,
)
from crossdock.values.safe_local_files import create_private_folder

if TYPE_CHECKING:
    import httpx

    from crossdock.reading.sources.stream_input_report import InputFacts

Look = Callable[[FileStore], None]
"""Lists the files of one source, so that those that grow until the next look are recognized."""
_Due = Callable[[], Iterable[Look]]


@runtime_checkable
class AnnouncesFiles(Protocol):
    def announce_file_growth_checks(self, ctx: Any) -> None:
        """Called when a run begins that will read the stream, to call `GrowthChecks.announce_connection_to_be_read`."""


class GrowthChecks:
    """The looks and pauses of one run; it has paused for `paused` seconds so far."""

    def __init__(self) -> None:
        self.paused = 0.0
        self._expected: dict[str, tuple[Callable[[], FileStore], list[_Due]]] = {}

    def announce_connection_to_be_read(self, connection: str, open_store: Callable[[], FileStore], due: _Due) -> None:
        """Announce that the run will read *connection*. *due* returns the looks at files that are not taken in yet."""
        _, all_due = self._expected.setdefault(connection, (open_store, []))
        all_due.append(due)

    def list_files_of_all_sources_then_pause(
        self, seconds: float, clock: Clock, connection: str, store: FileStore, looked: Look
    ) -> None:
        """Let all sources look at their files, then wait for *seconds*. Do nothing if *seconds* is not positive."""
        if seconds > 0:
            self._list_files_of_other_sources(connection, store, looked)
        clock.sleep(seconds)
        self.paused += max(seconds, 0.0)

    def _list_files_of_other_sources(self, connection: str, store: FileStore, looked: Look) -> None:
        for name, (open_store, all_due) in self._expected.items():
            with suppress(CrossdockError):  # the stream meets it again when it is read
                if looks := [each for each in dict.fromkeys(chain(*(due() for due in all_due))) if each != looked]:
                    with nullcontext(store) if name == connection else open_store() as opened:
                        for look in looks:
                            with suppress(CrossdockError):
                                look(opened)


PLATFORM_READS_NAME = "the platform"
"""The name under which a run counts the requests that read the platform; no connection can have it. In a session they
take tokens of delivery.
"""
Observe = Callable[[str, str, RawBatch], None]
"""Called with the name of a stream, an empty text, and each batch that it reads, before the batch is used. Before that,
with the name of each look-up and join of the stream instead, and the rows of their files."""


class IntakeLog(Protocol):
    """The log of the files that a stream has taken in. A file is finished under one version of a stream."""

    def finished_files(self, stream: str, version: str) -> dict[str, FileFacts]:
        """Return the files finished under *version*, by content hash, including those whose records were undone."""

    def unfinished_files(self, stream: str) -> dict[str, FileFacts]:
        """Return the files accepted and not finished, by content hash."""

    def digests_removed_by_retention(self, stream: str, version: str) -> PackedDigests:
        """Return the files finished under *version* so long ago that `finished_files` does not list them."""

    def mark_still_listed(self, stream: str, version: str, content_hashes: list[str]) -> None:
        """Record that the source still lists these files of `finished_files`."""

    def known_files(self, stream: str) -> list[FileFacts]:
        """Return all files ever accepted, as far as retention keeps them."""

    def passed_over_files(self, stream: str) -> set[FileDescription]:
        """Return the files that the source listed last time and that were older than the accepted one."""

    def record_passed_over_files(self, stream: str, files: set[FileDescription]) -> None:
        """Record the result of the next `passed_over_files`."""

    def record_accepted_files(self, stream: str, version: str, files: list[FileFacts]) -> None: ...

    def mark_accepted_finished(self, stream: str, version: str) -> None:
        """Record that every record of the accepted files is settled or kept in the state."""


class CrashMarker:
    """Marks what is read, so that the next process knows which input killed this one. This class marks nothing."""

    @contextmanager
    def mark_stream_being_read(self, stream: str) -> Iterator[None]:  # noqa: ARG002  nothing depends on it
        """Mark the block as reading *stream*. Raises RefusedError if reading it has killed the process repeatedly."""
        yield

    def mark_file_being_read(self, name: str, content: str) -> None:
        """Mark that the stream of this thread now reads a file with this content hash.

        Raises RefusedError as `mark_stream_being_read`.
        """

    def count_batch_of_marked_stream(self) -> None:
        """Count a batch in the mark of this thread's stream."""


@contextmanager
def os_errors_as_state_errors(path: Path) -> Iterator[None]:
    """Raise StateError with a hint instead of an `OSError`, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        hint = "free some space, or set 'spool:' to a folder on another disk"
        raise StateError(
            f"cannot be written: {error.strerror or error}", where=str(path), hint=hint, code="folder_unusable"
        ) from error


class WaitingRun(Struct, frozen=True):
    """A run that waits for late files. It was due, or began, at `since`; `zone` is None for that of this machine."""

    since: datetime
    zone: tzinfo | None = None


class PendingIntakes:
    """Inputs that streams have read to the end. They are taken in once all of their rows are known to be usable."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Callable[[], None]]] = {}

    def add(self, stream: str, accept: Callable[[], None]) -> None:
        self._waiting.setdefault(stream, []).append(accept)

    def accept(self, stream: str) -> None:
        for accept in self._waiting.pop(stream, ()):
            accept()

    def discard_for_stream(self, stream: str) -> None:
        self._waiting.pop(stream, None)


class JobRun(Struct, frozen=True):
    """The scheduled run that sources are read for. `previous_end` is None if its job has not run before."""

    due: datetime
    previous_end: datetime | None = None
    previous_due: datetime | None = None


class ClosingStack(ExitStack):
    """Closes what the streams of a run share. *failed* receives errors of authors' code, which are otherwise raised."""

    def __init__(self, failed: Callable[[CrossdockError], None] | None = None) -> None:
        super().__init__()
        self._failed = failed

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> bool:
        try:
            with convert_author_errors("at_end", None, only_authors=True):
                return bool(super().__exit__(kind, error, traceback))
        except AuthorCodeError as failure:
            if self._failed is None or error is failure:
                raise
            self._failed(failure)
            return False


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What a run gives its sources; `Context.run` for streams.

    Attributes:
        intake: The files taken in before; that of a plan records nothing.
        spool: Folder where files are kept until all their records are settled; it may not exist yet.
        work: Folder for this run, removed at its end.
        kept: Folder with copies from earlier runs that did not finish them; the spool, except in a plan.
        patience: None if the run does not wait for late files.
        messages: Notes and warnings; `note` and `warn` add to them.
        job: None if the run is not scheduled.
        inputs: What the sources of files found, by the stream's name.
        intakes: What was read to the end, until it is taken in.
        failures: Errors that end no stream, such as an expected file that is missing, by the stream's name.
        at_end: Closes what is shared by the streams of the run.
        transport: Replaces the network of HTTP APIs in tests, such as an `httpx.MockTransport`.
        recorded: Returns what takes the place of a transport of HTTP APIs, such as one that records the answers.
        limits: The token buckets of HTTP APIs by connection, stored for the next run.
        buckets: The buckets of the APIs that are read now; runs of one session share them.
        live: Whether its requests have priority over those of batches.
        interrupt: Set to end the run early; pauses of HTTP APIs end then.
        api_usage: What was requested of HTTP APIs, by connection.
        clocks_behind_s: Seconds by which an HTTP API's clock is behind this machine's, by connection, if measured.
        observe: Receives what is read.
    """

    clock: Clock
    progress: Progress
    intake: IntakeLog
    spool: Path
    work: Path
    kept: Path
    patience: WaitingRun | None = None
    messages: RunMessages = field(default_factory=RunMessages)
    job: JobRun | None = None
    inputs: dict[str, InputFacts] = field(default_factory=dict)
    intakes: PendingIntakes = field(default_factory=PendingIntakes)
    failures: dict[str, CrossdockError] = field(default_factory=dict)
    at_end: ExitStack = field(default_factory=ClosingStack)
    transport: httpx.BaseTransport | None = None
    recorded: Callable[[httpx.BaseTransport], httpx.BaseTransport] | None = None
    limits: dict[str, BucketState] = field(default_factory=dict)
    buckets: SharedBuckets = field(default_factory=SharedBuckets)
    live: bool = False
    interrupt: threading.Event = field(default_factory=threading.Event)
    api_usage: dict[str, ApiUsage] = field(default_factory=dict)
    open_lists: OpenLists = field(default_factory=OpenLists)
    clocks_behind_s: dict[str, float] = field(default_factory=dict)
    observe: Observe | None = None
    reading: CrashMarker = field(default_factory=CrashMarker)
    growth_checks: GrowthChecks = field(default_factory=GrowthChecks)

    def apart(self, name: str) -> SourceContext:
        """Return the same run with the spool folder *name*. Raises StateError if the spool cannot be created."""
        with os_errors_as_state_errors(self.spool):
            create_private_folder(self.spool)
        return replace(self, spool=self.spool / name, kept=self.kept / name)

    def by_clock_of(self, connection: str, moment: datetime) -> datetime:
        """Return what the clock of a connection's API showed at *moment*; *moment* if it was not found to be behind."""
        return moment - timedelta(seconds=self.clocks_behind_s.get(connection, 0.0))

    def note(self, stream: str, text: str) -> None:
        """Show a remark on *stream*, or on the run if it is empty, now and in the report of the run."""
        self.progress.warn(f"{stream}: {text}" if stream else text)
        self.messages.add_note(stream, text)

    def warn(self, stream: str, text: str, *, code: str | None = None) -> None:
        """Do the same as `note` for a text about which people are notified. *code* names what happened."""
        shown = add_code_to_first_line(text, code)
        self.progress.warn(f"{stream}: {shown}" if stream else shown)
        self.messages.add_warning(stream, text, code=code)

    @property
    def notes(self) -> dict[str, list[str]]:
        return warning_and_note_texts_by_stream(self.messages)

    @property
    def warnings(self) -> list[str]:
        """Warnings so far, each after the name of its stream."""
        return warning_texts(self.messages)


def create_run_folder(stack: ExitStack, spool: Path | None) -> Path:
    """Create a private folder in *spool*, or in the system's temporary folder. It is removed when *stack* unwinds."""
    with os_errors_as_state_errors(spool or Path(tempfile.gettempdir())):
        if spool is not None:
            create_private_folder(spool)
            _remove_abandoned_run_folders(spool)
        folder = _create_locked_folder(stack, spool)
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _create_locked_folder(stack: ExitStack, spool: Path | None) -> Path:
    """Create a folder that is locked until *stack* unwinds or the process ends: a lock also counts between containers.

    Where folders cannot be locked, as on NFS, it is not, and a killed process leaves it behind.
    """
    while True:
        folder = Path(tempfile.mkdtemp(prefix="run-", dir=spool))
        try:
            lock = _lock_folder(folder)
        except (FileNotFoundError, BlockingIOError):
            continue  # another process removes it, because it was not locked yet
        except OSError:
            return folder
        if folder.exists():
            stack.callback(os.close, lock)
            return folder
        os.close(lock)


def _remove_abandoned_run_folders(spool: Path) -> None:
    for folder in spool.glob("run-*"):
        with suppress(OSError):  # it is in use
            lock = _lock_folder(folder)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _lock_folder(folder: Path) -> int:
    """Lock *folder* until the returned file descriptor is closed. Raises BlockingIOError if it is locked already."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock
