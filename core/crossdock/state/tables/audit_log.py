"""The audit log: what people have changed, or seen of personal data. It never has data of records, or secrets."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, Self
from uuid import uuid4

from msgspec import Struct, structs
from sqlalchemy import ColumnElement, Connection, Select, func, insert, literal, select, tuple_, update

from crossdock.errors import ConfigError, CrossdockError, RefusedError, StateBusyError
from crossdock.printable import printable
from crossdock.state.db.schema import audit_log as table
from crossdock.state.db.sql_types_and_statements import UtcDateTime
from crossdock.state.tables.run_history import UNRECORDED
from crossdock.values.acting_person_and_process import LONGEST_NAME, current_actor

Outcome = Literal["begun", "done", "refused", "failed"]
LONGEST_SUBJECT = 600  # characters: PostgreSQL indexes no text of more than 2,700 bytes
_LONGEST = {
    "person": LONGEST_NAME,
    "address": LONGEST_NAME,
    "subject": LONGEST_SUBJECT,
    "reason": 1_000,
    "error": 1_000,
}


class AuditEntry(Struct, frozen=True):
    """One change, or what a person has looked at.

    Attributes:
        token: Identifies the change, which has one row although its end is stored later, or its transaction is retried.
        action: The command: ``records drop``; or `VIEWED`.
        subject: A kind and a name: ``stream wms.lots``, ``record wms.lots 17``, ``run 3``, ``job nightly``,
            ``wave lots``, ``migration acme``, ``connection shop``, ``bindings``, ``undo``, ``state``.
        before: Counts, ids or decisions, as a text or an object of exact JSON; None if there is nothing to say.
        after: The same.
        outcome: ``begun`` until the end is stored, of what has more than one transaction.
    """

    token: str
    at: datetime
    person: str
    address: str
    action: str
    subject: str
    reason: str = ""
    before: Any = None
    after: Any = None
    outcome: Outcome = "done"
    error: str = ""
    id: int = 0

    @classmethod
    def new_by_current_actor(
        cls, action: str, subject: str, *, at: datetime, before: Any = None, after: Any = None
    ) -> Self:
        """Return what the person who acts now has done, who is `current_actor`."""
        actor = current_actor()
        return cls(uuid4().hex, at, actor.name, actor.address, action, subject, actor.reason, before, after)

    def with_failure(self, error: CrossdockError) -> Self:
        """Return what came of it instead: *error* has prevented it, or ended it."""
        is_refusal = isinstance(error, ConfigError | RefusedError | StateBusyError)
        text = "; ".join(line.strip() for line in str(error).splitlines())
        return structs.replace(self, outcome="refused" if is_refusal else "failed", error=text)


VIEWED = "view personal data"


class AuditFilter(Struct, frozen=True):
    """Which entries: of a person, of the command *action* or a group of commands, of a subject, from *since* on."""

    person: str | None = None
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    subject: str | None = None


_FIELDS = tuple(table.c[name] for name in AuditEntry.__struct_fields__)


class AuditLog:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, entry: AuditEntry) -> None:
        """Store *entry*, or how it ended if it is stored as ``begun``. One that has ended stays as it is."""
        known = self._connection.execute(select(table.c.outcome).where(table.c.token == entry.token)).scalar()
        row = {name: getattr(entry, name) for name in AuditEntry.__struct_fields__ if name != "id"}
        row |= {name: _shortened(row[name], longest) for name, longest in _LONGEST.items()}
        if known is None:
            self._connection.execute(insert(table).values(row))
        elif known == "begun":
            del row["at"]  # it stays when it began
            self._connection.execute(update(table).where(table.c.token == entry.token).values(row))

    def mark_run_of_person_as_killed(self, run_id: int) -> None:
        """Record that the run of a person was killed."""
        of_run = table.c.subject == f"run {run_id}", table.c.outcome == "begun"
        changes = {"outcome": "failed", "error": UNRECORDED.message}
        self._connection.execute(update(table).where(*of_run).values(changes))

    def listed(self, choice: AuditFilter, *, limit: int, before: int | None = None) -> list[AuditEntry]:
        """Return the latest entries, newest first; of those that are older than the one with the id *before*."""
        query = self._filtered(select(*_FIELDS), choice).order_by(table.c.at.desc(), table.c.id.desc()).limit(limit)
        if before is not None:
            at = self._connection.execute(select(table.c.at).where(table.c.id == before)).scalar()
            if at is None:
                return []
            query = query.where(tuple_(table.c.at, table.c.id) < tuple_(literal(at, UtcDateTime), literal(before)))
        return [AuditEntry(*row) for row in self._connection.execute(query)]

    def count(self, choice: AuditFilter) -> int:
        return int(
            self._connection.execute(self._filtered(select(func.count()).select_from(table), choice)).scalar_one()
        )

    def _filtered(self, query: Select[Any], choice: AuditFilter) -> Select[Any]:
        conditions: list[ColumnElement[bool]] = []
        if choice.person is not None:
            conditions.append(table.c.person == printable(choice.person))
        if choice.action is not None:
            conditions.append(table.c.action.in_(self._actions_in_group(printable(choice.action))))
        if choice.since is not None:
            conditions.append(table.c.at >= choice.since)
        if choice.until is not None:
            conditions.append(table.c.at < choice.until)
        if choice.subject is not None:
            conditions.append(table.c.subject == _shortened(choice.subject, LONGEST_SUBJECT))
        return query.where(*conditions)

    def _actions_in_group(self, named: str) -> list[str]:
        """Return the command *named*, or those of the group, for a look-up by the index."""
        known = self._connection.execute(select(table.c.action).distinct()).scalars()
        return [each for each in known if f"{each} ".startswith(f"{named} ")]


def _shortened(text: str, longest: int) -> str:
    return printable(text)[:longest]
