"""One row of the audit log for each change by a person, in the transaction of the change if it has only one; as texts.

Runs write theirs with their beginning and end: see `crossdock.runs.active_run` and `run_start_and_stop_requests`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, TypeVar

from msgspec import structs

from crossdock.config.project.project import Project
from crossdock.errors import CrossdockError, NotConfirmedError, StateError, as_crossdock_error
from crossdock.state import AuditEntry, AuditFilter, Transaction
from crossdock.values.clock import Clock
from crossdock.values.texts_of_numbers_and_times import instant_text

_SHOWN = ("at", "person", "address", "action", "subject", "reason", "before", "after", "outcome", "error")
_WORDS = {None: "none", True: "yes", False: "no"}


def audit_entry_document(entry: AuditEntry) -> dict[str, Any]:
    return {"id": entry.id} | {name: getattr(entry, name) for name in _SHOWN}


def audit_before_and_after_text(entry: AuditEntry) -> str:
    """Return what was before and what is after: ``rejected: 3 -> dropped: 3``."""
    before, after = _facts_text(entry.before), _facts_text(entry.after)
    return f"{before} -> {after or 'nothing'}" if before else after


def audit_entry_text(entry: AuditEntry) -> str:
    """Return the whole entry but for its time, person and outcome."""
    remarks = (audit_before_and_after_text(entry), entry.error, entry.reason and f"reason: {entry.reason}")
    return "; ".join((f"{entry.action}, {entry.subject}", *filter(None, remarks)))


def job_paused_by_sentence(tx: Transaction, job: str) -> str:
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


T = TypeVar("T")


class AuditedChange:
    """A change that a person makes; *entry* is what the audit log gets, as far as it is known."""

    def __init__(self, entry: AuditEntry) -> None:
        self.entry = entry

    def set_before_and_after(self, *, before: Any = None, after: Any = None, reason: str = "") -> None:
        """Note what was changed. The person may have given the *reason* with the command itself."""
        self.entry = structs.replace(self.entry, before=before, after=after, reason=reason or self.entry.reason)

    def store_audit_entry(
        self, tx: Transaction, *, before: Any = None, after: Any = None, reason: str = "", subject: str = ""
    ) -> None:
        """Store what *tx* changes. The *subject* may be known only now."""
        self.set_before_and_after(before=before, after=after, reason=reason)
        self.entry = structs.replace(self.entry, subject=subject or self.entry.subject)
        tx.audit_log.put(self.entry)


@contextmanager
def audited_change_in_one_transaction(
    project: Project, action: str, subject: str, *, clock: Clock
) -> Iterator[AuditedChange]:
    """Log a change of one transaction, which calls `AuditedChange.store_audit_entry`. An error of the block is logged
    in place of it.
    """
    change = AuditedChange(AuditEntry.new_by_current_actor(action, subject, at=clock.now()))
    try:
        yield change
    except NotConfirmedError:
        raise
    except CrossdockError as error:
        _store_failure_in_audit_log(project, change.entry, error)
        raise


def change_state_exclusively_with_audit(
    project: Project,
    action: str,
    subject: str,
    work: Callable[[Transaction, AuditedChange], T],
    *,
    clock: Clock,
    restored: bool = False,
) -> T:
    """Run *work* in one transaction while no run uses the state. It calls `AuditedChange.store_audit_entry`."""
    with (
        audited_change_in_one_transaction(project, action, subject, clock=clock) as change,
        project.open_state_exclusively(restored=restored) as state,
    ):
        return state.run_transaction(lambda tx: work(tx, change))


@contextmanager
def audited_change_with_begin_and_end(
    project: Project, action: str, subject: str, *, clock: Clock, warn_unlogged: Callable[[str], None] | None = None
) -> Iterator[AuditedChange]:
    """Log the beginning and the end of a change that is not one transaction; the block calls
    `AuditedChange.set_before_and_after`.

    *warn_unlogged* is called if the state cannot be used, for a change that does not need it. Without it, none is made.
    """
    change = AuditedChange(AuditEntry.new_by_current_actor(action, subject, at=clock.now()))
    try:
        _store_entry_in_own_transaction(project, structs.replace(change.entry, outcome="begun"))
    except StateError as error:
        if warn_unlogged is None:
            raise
        warn_unlogged(f"the audit log does not have this: {error.message}")
        yield change
        return
    try:
        yield change
    except BaseException as error:
        _store_failure_in_audit_log(project, change.entry, as_crossdock_error(error))
        raise
    try:
        _store_entry_in_own_transaction(project, change.entry)
    except StateError as error:
        message = f"'{action}' is done, but the audit log only has its beginning: {error.message}"
        raise StateError(message, where=error.where, hint=error.hint, code="audit_incomplete") from error


def _store_entry_in_own_transaction(project: Project, entry: AuditEntry) -> None:
    with closing(project.open_state()) as state:
        state.run_transaction(lambda tx: tx.audit_log.put(entry))


def _store_failure_in_audit_log(project: Project, entry: AuditEntry, error: CrossdockError) -> None:
    """Log *error*. If that fails for another reason, the error says so as well."""
    try:
        _store_entry_in_own_transaction(project, entry.with_failure(error))
    except CrossdockError as unwritten:
        add_unlogged_hint(error, unwritten)


def add_unlogged_hint(error: CrossdockError, unwritten: CrossdockError) -> None:
    """Add to *error* that the audit log does not have it, unless it is the reason of that itself."""
    if unwritten.message == error.message:
        return
    said = f"the audit log does not have this: {unwritten.message}"
    error.hint = f"{error.hint}; {said}" if error.hint else said
