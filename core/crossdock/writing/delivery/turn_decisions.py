"""The decisions of one turn of the dispatcher."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from crossdock.state import Attempt, Intent
from crossdock.state.tables.intents import Status
from crossdock.writing.delivery.senders import SendTask
from crossdock.writing.delivery.settlement import Settlement
from crossdock.writing.targets.outcomes import Outcome


@dataclass(slots=True)
class Decisions:
    """The decisions of one turn, stored in one transaction.

    Attributes:
        settled: Intents that this run is done with.
        moved: Intents with a new status only: replaced by a successor, or pending until a retry.
        successors: New intents, made from what a look-up found at the target.
        attempts: The results of attempts, except for a delivery at the first attempt.
    """

    settled: list[Settlement] = field(default_factory=list)
    moved: list[Intent] = field(default_factory=list)
    successors: list[Intent] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.settled or self.moved or self.successors or self.attempts)

    def settle(self, status: Status, intent: Intent, outcome: Outcome, *, untouched: bool = False) -> None:
        intent.status = status
        self.settled.append(Settlement(intent, outcome, untouched=untouched))

    def explain(self, intent: Intent, outcome: Outcome, *, at: datetime) -> None:
        """Record why *intent* is in doubt, replacing the result of its last attempt."""
        if self.attempts and self.attempts[-1].intent_id == intent.id:
            self.attempts.pop()
        self.attempts.append(Attempt(intent.id, intent.attempts, at, "in_doubt", outcome.status, outcome.message))

    def note(self, task: SendTask, outcome: Outcome, *, at: datetime) -> None:
        """Record the result of an attempt, unless it delivered the intent at once."""
        intent = task.intent
        if task.purpose == "send" and (outcome.kind != "delivered" or intent.attempts > 1):
            attempt = Attempt(intent.id, intent.attempts, at, outcome.kind, outcome.status, outcome.message)
            self.attempts.append(attempt)
