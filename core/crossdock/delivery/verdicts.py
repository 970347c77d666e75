"""What one turn decided about the intents that it had news of."""

from __future__ import annotations

from dataclasses import dataclass, field

from crossdock.delivery.settling import Settled
from crossdock.state import Attempt, Intent


@dataclass(slots=True)
class Verdicts:
    """What one turn decided, to be written in one transaction.

    Attributes:
        settled: Intents that this run is done with.
        replaced: Intents in whose place a successor goes on.
        successors: New intents, decided on what the target was found to hold.
        attempts: How sendings ended that are worth telling.
    """

    settled: list[Settled] = field(default_factory=list)
    replaced: list[Intent] = field(default_factory=list)
    successors: list[Intent] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.settled or self.replaced or self.successors or self.attempts)
