"""The footer of a Parquet file: how many rows it states, and what its columns are declared as.

Facts: https://github.com/apache/parquet-format (``parquet.thrift``, ``Encryption.md``, ``LogicalTypes.md``) and
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md for its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, BinaryIO

from msgspec import Struct

from crossdock.reading.formats.limited_process import CellError

MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
MAX_FOOTER = 16 << 20
"""Bytes: a column in a row group takes about a hundred."""
MAX_GROUP = 4 << 30
"""The most unpacked bytes that a row group may state. Writers make groups of 128 MiB."""
_END_BYTES = 8
_MAX_DEPTH = 32
_SHORT = 15  # a number of elements that stands in a byte of its own
_UNFINISHED = "It was cut, or is still being written: fetch it again."
_WRONG = "The file is damaged: fetch it again in binary mode; if the error remains, ask the sender to write it again."
_MAX_PRECISION = 38
_INT96 = 3


class ColumnKind(Enum):
    """What a column is that its values alone do not show."""

    UUID = "a UUID"
    TEXT = "text that is annotated as JSON or as one of some values"
    INTERVAL = "an interval of time"
    UTC = "an instant in UTC"
    OLD_INSTANTS = "a list or an object with instants of a deprecated type"


class Footer(Struct, frozen=True):
    """What a file states. `kinds` has those columns whose declaration says more than their values."""

    rows: int
    kinds: Mapping[str, ColumnKind]


def read_footer(file: BinaryIO) -> Footer:
    """Read and check the footer of a Parquet file. Raises CellError."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_BYTES))
    end = file.read()
    if end.endswith(_ENCRYPTED):
        raise _encrypted_error()
    length = int.from_bytes(end[:4], "little")
    if not end.endswith(MAGIC) or length > size - _END_BYTES - len(MAGIC):
        raise CellError("the file has no footer", "", _UNFINISHED)
    if length > MAX_FOOTER:
        hint = "Ask for fewer and larger row groups, or for several files."
        raise CellError(f"a footer of more than {MAX_FOOTER >> 20} MiB", "", hint)
    file.seek(size - _END_BYTES - length)
    try:
        found = _ThriftReader(file.read(length)).read_struct(0)
        return _footer_of_checked_struct(found)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        raise CellError("the footer is damaged", "", _WRONG) from None


def _footer_of_checked_struct(found: Mapping[int, Any]) -> Footer:
    if 8 in found:  # encryption_algorithm: the footer is readable, and columns are not
        raise _encrypted_error()
    rows, groups = _non_negative_count(found[3]), found.get(4, [])
    for number, group in enumerate(groups, 1):
        where = f"row group {number}"
        if (size := _non_negative_count(group[2])) > MAX_GROUP:
            hint = "Ask for row groups of the usual size, 128 MiB."
            raise CellError(f"states {size:,} bytes, more than the limit of {MAX_GROUP:,}", where, hint)
        if any(1 in chunk for chunk in group[1]):
            hint = "It is an index of several files: read the files themselves, and leave it out by the pattern."
            raise CellError("has its columns in another file", where, hint)
        if any({8, 9} & chunk.keys() for chunk in group[1]):
            raise _encrypted_error()
    if sum(_non_negative_count(group[3]) for group in groups) != rows:
        raise CellError(f"states {rows:,} rows, and its row groups do not", "", _WRONG)
    return Footer(rows, _column_kinds(found[2]))


def _non_negative_count(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError
    return value


def _encrypted_error() -> CellError:
    return CellError("is encrypted", "", "Ask the sender for a file without encryption; SFTP encrypts the transfer.")


def _column_kinds(schema: Sequence[Mapping[int, Any]]) -> Mapping[str, ColumnKind]:
    kinds, names, passed = dict[str, ColumnKind](), set[str](), 1
    for _ in range(_non_negative_count(schema[0].get(5, 0))):
        column = schema[passed]
        name = column[4].decode()
        if name in names:
            raise CellError(
                "two columns have the same name", f"column {name}", "Ask the sender to name each column once."
            )
        names.add(name)
        if column.get(8, 0) > _MAX_PRECISION and column.get(1) is not None:
            hint = f"Ask for a decimal of at most {_MAX_PRECISION} digits."
            raise CellError(f"a decimal of {column[8]:,} digits", f"column {name}", hint)
        start, passed = passed + 1, _schema_index_after_column(schema, passed)
        is_old = any(_has_utc_converted_type(inner) or inner.get(1) == _INT96 for inner in schema[start:passed])
        if (kind := ColumnKind.OLD_INSTANTS if is_old else _column_kind(column)) is not None:
            kinds[name] = kind
    return kinds


def _column_kind(column: Mapping[int, Any]) -> ColumnKind | None:
    logical = column.get(10, {})
    if 14 in logical:
        return ColumnKind.UUID
    if {4, 12} & logical.keys() or column.get(6) in {4, 19}:
        return ColumnKind.TEXT
    if column.get(6) == 21:
        return ColumnKind.INTERVAL
    return ColumnKind.UTC if _has_utc_converted_type(column) else None


def _has_utc_converted_type(column: Mapping[int, Any]) -> bool:
    """Return whether it has the converted type of an instant alone, which is one in UTC (LogicalTypes.md)."""
    return column.get(6) in {9, 10} and not column.get(10)


def _schema_index_after_column(schema: Sequence[Mapping[int, Any]], start: int) -> int:
    """Return the place after a column and those inside of it."""
    wanted, place = 1, start
    while wanted:
        wanted += _non_negative_count(schema[place].get(5, 0)) - 1
        place += 1
    return place


class _ThriftReader:
    """Reads values of Thrift's compact protocol: a struct is a mapping from the numbers of its fields."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def read_struct(self, depth: int) -> dict[int, Any]:
        if depth > _MAX_DEPTH:
            raise ValueError
        found, number = dict[int, Any](), 0
        while head := self._read_byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self._read_signed()
            found[number] = kind == 1 if kind in {1, 2} else self._read_value(kind, depth)
        return found

    def _read_value(self, kind: int, depth: int) -> Any:
        match kind:
            case 1 | 2 | 3:  # a truth value in a list, or a byte
                return self._read_byte()
            case 4 | 5 | 6:
                return self._read_signed()
            case 7:
                return self._read_bytes(8)
            case 8:
                return self._read_bytes(self._read_unsigned())
            case 9 | 10:
                return self._read_list(depth + 1)
            case 12:
                return self.read_struct(depth + 1)
        raise ValueError

    def _read_list(self, depth: int) -> list[Any]:
        head = self._read_byte()
        size, kind = head >> 4, head & 15
        if depth > _MAX_DEPTH:
            raise ValueError
        return [self._read_value(kind, depth) for _ in range(self._read_unsigned() if size == _SHORT else size)]

    def _read_byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _read_bytes(self, size: int) -> bytes:
        self._at += size
        if self._at > len(self._data):
            raise ValueError
        return self._data[self._at - size : self._at]

    def _read_unsigned(self) -> int:
        value = shift = 0
        while (byte := self._read_byte()) & 128:
            value |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise ValueError
        return value | byte << shift

    def _read_signed(self) -> int:
        value = self._read_unsigned()
        return value >> 1 ^ -(value & 1)
