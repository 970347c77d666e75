"""Limits on what comes out of a packed file: bytes, lines, seconds, and the ratio to its packed size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from crossdock.errors import RefusedError
from crossdock.values.config_base_types import MAX_S, ConfigModel

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

    def count_and_check_limits(self, data: bytes, packed: int) -> None:
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
        self.check_time()

    def check_time(self) -> None:
        if self._clock and self._clock() > self._until:
            raise self.limit_error("unpacking it takes too long", f"The limit is {self._limits.max_s:g} s (max_s).")

    def limit_error(self, message: str, allowed: str = "") -> RefusedError:
        hint = f"{allowed} If the file is genuine, ask the sender for it uncompressed or in parts.".lstrip()
        return RefusedError(message, where=self._name, hint=hint, code="file_too_large")
