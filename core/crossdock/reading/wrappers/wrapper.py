"""The interface of a wrapper: the model of its settings, and how a file gets out of it and into it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, Protocol, TypeVar

from pydantic import Field

from crossdock.errors import RefusedError
from crossdock.values.config_models import MAX_S, ConfigModel
from crossdock.values.local_files import create_private

BLOCK = 64 << 10
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


class Readable(Protocol):
    def read(self, size: int, /) -> bytes:
        """Return at most *size* bytes, and no bytes only at the end."""


class Openable(Protocol):
    """A file that can be read more than once, such as a `pathlib.Path`."""

    def open(self, mode: Literal["rb"], /) -> AbstractContextManager[BinaryIO]: ...


@dataclass(frozen=True, slots=True)
class InMemory:
    """An `Openable` over bytes."""

    data: bytes

    def open(self, _mode: Literal["rb"], /) -> BinaryIO:
        return BytesIO(self.data)


@dataclass(frozen=True, slots=True)
class Part:
    """A file, or one of the files that it holds; *name* is then ARCHIVE/MEMBER."""

    name: str
    content: Openable


class WrapperSettings(ConfigModel):
    """One layer around a file. A subclass has a `kind`."""

    max_bytes: Annotated[int, Field(ge=1, le=MAX_BYTES)] = MAX_BYTES
    """The most bytes that come out of one file."""
    max_ratio: Annotated[int, Field(ge=1, le=10_000_000)] = MAX_EXPANSION
    """How many times its own size may come out of a file of which more than 10 MB come out."""
    max_s: Annotated[float, Field(gt=0, le=MAX_S)] = 3600.0
    """The most seconds for one file."""

    @property
    def layout(self) -> Mapping[str, Any]:
        """What decides which records are read, which excludes keys and limits."""
        return {}

    def check_reading(self) -> None:
        """Raise ValueError if files cannot be read with these settings."""

    def check_writing(self) -> None:
        """Raise ValueError if files cannot be written with these settings."""


S_contra = TypeVar("S_contra", bound=WrapperSettings, contravariant=True)


class Meter:
    """Counts what comes out of one file of one layer. *what* names the packed bytes, such as ``bytes of gzip``.

    `before` is the number of packed bytes of the members before the present one.
    """

    def __init__(
        self, limits: WrapperSettings, *, name: str, what: str, clock: Callable[[], float] | None = None
    ) -> None:
        self._limits, self._name, self._what = limits, name, what
        self._clock = clock
        self._until = clock() + limits.max_s if clock else 0.0
        self._total = self._lines = 0
        self.before = 0

    def add(self, data: bytes, packed: int) -> None:
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
            raise self.too_much(f"{packed:,} {self._what} unpack to {self._total:,} bytes and more", allowed)
        if self._lines > FREE_LINES + MAX_LINES_PER_BYTE * packed:
            allowed = f"The limit is {FREE_LINES:,} lines and {MAX_LINES_PER_BYTE} for each byte."
            raise self.too_much(f"{packed:,} {self._what} unpack to {self._lines:,} lines and more", allowed)
        self.check_time()

    def check_time(self) -> None:
        if self._clock and self._clock() > self._until:
            raise self.too_much("unpacking it takes too long", f"The limit is {self._limits.max_s:g} s (max_s).")

    def too_much(self, message: str, allowed: str = "") -> RefusedError:
        hint = f"{allowed} If the file is genuine, ask the sender for it uncompressed or in parts.".lstrip()
        return RefusedError(message, where=self._name, hint=hint)


@dataclass(frozen=True, slots=True)
class Workshop:
    """The folder where files are put on their way out of a wrapper or into it, and the clock of the limits."""

    folder: Path
    clock: Callable[[], float] = field(default=time.monotonic)

    def put(self, blocks: Iterable[bytes]) -> Path:
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

    def meter(self, limits: WrapperSettings, part: Part, what: str) -> Meter:
        return Meter(limits, name=part.name, what=what, clock=self.clock)


class Wrapper(Protocol[S_contra]):
    """Takes files out of one kind of wrapper, and puts them into it. `wrapping.WRAPPERS` lists all kinds.

    Attributes:
        settings: The model of its settings.
        what: What a wrapped file is, such as ``a zip archive``.
        ending: What the name of a wrapped file ends with.
    """

    @property
    def settings(self) -> type[WrapperSettings]: ...

    @property
    def what(self) -> str: ...

    @property
    def ending(self) -> str: ...

    def begins(self, head: bytes) -> bool:
        """Return whether a file that begins with *head* (at least 64 bytes, or all of it) looks wrapped so."""

    def unwrap(self, part: Part, settings: S_contra, workshop: Workshop) -> Iterator[Part]:
        """Yield the files in *part*, which `begins` so, in memory of a fixed size.

        Nothing may act on a file before the iterator has ended: damage, for example, is found at the end.

        Raises:
            RefusedError: While iterating, if *part* is damaged, not as declared, or exceeds a limit.
            ConfigError: If a key is missing or wrong, or a program that is needed is not there.
        """

    def wrap(self, part: Part, settings: S_contra, workshop: Workshop) -> Path:
        """Return a new file in the folder of *workshop* with *part* in it."""


def blocks_of(readable: Readable) -> Iterator[bytes]:
    while block := readable.read(BLOCK):
        yield block
