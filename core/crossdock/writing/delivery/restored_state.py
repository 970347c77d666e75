"""Trust in a state that was restored from a backup."""

from __future__ import annotations

from crossdock.state import Transaction
from crossdock.writing.delivery.in_doubt_rules import may_be_forgotten


def in_doubt(tx: Transaction) -> int:
    return sum(each.status == "in_doubt" and may_be_forgotten(each) for each in tx.intents.unsettled())


def trust_if_settled(tx: Transaction) -> None:
    """Trust the state again once a complete run has compared it and every create in doubt because of the backup is
    settled.

    What is new after that run was not sent before the state was restored.
    """
    if tx.runs.is_compared() and not any(map(may_be_forgotten, tx.intents.unsettled())):
        tx.runs.trusted_again()
        tx.unverified.end()
