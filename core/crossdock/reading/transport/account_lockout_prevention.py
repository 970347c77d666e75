"""Remembers that credentials were refused, so that they are not sent again and again: that locks users out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from crossdock.errors import UnauthorizedError, strip_traceback_and_causes
from crossdock.values.clock import Clock

REFUSED_FOR_S = 900.0
"""Long enough that a process that reads each minute does not lock the user out, short enough to recover by itself."""


class RefusedCredentials:
    """The last refusal of the credentials of one connection, for all that use the connection in this process."""

    def __init__(self) -> None:
        self._kept: tuple[str, float, UnauthorizedError] | None = None

    def raise_if_refused(self, credential: str, clock: Clock) -> None:
        """Raise the refusal of *credential*, if it was refused shortly before."""
        kept = self._kept
        if kept is not None and kept[0] == credential and clock.monotonic() < kept[1]:
            raise strip_traceback_and_causes(kept[2])

    @contextmanager
    def remembering_refusal(self, credential: str, clock: Clock) -> Iterator[None]:
        """Keep an UnauthorizedError of the block, which judges the answer to *credential*."""
        try:
            yield
        except UnauthorizedError as error:
            self._kept = credential, clock.monotonic() + REFUSED_FOR_S, error
            raise
