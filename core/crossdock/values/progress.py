"""Progress reports of long-running work."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, Protocol

Unit = Literal["records", "bytes", "requests"]
"""The unit of a stage's steps."""


class Progress(Protocol):
    """A listener. Every call returns at once."""

    def begin(self, stage: str, total: int | None, unit: Unit = "records") -> None:
        """Begin a stage; *total* is None if its size is unknown."""

    def advance(self, steps: int = 1) -> None:
        """Report that some steps of the stage are done."""

    def allowance(self, tokens: int | None) -> None:
        """Report the number of requests that could be sent now; None if unknown."""

    def waiting(self, wait: timedelta) -> None:
        """Report that the rate limit of a source makes the run wait; zero ends the wait."""

    def warn(self, text: str) -> None:
        """Report something that needs attention, though the work continues."""


class SilentProgress:
    """A listener that ignores all reports."""

    def begin(self, stage: str, total: int | None, unit: Unit = "records") -> None:
        pass

    def advance(self, steps: int = 1) -> None:
        pass

    def allowance(self, tokens: int | None) -> None:
        pass

    def waiting(self, wait: timedelta) -> None:
        pass

    def warn(self, text: str) -> None:
        pass
