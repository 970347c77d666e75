"""How long work tells what it does, without knowing who looks on."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A listener to long work; every call is quick."""

    def begin(self, stage: str, total: int | None) -> None:
        """A stage begins; *total* is None where its size is not known."""

    def advance(self, steps: int = 1) -> None:
        """Some of the stage is done."""

    def allowance(self, tokens: int | None) -> None:
        """So many requests could leave now; None while nobody knows."""

    def warn(self, text: str) -> None:
        """Something that a person should look at, though the work goes on."""


class Silent:
    """Nobody looks on."""

    def begin(self, stage: str, total: int | None) -> None:
        """Ignore it."""

    def advance(self, steps: int = 1) -> None:
        """Ignore it."""

    def allowance(self, tokens: int | None) -> None:
        """Ignore it."""

    def warn(self, text: str) -> None:
        """Ignore it."""
