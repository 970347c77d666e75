"""Facts about targets: the address at which a scope's records are, and references that only a target's lists show.

A target that is moved to another address may not have the records. The references are those of records that the state
does not know, or not completely: a restored state has forgotten records, and imported bindings have no content. Sources
may never show them again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, bindparam, delete, exists, literal_column, select

from crossdock.state.db import sql_types_and_statements
from crossdock.state.db.schema import bindings, meta, unknown_references
from crossdock.state.tables.record_identity_and_scope import Scope

_BEGIN = "address."


class TargetAddressesOfScopes:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, scope: Scope) -> str | None:
        """Return the address to which records of *scope* are sent; None if no run has sent any."""
        found: str | None = self._connection.execute(
            select(meta.c.value).where(meta.c.name == _row_name(scope))
        ).scalar()
        return found

    def put(self, scope: Scope, address: str) -> None:
        row = {"name": _row_name(scope), "value": address}
        sql_types_and_statements.upsert_rows(self._connection, meta, [row])


def _row_name(scope: Scope) -> str:
    """Return a name that fits the column, which is shorter than a scope may be."""
    text = f"{scope.target}.{scope.resource}.{scope.namespace}"  # the names before the namespace have no dot
    return _BEGIN + hashlib.sha256(text.encode()).hexdigest()[:32]


class UnrecordedReference(NamedTuple):
    """A reference of the record *by_id* of *by_resource*."""

    by_resource: str
    by_id: str
    resource: str
    target_id: str


_FIELDS = tuple(unknown_references.c[name] for name in UnrecordedReference._fields)
_IS_REFERRING = (  # by the index of ids: the primary key would find all records of the resource
    bindings.c.target.concat(literal_column("''")) == unknown_references.c.target,
    bindings.c.resource.concat(literal_column("''")) == unknown_references.c.by_resource,
    bindings.c.target_id == unknown_references.c.by_id,
)
_IS_LIVE = bindings.c.deleted_at.is_(None)
_IS_DELETED = exists().where(*_IS_REFERRING, ~_IS_LIVE) & ~exists().where(*_IS_REFERRING, _IS_LIVE)
_TO = sql_types_and_statements.QueryByKeys(
    select(*_FIELDS).where(
        unknown_references.c.target == bindparam("target"),
        unknown_references.c.resource == bindparam("resource"),
        ~_IS_DELETED,
    ),
    unknown_references.c.target_id,
)


class UnrecordedReferences:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def begin_reading_references(self, target: str, by_resource: str) -> None:
        """Forget the references of *by_resource*, whose list is read.

        Until `complete_reading_references`, it is one of `unread_resources`.
        """
        self._connection.execute(delete(unknown_references).where(*_refers_from_resource(target, by_resource)))
        self.add(target, [UnrecordedReference(by_resource, "", "", "")])

    def add(self, target: str, found: Iterable[UnrecordedReference]) -> None:
        rows = [{"target": target, **each._asdict()} for each in found]
        if rows:
            sql_types_and_statements.upsert_rows(self._connection, unknown_references, rows)

    def complete_reading_references(self, target: str, by_resource: str) -> None:
        self._connection.execute(
            delete(unknown_references).where(
                *_refers_from_resource(target, by_resource), unknown_references.c.by_id == ""
            )
        )

    def clear_marks_of_unfinished_readings(self) -> None:
        """Let the next run begin to read the lists of all resources that streams write."""
        self._connection.execute(delete(unknown_references).where(unknown_references.c.by_id == ""))

    def unread_resources(self, target: str) -> set[str]:
        """Return the resources whose list had to be read, and was not read to its end."""
        query = select(unknown_references.c.by_resource).where(
            unknown_references.c.target == target, unknown_references.c.by_id == ""
        )
        return set(self._connection.execute(query).scalars())

    def references_to(self, target: str, resource: str, target_ids: Sequence[str]) -> Iterator[UnrecordedReference]:
        """Yield the references to these records, except those of records that were deleted since."""
        for some in sql_types_and_statements.chunks_of_in_list(target_ids):
            for row in _TO.rows(self._connection, {"target": target, "resource": resource}, some):
                yield UnrecordedReference(*row)


def _refers_from_resource(target: str, by_resource: str) -> tuple[ColumnElement[bool], ...]:
    return unknown_references.c.target == target, unknown_references.c.by_resource == by_resource
