"""What identifies one version of a record, and which step of its delivery a row belongs to."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

Step = Literal["whole", "open", "remove", "import"]
"""``whole``: the record as it was read. ``open``: the first of two steps of a circular reference, without the member
that closes the cycle. ``remove``: an archive or delete of a record that its snapshot no longer lists. ``import``: a
binding from a file, whose payload at the target is unknown."""


class RecordIdentity(NamedTuple):
    """One version of one record, and where it was read.

    A named tuple: as immutable as a frozen dataclass, and made in a third of the time.

    Attributes:
        stream: ``CONNECTION.STREAM``; it determines the record's `Scope`.
        key: In text form (`crossdock.records.key_text`).
        key_hash: 128 bits of XXH3 over *key*.
        fingerprint: Of the record's rows; None where no row was read (a removal).
        position: Value of the stream's ``order_by`` columns, None without.
        source: File or page.
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
    def of_row(cls, row: Any) -> RecordIdentity:
        """From a row of a table that has `COLUMNS`."""
        return cls(row.stream, row.key, row.key_hash, row.record_fp, row.position, row.source, row.line)


COLUMNS = {
    "stream": "identity.stream",
    "key": "identity.key",
    "key_hash": "identity.key_hash",
    "record_fp": "identity.fingerprint",
    "position": "identity.position",
    "source": "identity.source",
    "line": "identity.line",
}
"""Columns of a table whose rows have an identity, and the attributes they are written from."""
