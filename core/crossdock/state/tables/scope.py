"""Scopes: where record keys are unique."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace

from sqlalchemy import ColumnElement, Table, and_, bindparam

CONTRIBUTION = "+"  # prefix of a contributing stream; no namespace contains it
_LONGEST = 128  # characters of the column


@dataclass(frozen=True, slots=True)
class Scope:
    """One target's resource in one namespace, or the contributions of one stream to the records of such a scope."""

    target: str
    resource: str
    namespace: str

    def contribution(self, stream: str) -> Scope:
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
        """The scope of the records that a contribution belongs to; for others the scope itself."""
        return replace(self, namespace=self.namespace.partition(CONTRIBUTION)[0]) if self.is_contribution else self

    @property
    def columns(self) -> dict[str, str]:
        return asdict(self)


def within(table: Table, scope: Scope) -> ColumnElement[bool]:
    return and_(*(table.c[name] == value for name, value in scope.columns.items()))


def within_given(table: Table) -> ColumnElement[bool]:
    """Return the same condition with the `Scope.columns` as parameters of the statement."""
    return and_(*(table.c[name] == bindparam(name) for name in Scope.__slots__))
