"""Where record keys are unique."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace

from sqlalchemy import ColumnElement, Table, and_, bindparam

CONTRIBUTION = "+"  # before the name of a contributing stream; no namespace contains it
_LONGEST = 128  # characters of the column


@dataclass(frozen=True, slots=True)
class Scope:
    """One target's resource in one namespace; or what one stream contributes to the records of such a scope."""

    target: str
    resource: str
    namespace: str

    def contribution(self, stream: str) -> Scope:
        """Where *stream* keeps what it contributed to the records of this scope."""
        namespace = f"{self.namespace}{CONTRIBUTION}{stream}"
        if len(namespace) > _LONGEST:
            name = hashlib.sha256(stream.encode()).hexdigest()[:32]
            namespace = f"{self.namespace}{CONTRIBUTION}{name}"
        return replace(self, namespace=namespace)

    @property
    def is_contribution(self) -> bool:
        return CONTRIBUTION in self.namespace

    @property
    def whole(self) -> Scope:
        """The scope of the records that a contribution belongs to; of others the scope itself."""
        return replace(self, namespace=self.namespace.partition(CONTRIBUTION)[0]) if self.is_contribution else self

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
