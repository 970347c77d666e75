"""The interface of a wrapper: the model of its settings, and how a file gets out of it and into it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, TypeVar

import msgspec

from crossdock.reading.wrappers.unpacking_limits import UnpackingLimits, UnpackingMeter
from crossdock.values.safe_local_files import create_private

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
class Part:
    """A file, or one of the files that it holds; *name* is then ARCHIVE/MEMBER.

    *member_time* is the local time of change that an archive states, as numbers from the year on; it has no zone.
    """

    name: str
    content: Openable
    member_time: tuple[int, ...] = ()


class PassedOver(msgspec.Struct):
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

    def check_settings_for_reading(self) -> None:
        """Raise ValueError if files cannot be read with these settings."""

    def check_settings_for_writing(self) -> None:
        """Raise ValueError if files cannot be written with these settings."""


S_contra = TypeVar("S_contra", bound=WrapperSettings, contravariant=True)


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """The folder where files are put on their way out of a wrapper or into it, and the clock of the limits.

    A wrapper adds the members that it does not take out to `passed_over`.
    """

    folder: Path
    clock: Callable[[], float] = field(default=time.monotonic)
    passed_over: PassedOver = field(default_factory=PassedOver)

    def write_file(self, blocks: Iterable[bytes]) -> Path:
        """Write *blocks* to a new private file. It is removed if they cannot be read to their end."""
        path = self.folder / f"{secrets.token_hex(16)}.part"
        try:
            with create_private(path) as sink:
                for block in blocks:
                    sink.write(block)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return path

    def make_unpacking_meter(self, limits: WrapperSettings, part: Part, what: str) -> UnpackingMeter:
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

    def unwrap(self, part: Part, settings: S_contra, work_folder: WorkFolder) -> Iterator[Part]:
        """Yield the files in *part*, whose head `recognizes_head` accepts, in memory of a fixed size.

        Nothing may act on a file before the iterator has ended: damage, for example, is found at the end.

        Raises:
            RefusedError: While iterating, if *part* is damaged, not as declared, or exceeds a limit.
            ConfigError: If a key is missing or wrong, or a program that is needed is not there.
        """

    def wrap(self, part: Part, settings: S_contra, work_folder: WorkFolder) -> Path:
        """Return a new file in the folder of *work_folder* with *part* in it."""


def read_blocks(readable: Readable) -> Iterator[bytes]:
    while block := readable.read(BLOCK):
        yield block
