"""The audit log: its page, and the entry of whoever sees personal data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta

from starlette.responses import Response

from crossdock.console.page_tables import Cell, Link, table
from crossdock.console.visits import PageError, Visit
from crossdock.errors import CrossdockError
from crossdock.runs import audit_lines
from crossdock.state import AuditEntry, AuditFilter
from crossdock.state.tables.audit_log import VIEWED
from crossdock.values.actor import Actor, acting_as
from crossdock.values.display_times import instant_text

_COLUMNS = ("when", "who", "from", "action", "about", "change", "reason", "outcome")
_LISTED = 50
_WAITS_S = 1.0  # for other writers: the person waits for the page


def listed(visit: Visit) -> Response:
    query = {name: visit.query.get(name, "").strip() for name in ("person", "action", "since", "until")}
    since, until = (_day(query[name]) for name in ("since", "until"))
    choice = AuditFilter(query["person"] or None, query["action"] or None, since, until and until + timedelta(days=1))
    with visit.reading() as tx:
        found = tx.audit_log.listed(choice, limit=_LISTED + 1, before=_number(visit.query.get("before", "")))
    older = visit.link("audit", **query, before=found[_LISTED - 1].id) if len(found) > _LISTED else ""
    return visit.show(
        "audit.html",
        f"Audit log of {visit.of_tenant.name}",
        query=query,
        entries=table(_COLUMNS, (_row(visit, entry) for entry in found[:_LISTED]), kind="audit"),
        older=older,
    )


def audit_viewing(visit: Visit, stream: str, key: str) -> None:
    """Log that the visitor sees personal data of a record. Raises PageError if it cannot be logged at once."""
    with acting_as(Actor(visit.person.name, visit.address)):
        entry = AuditEntry.new(VIEWED, f"record {stream} {key}", at=visit.now)
    try:
        with closing(visit.of_tenant.open_state(waits_s=_WAITS_S)) as state, state.begin() as tx:
            tx.audit_log.put(entry)
    except CrossdockError as error:
        message = "The personal data is not shown, because the audit log could not be written."
        raise PageError(503, message, f"Load the page again. {error.message}") from error


def _row(visit: Visit, entry: AuditEntry) -> Iterator[Cell]:
    yield instant_text(entry.at)
    yield Link(entry.person, visit.link("audit", person=entry.person))
    yield entry.address
    yield Link(entry.action, visit.link("audit", action=entry.action))
    yield subject_cell(visit, entry.subject)
    yield audit_lines.change_text(entry)
    yield entry.reason
    yield [entry.outcome, entry.error] if entry.error else entry.outcome


def subject_cell(visit: Visit, subject: str) -> Cell:
    """Return *subject* with a link to its page, if it has one."""
    kind, _, name = subject.partition(" ")
    stream, _, key = name.partition(" ")
    addresses = {
        "run": lambda: visit.link("runs", name),
        "record": lambda: visit.link("record", stream=stream, key=key),
        "stream": lambda: visit.link("records", stream=name),
        "job": lambda: visit.link("runs", job=name),
        "wave": lambda: visit.link("migration"),
        "migration": lambda: visit.link("migration"),
        "connection": lambda: visit.link("connections"),
    }
    return Link(subject, addresses[kind]()) if kind in addresses else subject


def _day(text: str) -> datetime | None:
    """Return the beginning of a date in UTC; None for what is no date, or none of this era."""
    try:
        day = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
    except ValueError:
        return None
    return day if 1900 < day.year < 9999 else None


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 18 else None
