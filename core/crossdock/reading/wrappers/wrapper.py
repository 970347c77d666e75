"""The interface of a wrapper: its settings, how a file gets out of it and into it, and limits on what comes out."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, Protocol, TypeVar

import msgspec
from pydantic import Field

from crossdock.errors import RefusedError
from crossdock.values.config_base_types import MAX_S, ConfigModel
from crossdock.values.safe_local_files import create_private_file

MAX_EXPANSION = 200
"""Text exports shrink 5 to 30 times, bombs about 1,000 times (the limit of deflate is 1,032)."""
FREE_BYTES = 10_000_000
"""Bytes that may come out at any ratio: a small file of blanks is harmless."""
MAX_BYTES = 20_000_000_000
"""The limit for one unpacked file: more than a hundred million rows."""
MAX_LINES_PER_BYTE = 4
"""Lines that differ take at least one packed byte each. Each line costs memory until its file is read."""
FREE_LINES = 500_000
"""Lines that may come out at any ratio."""


class UnpackingLimits(ConfigModel):
    """The settings of a packed file that limit what comes out of it."""

    max_bytes: Annotated[int, Field(ge=1, le=MAX_BYTES)] = MAX_BYTES
    """The most bytes that come out of one file."""
    max_ratio: Annotated[int, Field(ge=1, le=10_000_000)] = MAX_EXPANSION
    """How many times its own size may come out of a file of which more than 10 MB come out."""
    max_s: Annotated[float, Field(gt=0, le=MAX_S)] = 3600.0
    """The most seconds for one file."""


class UnpackingMeter:
    """Counts what comes out of one file of one layer. *what* names the packed bytes, such as ``bytes of gzip``.

    `before` is the number of packed bytes of the members before the present one.
    """

    def __init__(
        self, limits: UnpackingLimits, *, name: str, what: str, clock: Callable[[], float] | None = None
    ) -> None:
        self._limits, self._name, self._what = limits, name, what
        self._clock = clock
        self._until = clock() + limits.max_s if clock else 0.0
        self._total = self._lines = 0
        self.before = 0

    def count_and_raise_if_over_limits(self, data: bytes, packed: int) -> None:
        """Count *data*, which came out of *packed* bytes of the present member together with what came before.

        Raises:
            RefusedError: If it is too much, or took too long.
        """
        packed += self.before
        self._total += len(data)
        self._lines += data.count(b"\n")
        limits = self._limits
        if self._total > limits.max_bytes or (self._total > FREE_BYTES and self._total > limits.max_ratio * packed):
            allowed = f"The limit is {limits.max_ratio} to 1 and {limits.max_bytes:,} bytes."
            raise self.limit_error(f"{packed:,} {self._what} unpack to {self._total:,} bytes and more", allowed)
        if self._lines > FREE_LINES + MAX_LINES_PER_BYTE * packed:
            allowed = f"The limit is {FREE_LINES:,} lines and {MAX_LINES_PER_BYTE} for each byte."
            raise self.limit_error(f"{packed:,} {self._what} unpack to {self._lines:,} lines and more", allowed)
        self.raise_if_over_time()

    def raise_if_over_time(self) -> None:
        if self._clock and self._clock() > self._until:
            raise self.limit_error("unpacking it takes too long", f"The limit is {self._limits.max_s:g} s (max_s).")

    def limit_error(self, message: str, allowed: str = "") -> RefusedError:
        hint = f"{allowed} If the file is genuine, ask the sender for it uncompressed or in parts.".lstrip()
        return RefusedError(message, where=self._name, hint=hint, code="file_too_large")


BLOCK = 64 << 10


class Readable(Protocol):
    def read(self, size: int, /) -> bytes:
        """Return at most *size* bytes, and no bytes only at the end."""


class Openable(Protocol):
    """A file that can be read more than once, such as a `pathlib.Path`."""

    def open(self, mode: Literal["rb"], /) -> AbstractContextManager[BinaryIO]: ...


@dataclass(frozen=True, slots=True)
class InMemoryFile:
    """An `Openable` over bytes."""

    data: bytes

    def open(self, _mode: Literal["rb"], /) -> BinaryIO:
        return BytesIO(self.data)


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file, or one of the files that it holds; *name* is then ARCHIVE/MEMBER.

    *member_time* is the local time of change that an archive states, as numbers from the year on; it has no zone.
    """

    name: str
    content: Openable
    member_time: tuple[int, ...] = ()


class UnreadArchiveMembers(msgspec.Struct):
    """The names of members of archives that were not read, each as ARCHIVE/MEMBER.

    `lookalikes` are those among them whose names are so like the chosen ones that they may belong to them.
    """

    names: list[str] = msgspec.field(default_factory=list)
    lookalikes: list[str] = msgspec.field(default_factory=list)


class WrapperSettings(UnpackingLimits):
    """One layer around a file. A subclass has a `kind`."""

    @property
    def settings_that_choose_records(self) -> Mapping[str, Any]:
        """What decides which records are read, which excludes keys and limits."""
        return {}

    def raise_unless_usable_for_reading(self) -> None:
        """Raise ValueError if files cannot be read with these settings."""

    def raise_unless_usable_for_writing(self) -> None:
        """Raise ValueError if files cannot be written with these settings."""


S_contra = TypeVar("S_contra", bound=WrapperSettings, contravariant=True)


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """The folder where files are put on their way out of a wrapper or into it, and the clock of the limits.

    A wrapper adds the members that it does not take out to `passed_over`.
    """

    folder: Path
    clock: Callable[[], float] = field(default=time.monotonic)
    passed_over: UnreadArchiveMembers = field(default_factory=UnreadArchiveMembers)

    def write_file(self, blocks: Iterable[bytes]) -> Path:
        """Write *blocks* to a new private file. It is removed if they cannot be read to their end."""
        path = self.folder / f"{secrets.token_hex(16)}.part"
        try:
            with create_private_file(path) as sink:
                for block in blocks:
                    sink.write(block)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return path

    def make_unpacking_meter(self, limits: WrapperSettings, part: NamedFile, what: str) -> UnpackingMeter:
        return UnpackingMeter(limits, name=part.name, what=what, clock=self.clock)


class Wrapper(Protocol[S_contra]):
    """Takes files out of one kind of wrapper, and puts them into it. `wrapping_and_unwrapping.WRAPPERS` lists all
    kinds.

    Attributes:
        settings: The model of its settings.
        wrapping_description: What a wrapped file is, such as ``a zip archive``.
        file_name_ending: What the name of a wrapped file ends with.
    """

    @property
    def settings(self) -> type[WrapperSettings]: ...

    @property
    def wrapping_description(self) -> str: ...

    @property
    def file_name_ending(self) -> str: ...

    def recognizes_head(self, head: bytes) -> bool:
        """Return whether a file that begins with *head* (at least 64 bytes, or all of it) looks wrapped so."""

    def unwrap(self, part: NamedFile, settings: S_contra, work_folder: WorkFolder) -> Iterator[NamedFile]:
        """Yield the files in *part*, whose head `recognizes_head` accepts, in memory of a fixed size.

        Nothing may act on a file before the iterator has ended: damage, for example, is found at the end.

        Raises:
            RefusedError: While iterating, if *part* is damaged, not as declared, or exceeds a limit.
            ConfigError: If a key is missing or wrong, or a program that is needed is not there.
        """

    def wrap(self, part: NamedFile, settings: S_contra, work_folder: WorkFolder) -> Path:
        """Return a new file in the folder of *work_folder* with *part* in it."""


def read_blocks(readable: Readable) -> Iterator[bytes]:
    while block := readable.read(BLOCK):
        yield block
