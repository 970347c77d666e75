"""Where a source works in a run: what it asks of the state, and where it may put things."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Protocol

from crossdock.clock import Clock
from crossdock.errors import StateError
from crossdock.progress import Progress
from crossdock.state import Digests, FileFacts


class IntakeLog(Protocol):
    """Which files a stream has taken in."""

    def done(self, stream: str, version: str) -> dict[str, FileFacts]:
        """Files worked through under *version*, by content hash."""

    def unfinished(self, stream: str) -> dict[str, FileFacts]:
        """Files accepted and not worked through, by content hash."""

    def forgotten(self, stream: str, version: str) -> Digests:
        """Files worked through under *version* so long ago that `done` does not have them."""

    def seen(self, stream: str, version: str, content_hashes: list[str]) -> None:
        """Remember that the source still lists files that `done` has."""

    def newest_stamp(self, stream: str) -> str | None:
        """The highest stamp of all files ever accepted."""

    def accept(self, stream: str, version: str, files: list[FileFacts]) -> None:
        """Remember that *files* were accepted as a whole."""

    def finish(self, stream: str, version: str) -> None:
        """Remember that every record of the accepted files is settled, or kept in the state."""


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Tell of a disk that is full, or cannot be written, as of something that a person can mend.

    Raises:
        StateError: Instead of any `OSError`.
    """
    try:
        yield
    except OSError as error:
        hint = "make room there, or name a place on another disk with 'spool:'"
        raise StateError(f"cannot be written: {error.strerror or error}", where=str(place), hint=hint) from error


@dataclass(frozen=True, slots=True)
class Patience:
    """That a run waits for late files, and by which clocks.

    Attributes:
        since: The instant at which the run was due, or began if nobody planned it.
        zone: Whose time of day is meant; None for this machine's.
    """

    since: datetime
    zone: tzinfo | None = None


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What a run gives its sources.

    Attributes:
        intake: What files were taken in before; that of a plan remembers nothing.
        spool: Folder where files are kept until every record of theirs is settled; may not exist yet.
        work: Folder for this run, removed at its end.
        kept: Where earlier runs left copies of files that they did not get through; the spool, but for a plan.
        patience: None if the run takes what is there and waits for nothing.
        notes: What the report of the run says of a stream beside its accounts, by the stream's name.
    """

    clock: Clock
    progress: Progress
    intake: IntakeLog
    spool: Path
    work: Path
    kept: Path
    patience: Patience | None = None
    notes: dict[str, list[str]] = field(default_factory=dict)

    def note(self, stream: str, text: str) -> None:
        """Tell it now, and in the report of the run."""
        self.progress.warn(f"{stream}: {text}")
        self.notes.setdefault(stream, []).append(text)
