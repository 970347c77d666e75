"""How long-running work reports what it does."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, Protocol

Unit = Literal["records", "bytes", "requests"]
"""What the steps of a stage are."""


class Progress(Protocol):
    """A listener; every call returns at once."""

    def begin(self, stage: str, total: int | None, unit: Unit = "records") -> None:
        """A stage begins; *total* is None if its size is unknown."""

    def advance(self, steps: int = 1) -> None:
        """Some steps of the stage are done."""

    def allowance(self, tokens: int | None) -> None:
        """The number of requests that could be sent now; None if unknown."""

    def waiting(self, wait: timedelta) -> None:
        """The rate limit of an API that is read makes the run wait; zero: it does no longer."""

    def warn(self, text: str) -> None:
        """Something that needs attention, though the work continues."""


class Silent:
    """No listener."""

    def begin(self, stage: str, total: int | None, unit: Unit = "records") -> None:
        """Ignore it."""

    def advance(self, steps: int = 1) -> None:
        """Ignore it."""

    def allowance(self, tokens: int | None) -> None:
        """Ignore it."""

    def waiting(self, wait: timedelta) -> None:
        """Ignore it."""

    def warn(self, text: str) -> None:
        """Ignore it."""
