"""The page of the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

from starlette.responses import Response

from crossdock.console.page_request_context import PageRequest, parse_whole_number_or_none
from crossdock.console.page_tables import Cell, Link, table
from crossdock.runs import audit_log
from crossdock.state import AuditEntry, AuditFilter
from crossdock.values.texts_of_numbers_and_times import instant_text

_COLUMNS = ("when", "who", "from", "action", "about", "change", "reason", "outcome")
_LISTED = 50


def show_audit_log(visit: PageRequest) -> Response:
    query = {name: visit.parameter(name) for name in ("person", "action", "since", "until")}
    since, until = (_beginning_of_day(query[name]) for name in ("since", "until"))
    choice = AuditFilter(query["person"] or None, query["action"] or None, since, until and until + timedelta(days=1))
    with visit.read_transaction() as tx:
        found = tx.audit_log.listed(
            choice, limit=_LISTED + 1, before=parse_whole_number_or_none(visit.query.get("before", ""))
        )
    older = visit.link("audit", **query, before=found[_LISTED - 1].id) if len(found) > _LISTED else ""
    return visit.render_page(
        "audit.html",
        f"Audit log of {visit.required_tenant.name}",
        query=query,
        entries=table(_COLUMNS, (_row(visit, entry) for entry in found[:_LISTED]), kind="audit"),
        older=older,
    )


def _row(visit: PageRequest, entry: AuditEntry) -> Iterator[Cell]:
    yield instant_text(entry.at)
    yield Link(entry.person, visit.link("audit", person=entry.person))
    yield entry.address
    yield Link(entry.action, visit.link("audit", action=entry.action))
    yield subject_cell(visit, entry.subject)
    yield audit_log.audit_before_and_after_text(entry)
    yield entry.reason
    yield [entry.outcome, entry.error] if entry.error else entry.outcome


def subject_cell(visit: PageRequest, subject: str) -> Cell:
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


def _beginning_of_day(text: str) -> datetime | None:
    """Return the beginning of a date in UTC; None for what is no date, or none of this era."""
    try:
        day = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
    except ValueError:
        return None
    return day if 1900 < day.year < 9999 else None
