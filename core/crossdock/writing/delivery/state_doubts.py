"""What a state that was restored from a backup may be wrong about, and when it is trusted again."""

from __future__ import annotations

from dataclasses import dataclass

from crossdock.state import Transaction
from crossdock.writing.delivery.in_doubt_rules import may_be_executed_since_backup


@dataclass(frozen=True, slots=True)
class StateDoubts:
    """Why the state may be wrong: it is a restored backup, or some bindings were not compared with the target yet."""

    restored: bool = False
    unverified: bool = False


NO_DOUBTS, MAY_BE_RESTORED = StateDoubts(), StateDoubts(restored=True)


def count_in_doubt_since_backup(tx: Transaction) -> int:
    return sum(each.status == "in_doubt" and may_be_executed_since_backup(each) for each in tx.intents.unsettled())


def trust_if_settled(tx: Transaction) -> None:
    """Trust the state again after a complete comparison, if no create is in doubt because of the backup."""
    if tx.runs.is_compared() and not any(map(may_be_executed_since_backup, tx.intents.unsettled())):
        tx.runs.forget_restored()
        tx.unverified.clear_all()
