"""A process with its own limits that reads one Parquet or Arrow file, because polars allocates what a file declares.

It answers the columns, and then frames: the number of bytes of each, and a stream of Arrow's with columns of text.

Facts about the footer of Parquet: https://github.com/apache/parquet-format (``parquet.thrift``, ``Encryption.md``,
``LogicalTypes.md``), and for its bytes
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO

from msgspec import Struct

from crossdock.reading.formats.limited_process import CellError, answer_request_within_limits, encode_answer_line
from crossdock.reading.formats.lost_digits_of_doubles import exact_number_text_or_none, is_float_instance

if TYPE_CHECKING:
    import polars as pl

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


class ParquetFooter(Struct, frozen=True):
    """What a file states. `kinds` has those columns whose declaration says more than their values."""

    rows: int
    kinds: Mapping[str, ColumnKind]


def read_parquet_footer(file: BinaryIO) -> ParquetFooter:
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
        return _check_and_convert_footer(found)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        raise CellError("the footer is damaged", "", _WRONG) from None


def _check_and_convert_footer(found: Mapping[int, Any]) -> ParquetFooter:
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
    return ParquetFooter(rows, _column_kinds(found[2]))


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


FRAME_BYTES = 32 << 20
"""The most bytes of text in one frame, but for one row."""
MAX_ROW = 16 << 20
"""The most bytes of text in one row."""
MAX_LINES_PER_BYTE, FREE_LINES = 4, 500_000
"""As many rows as a compressed text file of the same size may have: rows that differ take packed bytes each."""
TOO_MUCH = "It states or repeats more than it holds, or has very large row groups or batches: ask for smaller ones."
DAMAGED = (
    "It is damaged, or has a type that cannot be read or two columns of one name: fetch it again in binary mode, or ask"
    " for another export."
)
NESTED, FLOAT = "a list or an object", "a floating-point number"
_FLOAT_HINT = (
    "A floating-point number cannot hold amounts exactly: ask for a decimal; or, if it is no amount, list the column in"
    " floats; or leave it out with columns."
)
_SHORT_HINT = "Ask for a decimal, or a number of 64 bits; or leave it out with columns."
_LEAVE_OUT = "Leave it out with columns, or ask for it as text."
_OBJECTS = "Declare objects: true, which names its members by dotted paths; or leave it out with columns."
_DIGITS_HINT = "A floating-point number keeps 15 digits: ask for a decimal, or an empty cell for no number."
_DATE_HINT = "It is not in the years 1 to 9999, or INT96 holds it and is not in 1677 to 2262: ask for a TIMESTAMP."
_NOT_HELD = 2**63 - 1  # polars reads instants of INT96 that a number of 64 bits cannot hold as this one

Fault = tuple[str, str, str]
"""A column or a member of one, what is wrong with it, and what to do."""


def main() -> None:
    # Intervals would end it even where they are not read.
    os.environ |= {"POLARS_MAX_THREADS": "1", "RUST_BACKTRACE": "0", "POLARS_IMPORT_INTERVAL_AS_STRUCT": "1"}
    answer_request_within_limits(answer_request)


def answer_request(file: BinaryIO, request: Mapping[str, Any]) -> Iterator[bytes]:
    scanned, kinds, stated = _scan_file(file, is_parquet=request["kind"] == "parquet")
    if stated > FREE_LINES + MAX_LINES_PER_BYTE * (size := file.seek(0, 2)):
        raise CellError(f"states {stated:,} rows in {size:,} bytes", "", TOO_MUCH)
    table = _SelectedColumns(scanned.collect_schema(), kinds, request)
    faults = table.find_unreadable_columns()
    if request["describe"]:
        yield encode_answer_line(
            json.dumps({"columns": table.types(), "faults": faults, "rows": stated}), too_much=TOO_MUCH
        )
        return
    for place, message, hint in faults.values():
        raise CellError(message, f"column {place}", hint)
    yield encode_answer_line(json.dumps({"columns": table.names}), too_much=TOO_MUCH)
    rows = 0
    for batch in _read_batches(scanned.select(table.column_selection_expressions), stated, request):
        for part in batch.iter_slices(request["batch_rows"]):
            for piece in _split_by_size(table.convert_to_texts(part, rows), rows):
                data = BytesIO()
                piece.write_ipc_stream(data)
                yield encode_answer_line(json.dumps({"frame": data.tell()}), too_much=TOO_MUCH)
                yield data.getvalue()
            rows += part.height
    if rows != stated:  # the batches end early without an error if a thread of polars panics
        raise CellError(f"states {stated:,} rows, of which {rows:,} can be read", "", DAMAGED)


def _read_batches(selected: pl.LazyFrame, stated: int, request: Mapping[str, Any]) -> Iterator[pl.DataFrame]:
    """Yield the rows: of Parquet in slices, of which only the pages are held; of Arrow in its own batches."""
    size = request["batch_rows"]
    if request["kind"] == "parquet":
        for start in range(0, stated, size):
            yield selected.slice(start, size).collect(engine="streaming")
    else:
        yield from selected.collect_batches(chunk_size=size, maintain_order=True)


def _scan_file(file: BinaryIO, *, is_parquet: bool) -> tuple[pl.LazyFrame, Mapping[str, ColumnKind], int]:
    """Return the file, what its footer says of its columns, and how many rows it states."""
    import polars as pl  # noqa: PLC0415  after the limits of this process

    path = f"/dev/fd/{file.fileno()}"
    if is_parquet:
        footer = read_parquet_footer(file)
        return pl.scan_parquet(path, glob=False, hive_partitioning=False), footer.kinds, footer.rows
    scanned = pl.scan_ipc(path, glob=False)
    return scanned, {}, scanned.select(pl.len()).collect().item()


def _split_by_size(texts: pl.DataFrame, before: int) -> Iterator[pl.DataFrame]:
    import polars as pl  # noqa: PLC0415
    import polars.selectors as cs  # noqa: PLC0415

    sizes = texts.select(pl.sum_horizontal(cs.string().str.len_bytes().cast(pl.UInt64))).to_series()
    if (sizes.max() or 0) > MAX_ROW:  # type: ignore[operator]  # a number
        row = before + (sizes > MAX_ROW).arg_true()[0] + 1
        raise CellError(f"a row of more than {MAX_ROW >> 20} MiB", f"row {row}", TOO_MUCH)
    start, held = 0, 0
    if sizes.sum() > FRAME_BYTES:
        for number, each in enumerate(sizes):
            if number > start and held + each > FRAME_BYTES:
                yield texts[start:number]
                start, held = number, 0
            held += each
    yield texts[start:]


class _SelectedColumns:
    """The columns that are read, and their texts: a column each, or one JSON object for each row."""

    def __init__(self, schema: pl.Schema, kinds: Mapping[str, ColumnKind], request: Mapping[str, Any]) -> None:
        self._kinds = kinds
        self._objects, self._line, self._json = request["objects"], request["line"], request["json"]
        self._floats = set(request["floats"])
        self.names = list(schema) if request["columns"] is None else request["columns"]
        if missing := [name for name in self.names if name not in schema]:
            hint = "Correct columns in the format, or ask the sender."
            raise CellError("the file lacks this column", f"column {missing[0]}", hint)
        self._schema = {name: schema[name] for name in self.names}

    def types(self) -> dict[str, str]:
        return {name: str(dtype) for name, dtype in self._schema.items()}

    def find_unreadable_columns(self) -> dict[str, Fault]:
        """Return the columns that cannot be read, by name."""
        found = (
            (name, self._why_column_unreadable(dtype, self._kinds.get(name), name))
            for name, dtype in self._schema.items()
        )
        return {name: fault for name, fault in found if fault is not None}

    @property
    def column_selection_expressions(self) -> list[pl.Expr]:
        import polars as pl  # noqa: PLC0415
        import polars.selectors as cs  # noqa: PLC0415

        return [cs.by_name(name).as_expr() for name in self.names] or [pl.lit(None)]

    def convert_to_texts(self, frame: pl.DataFrame, before: int) -> pl.DataFrame:
        import polars as pl  # noqa: PLC0415

        lines = pl.int_range(before + 1, before + frame.height + 1, dtype=pl.UInt64, eager=True).alias(self._line)
        if self._objects:
            return pl.DataFrame([pl.Series(self._json, self._rows_as_json(frame, before), dtype=pl.String), lines])
        return pl.DataFrame([*(self._column_texts(frame[name], name, before) for name in self.names), lines])

    def _column_texts(self, cells: pl.Series, name: str, before: int) -> pl.Series:
        import polars as pl  # noqa: PLC0415

        if cells.dtype == pl.Float64:
            texts = _doubles_as_texts_or_raise(cells, name, before)
        else:
            self._raise_if_date_out_of_range(cells, name, before)
            value = self._converted_value_expression(pl.first(), cells.dtype, self._kinds.get(name))
            texts = cells.to_frame().select(value.cast(pl.String)).to_series()
        return texts.fill_null("").alias(name)

    def _raise_if_date_out_of_range(self, cells: pl.Series, name: str, before: int) -> None:
        import polars as pl  # noqa: PLC0415

        if (is_wrong := self._date_out_of_range_expression(pl.first(), cells.dtype)) is None:
            return
        found = cells.to_frame().select(is_wrong.fill_null(value=False)).to_series().arg_true()
        if found.len():
            raise CellError("a date that cannot be read", _cell_place(before + found[0], name), _DATE_HINT)

    def _date_out_of_range_expression(self, value: pl.Expr, dtype: Any) -> pl.Expr | None:
        """Return whether a value has a date that cannot be read; None for a type that has no dates."""
        import polars as pl  # noqa: PLC0415

        match dtype:
            case pl.Datetime() | pl.Date():
                is_wrong = (value.dt.year() < 1) | (value.dt.year() > 9999)
                return is_wrong | (value.to_physical() == _NOT_HELD) if dtype == pl.Datetime("ns") else is_wrong
            case pl.Map():
                entry = pl.List(pl.Struct({"key": dtype.key, "value": dtype.value}))
                return self._date_out_of_range_expression(value.cast(entry), entry)
            case pl.List() | pl.Array():
                listed = value.arr.to_list() if isinstance(dtype, pl.Array) else value
                inner = self._date_out_of_range_expression(pl.element(), dtype.inner)
                return None if inner is None else listed.list.eval(inner).list.any()
            case pl.Struct():
                members = [
                    self._date_out_of_range_expression(value.struct.field(f.name), f.dtype) for f in dtype.fields
                ]
                found = [each for each in members if each is not None]
                return pl.any_horizontal(found) if found else None
        return None

    def _rows_as_json(self, frame: pl.DataFrame, before: int) -> Iterator[str]:
        from crossdock.values import exact_json  # noqa: PLC0415

        for name in self.names:
            self._raise_if_date_out_of_range(frame[name], name, before)
        values = [
            self._converted_value_expression(expr, dtype, self._kinds.get(name)).alias(name)
            for expr, (name, dtype) in zip(self.column_selection_expressions, self._schema.items(), strict=False)
        ]
        for number, row in enumerate(frame.select(values).iter_rows(named=True), before):
            place = f"row {number + 1}"
            try:
                yield exact_json.dumps(_floats_as_decimals(row, place)).decode()
            except ValueError as error:
                raise CellError(f"cannot be read as JSON: {error}", place, _LEAVE_OUT) from None

    def _converted_value_expression(self, value: pl.Expr, dtype: Any, kind: ColumnKind | None) -> pl.Expr:
        """Return values as numbers and truth values, and all others as text; and members likewise."""
        import polars as pl  # noqa: PLC0415

        found = value
        match dtype:
            case pl.Datetime():
                is_zoned = dtype.time_zone is not None or kind is ColumnKind.UTC
                instant = value if dtype.time_zone or not is_zoned else value.dt.replace_time_zone("UTC")
                found = instant.dt.to_string("%Y-%m-%dT%H:%M:%S%.f" + ("%:z" if is_zoned else ""))
            case pl.Date():
                found = value.dt.to_string("%Y-%m-%d")
            case pl.Time():
                found = value.dt.to_string("%H:%M:%S%.f")
            case pl.Categorical() | pl.Enum():
                found = value.cast(pl.String)
            case pl.Binary():
                found = _uuid_text_expression(value) if kind is ColumnKind.UUID else value.cast(pl.String)
            case pl.Map():
                entry = pl.List(pl.Struct({"key": dtype.key, "value": dtype.value}))
                found = self._converted_value_expression(value.cast(entry), entry, None)
            case pl.List() | pl.Array():
                listed = value.arr.to_list() if isinstance(dtype, pl.Array) else value
                found = listed.list.eval(self._converted_value_expression(pl.element(), dtype.inner, None))
            case pl.Struct():
                members = [
                    self._converted_value_expression(value.struct.field(f.name), f.dtype, None).alias(f.name)
                    for f in dtype.fields
                ]
                found = pl.when(value.is_not_null()).then(pl.struct(members))
        return found

    def _why_column_unreadable(self, dtype: Any, kind: ColumnKind | None, path: str) -> Fault | None:
        import polars as pl  # noqa: PLC0415

        fault: Fault | None = None
        match dtype:
            case _ if kind in {ColumnKind.INTERVAL, ColumnKind.OLD_INSTANTS}:
                fault = path, kind.value, _LEAVE_OUT
            case pl.Binary() if kind not in {ColumnKind.UUID, ColumnKind.TEXT}:
                fault = path, "bytes and no text", "Ask for text, annotated as a string; or leave it out with columns."
            case pl.Float32() | pl.Float16():
                fault = (
                    path,
                    "a floating-point number of fewer than 64 bits, which holds six digits",
                    _SHORT_HINT,
                )
            case pl.Float64() if path not in self._floats:
                fault = path, FLOAT, _FLOAT_HINT
            case pl.Map() | pl.List() | pl.Array() | pl.Struct():
                fault = self._why_member_unreadable(dtype, path) if self._objects else (path, NESTED, _OBJECTS)
            case pl.Duration() | pl.Object() | pl.Unknown():
                fault = path, f"of a type that cannot be read ({dtype})", _LEAVE_OUT
        return fault

    def _why_member_unreadable(self, dtype: Any, path: str) -> Fault | None:
        import polars as pl  # noqa: PLC0415

        match dtype:
            case pl.Map():
                inner = {f"{path}.key": dtype.key, f"{path}.value": dtype.value}
            case pl.Struct():
                inner = {f"{path}.{each.name}": each.dtype for each in dtype.fields}
            case _:
                inner = {path: dtype.inner}
        for name, each in inner.items():
            if (fault := self._why_column_unreadable(each, None, name)) is not None:
                return fault
        return None


def _cell_place(row: int, column: str) -> str:
    return f"row {row + 1}, column {column}"


def _uuid_text_expression(value: pl.Expr) -> pl.Expr:
    import polars as pl  # noqa: PLC0415

    digits = value.bin.encode("hex")
    parts = [digits.str.slice(start, length) for start, length in ((0, 8), (8, 4), (12, 4), (16, 4), (20, 12))]
    return pl.concat_str(parts, separator="-")


def _doubles_as_texts_or_raise(cells: pl.Series, name: str, before: int) -> pl.Series:
    """Return doubles as their shortest texts without exponent: 12 and not 12.0, 0.1, 0.0000001."""
    import polars as pl  # noqa: PLC0415

    is_short = cells.abs() < 10**11  # all digits that it may keep then are right
    whole = (cells == cells.floor()) & is_short
    fraction = ~whole & is_short & (cells.abs() * 10_000 >= 1)
    texts = cells.to_frame().select(
        pl.when(whole)
        .then(pl.when(whole).then(pl.first()).cast(pl.Int64).cast(pl.String))
        .when(fraction)
        .then(pl.first().cast(pl.String))
    )
    found = texts.to_series()
    others = (found.is_null() & cells.is_not_null()).arg_true()
    if others.len():
        listed = found.to_list()
        for number in others:
            listed[number] = _double_as_text_or_raise(cells[number], _cell_place(before + number, name))
        found = pl.Series(listed, dtype=pl.String)
    return found


def _double_as_text_or_raise(value: Any, place: str) -> str:
    if (text := exact_number_text_or_none(value)) is None:
        raise CellError("no number, or one of more than 15 digits", place, _DIGITS_HINT)
    return text


def _floats_as_decimals(value: Any, place: str) -> Any:
    if isinstance(value, dict):
        return {name: _floats_as_decimals(each, place) for name, each in value.items()}
    if isinstance(value, list):
        return [_floats_as_decimals(each, place) for each in value]
    return Decimal(_double_as_text_or_raise(value, place)) if is_float_instance(value) else value
