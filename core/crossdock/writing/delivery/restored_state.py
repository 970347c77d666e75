"""When a state that was restored from a backup is trusted again."""

from __future__ import annotations

from crossdock.state import Transaction
from crossdock.writing.delivery.in_doubt_rules import may_be_forgotten


def in_doubt(tx: Transaction) -> int:
    """How many creates are in doubt because the state may have forgotten them."""
    return sum(each.status == "in_doubt" and may_be_forgotten(each) for each in tx.intents.unsettled())


def trust_if_settled(tx: Transaction) -> None:
    """Trust the state once a complete run has compared it, and every create that was in doubt by it is settled.

    What is new after that run was not sent before the state was restored.
    """
    if tx.runs.is_compared() and not any(map(may_be_forgotten, tx.intents.unsettled())):
        tx.runs.trusted_again()
        tx.unverified.end()
