"""Where record keys are unique."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, Table, and_, bindparam

from crossdock.resources import ResourceName


@dataclass(frozen=True, slots=True)
class Scope:
    """One target's resource in one namespace."""

    target: str
    resource: ResourceName
    namespace: str

    @property
    def columns(self) -> dict[str, str]:
        """Its parts by column name."""
        return asdict(self)


def within(table: Table, scope: Scope) -> ColumnElement[bool]:
    """The condition that a row of *table* belongs to *scope*."""
    return and_(*(table.c[name] == value for name, value in scope.columns.items()))


def within_given(table: Table) -> ColumnElement[bool]:
    """As `within`, for the scope whose `Scope.columns` are the statement's parameters."""
    return and_(*(table.c[name] == bindparam(name) for name in Scope.__slots__))
