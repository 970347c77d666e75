"""The audit log as texts and JSON, for the command and the console."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossdock.state import AuditEntry, AuditFilter, Transaction
from crossdock.values.texts_of_numbers_and_times import instant_text

_SHOWN = ("at", "person", "address", "action", "subject", "reason", "before", "after", "outcome", "error")
_WORDS = {None: "none", True: "yes", False: "no"}


def entry_document(entry: AuditEntry) -> dict[str, Any]:
    return {"id": entry.id} | {name: getattr(entry, name) for name in _SHOWN}


def change_text(entry: AuditEntry) -> str:
    """Return what was before and what is after: ``rejected: 3 -> dropped: 3``."""
    before, after = _facts_text(entry.before), _facts_text(entry.after)
    return f"{before} -> {after or 'nothing'}" if before else after


def entry_text(entry: AuditEntry) -> str:
    """Return the whole entry but for its time, person and outcome."""
    remarks = (change_text(entry), entry.error, entry.reason and f"reason: {entry.reason}")
    return "; ".join((f"{entry.action}, {entry.subject}", *filter(None, remarks)))


def paused_by_sentence(tx: Transaction, job: str) -> str:
    """Return who has paused *job*, and when; an empty text if the log does not have it any more."""
    found = tx.audit_log.listed(AuditFilter(action="jobs pause", subject=f"job {job}"), limit=1)
    return "".join(f"{each.person} has paused it at {instant_text(each.at)}" for each in found)


def _facts_text(facts: Any) -> str:
    if facts is None or isinstance(facts, str):
        return facts or ""
    if isinstance(facts, Mapping):
        return ", ".join(f"{name.replace('_', ' ')}: {_value_text(value)}" for name, value in facts.items())
    return _value_text(facts)


def _value_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"({_facts_text(value)})"
    if isinstance(value, list):
        return " and ".join(map(_value_text, value)) or "none"
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    return f"{value:,}" if isinstance(value, int) else str(value)
