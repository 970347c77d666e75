"""The identity of one version of a record, the scope in which its key is unique, and what their tables share."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct, structs
from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, delete, literal, select

from crossdock.state.db import sql_types_and_statements

Step = Literal["whole", "open", "remove", "import"]
"""``whole``: the record as it was read. ``open``: the first of two steps of a circular reference, without the member
that closes the cycle. ``remove``: an archive or delete of a record that its snapshot no longer lists. ``import``: a
binding from a file, whose payload at the target is unknown."""
CONTRIBUTION = "+"  # prefix of a contributing stream; no namespace contains it
_LONGEST = 128  # characters of the column


class RecordIdentity(NamedTuple):
    """One version of one record, and where it was read. A frozen dataclass takes three times as long to create.

    Attributes:
        stream: ``CONNECTION.STREAM``; it determines the record's `Scope`.
        key: In text form (`crossdock.values.raw_rows_and_records.key_text`).
        key_hash: 128 bits of XXH3 over *key*.
        fingerprint: The fingerprint of the record's rows; None where no row was read (a removal).
        position: The value of the stream's ``order_by`` columns; None if it has none.
        line: Line or position in *source*, from 1; 0 where no row was read.
    """

    stream: str
    key: str
    key_hash: int
    fingerprint: int | None
    position: str | None
    source: str
    line: int

    @classmethod
    def of_table_row(cls, row: Any) -> RecordIdentity:
        return cls(*(getattr(row, name) for name in IDENTITY_COLUMNS))


IDENTITY_COLUMNS = {
    "record_fp" if name == "fingerprint" else name: f"identity.{name}" for name in RecordIdentity._fields
}
"""Columns of a table whose rows have an identity, and the attributes that they store."""


def stream_condition_with_parameter(table: Table) -> ColumnElement[bool]:
    return table.c.stream == bindparam("stream")


class DeleteByStreamAndKey:
    """Deletes rows of one stream. Usually the stream has no rows, which one cheap query shows."""

    def __init__(self, table: Table) -> None:
        self._any = select(literal(1)).select_from(table).where(stream_condition_with_parameter(table)).limit(1)
        self._delete = sql_types_and_statements.BulkStatement(
            delete(table).where(stream_condition_with_parameter(table), table.c.key_hash == bindparam("key"))
        )

    def run(self, connection: Connection, stream: str, key_hashes: Sequence[int]) -> None:
        if key_hashes and connection.execute(self._any, {"stream": stream}).first():
            self._delete.run(connection, {"key": key_hashes}, {"stream": stream})


class Scope(Struct, frozen=True):
    """One target's resource in one namespace, or the contributions of one stream to the records of such a scope."""

    target: str
    resource: str
    namespace: str

    def contribution_scope_of_stream(self, stream: str) -> Scope:
        namespace = f"{self.namespace}{CONTRIBUTION}{stream}"
        if len(namespace) > _LONGEST:
            name = hashlib.sha256(stream.encode()).hexdigest()[:32]
            namespace = f"{self.namespace}{CONTRIBUTION}{name}"
        return structs.replace(self, namespace=namespace)

    @property
    def is_contribution(self) -> bool:
        return CONTRIBUTION in self.namespace

    @property
    def whole_record_scope(self) -> Scope:
        """The scope of the records that a contribution belongs to; for others the scope itself."""
        return (
            structs.replace(self, namespace=self.namespace.partition(CONTRIBUTION)[0]) if self.is_contribution else self
        )

    @property
    def columns(self) -> dict[str, str]:
        return structs.asdict(self)


def scope_condition(table: Table, scope: Scope) -> ColumnElement[bool]:
    return and_(*(table.c[name] == value for name, value in scope.columns.items()))


def scope_condition_with_parameters(table: Table) -> ColumnElement[bool]:
    """Return the same condition with the `Scope.columns` as parameters of the statement."""
    return and_(*(table.c[name] == bindparam(name) for name in Scope.__struct_fields__))
