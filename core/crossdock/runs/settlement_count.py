"""Counts of settled operations in the tallies of a run (law 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crossdock.state import Intent
from crossdock.values.tally import Term

if TYPE_CHECKING:
    from crossdock.runs.run_report import Report
    from crossdock.writing.delivery.settlement import Settlement
    from crossdock.writing.targets.target import Target


class SettlementCount:
    """Counts each operation once, in the tally of its stream. `resuming` has the ids that an earlier run left."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._opened: set[tuple[str, int]] = set()  # records with a settled first step
        self.resuming: set[int] = set()

    def count_carried_over(self, intents: Sequence[Intent]) -> None:
        """Count what an earlier run left. The record of a first step waits, and is counted with the waiting ones."""
        for intent in intents:
            if intent.step != "open":
                self._report.tally(intent.identity.stream).count("carried_over")

    def count(self, item: Settlement) -> bool:
        """Count a settled operation. Return False for the first of two steps, whose record continues to wait."""
        intent, identity = item.intent, item.intent.identity
        tally = self._report.tally(identity.stream)
        record = identity.stream, identity.key_hash
        if intent.step != "open":
            first_time = intent.operation == "create" or record in self._opened
            tally.count("carried_over", item.acknowledged)
            tally.count(settled_term(item, first_time=first_time))
            return True
        if intent.operation == "create":  # otherwise it was taken over
            self._opened.add(record)
        if intent.status == "rejected":  # the record no longer waits
            tally.count("carried_over", intent.id in self.resuming)
            tally.count("rejected")
        return False


def settled_term(item: Settlement, *, first_time: bool) -> Term:
    intent = item.intent
    if intent.status in {"rejected", "handed_over"}:
        return "rejected" if intent.status == "rejected" else "handed_over"
    if intent.status != "delivered":
        return "carried_on"
    return "suppressed" if item.untouched else delivered_term(intent.operation, first_time=first_time)


def expected_term(target: Target, resource: str, operation: str, *, first_time: bool) -> Term:
    """Return the term of an operation that *target* takes; see `delivered_term`."""
    kind = target.resources.get(resource)  # a connection may have lost it
    is_awaited = kind is not None and kind.batch is not None and kind.batch.acknowledged_within_s is not None
    return "handed_over" if is_awaited else delivered_term(operation, first_time=first_time)


def delivered_term(operation: str, *, first_time: bool) -> Term:
    """Return the term of a delivered operation. *first_time* means that this run creates the record, even in two."""
    if operation == "delete":
        return "deleted"
    return "created" if first_time else "updated"
