"""Binary records of a fixed-width file: found in its bytes, checked against the layout, split by type, read in columns.

They have one length, an end, or descriptor words before them (IBM, DFSMS Using Data Sets).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NoReturn

import polars as pl
from msgspec import Struct, field

from crossdock.errors import RefusedError
from crossdock.reading.formats.cobol_copybook import OccursTable
from crossdock.reading.formats.file_formats import LeniencyCounts
from crossdock.reading.formats.fixed_width_columns import (
    RAW,
    TEXT,
    FixedColumn,
    cell_text_expression,
    invalid_cell_expression,
    read_whole_number_or_none,
)
from crossdock.reading.formats.fixed_width_layout import FixedWidthFormat
from crossdock.reading.formats.parallel_map import map_in_parallel
from crossdock.reading.formats.polars_delimited_parser import MAX_FRAME_CELLS
from crossdock.reading.formats.record_types import RecordHierarchy, check_hierarchy_and_select_rows, declared_type_code
from crossdock.reading.formats.text_decoding import MAX_RECORD_BYTES
from crossdock.reading.wrappers.stream_compression import open_and_unpack_if_gzip
from crossdock.reading.wrappers.wrapper import Openable, Readable
from crossdock.values.raw_rows_and_records import LINE

_CHUNK_BYTES = 1 << 20
_WORD = 4
_SPANNED = {1, 2, 3}  # the first, the last and other segments
_EXTENDED = 0x80
_CUT = "The file is truncated or still being written: fetch it again in binary mode."
_WORDS = (
    "Were the words left out, or the file translated in transfer? Fetch it in binary mode with its record descriptor"
    " words, or declare another line_end."
)

FramedRecord = tuple[int, bytes]
"""The place of a record in the file, in bytes from 0, and its bytes."""


class ByteStream:
    """Reads exact numbers of bytes, and names places in errors."""

    def __init__(self, stream: Readable, name: str) -> None:
        self._stream, self._name = stream, name
        self._data, self._at, self._before = b"", 0, 0
        self.record_number = 0
        """The number of the last record, from 1."""

    @property
    def offset(self) -> int:
        return self._before + self._at

    def take(self, size: int) -> bytes:
        """Return the next *size* bytes; fewer only at the end of the file."""
        end = self._at + size
        if end > len(self._data):
            self._fill(size)
            end = self._at + size
        found = self._data[self._at : end]
        self._at += len(found)
        return found

    def peek(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            self._fill(size)
        return self._data[self._at : self._at + size]

    def take_until(self, end: bytes) -> tuple[bytes, bool]:
        """Return the bytes before *end*, which is passed over, and whether there was one."""
        searched = 0
        while (found := self._data.find(end, self._at + max(0, searched - len(end)))) < 0:
            size = len(self._data) - self._at
            if size > MAX_RECORD_BYTES:
                self.raise_error(f"a record of more than {MAX_RECORD_BYTES:,} bytes", self.offset, "Check line_end.")
            self._fill(size + 1)
            if len(self._data) - self._at == size:
                return self.take(size), False
            searched = size
        data, self._at = self._data[self._at : found], found + len(end)
        return data, True

    def raise_error(self, message: str, offset: int, hint: str = _CUT) -> NoReturn:
        where = f"{self._name}:{self.record_number}"
        raise RefusedError(
            f"{message}, at byte {offset} of the file (from 0)", where=where, hint=hint, code="file_damaged"
        )

    def _fill(self, size: int) -> None:
        parts = [self._data[self._at :]]
        held = len(parts[0])
        while held < size and (part := self._stream.read(_CHUNK_BYTES)):
            parts.append(part)
            held += len(part)
        self._before += self._at
        self._data, self._at = b"".join(parts), 0


def read_records_of_fixed_length(stream: ByteStream, length: int, ends: Sequence[bytes]) -> Iterator[FramedRecord]:
    """Yield records of *length* bytes, each followed by one of *ends*, the same in the whole file."""
    end = b""
    while data := stream.take(length):
        stream.record_number += 1
        offset = stream.offset - len(data)
        if len(data) < length:
            stream.raise_error(f"the file ends after {len(data):,} of the {length:,} bytes of a record", offset)
        if ends:
            end = end or next((each for each in ends if stream.peek(len(each)) == each), b"")
            found = stream.take(len(end))
            if (not end or found != end) and (found or stream.peek(1)):
                hint = "The length of the copybook or of the layout is wrong, or line_end is."
                stream.raise_error(f"no line end after the {length:,} bytes of the record", offset + length, hint)
        yield offset, data


def read_records_before_line_ends(stream: ByteStream, ends: Sequence[bytes]) -> Iterator[FramedRecord]:
    """Yield what is before each end of line: the last of *ends*, or in the whole file the first, which ends with it."""
    plain, has_return = ends[-1], None
    while stream.peek(1):
        offset = stream.offset
        stream.record_number += 1
        data, is_ended = stream.take_until(plain)
        if len(ends) > 1 and is_ended:
            returned = data.endswith(ends[0].removesuffix(plain))
            if has_return not in {None, returned}:
                hint = "Were files of two systems joined? Ask the sender to send them separately."
                stream.raise_error("the line ends in another way than those before it", offset + len(data), hint)
            has_return = returned
            data = data.removesuffix(ends[0].removesuffix(plain)) if returned else data
        yield offset, data


def read_records_after_descriptor_words(stream: ByteStream) -> Iterator[FramedRecord]:
    """Yield records that follow a record descriptor word each."""
    while word := stream.take(_WORD):
        yield _read_record_after_descriptor_word(stream, word, None)


def read_records_in_descriptor_blocks(stream: ByteStream) -> Iterator[FramedRecord]:
    """Yield the records of blocks, which begin with a block descriptor word each."""
    while word := stream.take(_WORD):
        offset = stream.offset - len(word)
        if len(word) < _WORD:
            stream.raise_error("the file ends in the middle of a block descriptor word", offset)
        is_extended = bool(word[0] & _EXTENDED)
        size = int.from_bytes(word, "big") & 0x7FFFFFFF if is_extended else int.from_bytes(word[:2], "big")
        if size < 2 * _WORD or (not is_extended and word[2:] != b"\0\0"):
            stream.raise_error(f"X'{word.hex().upper()}' is not a block descriptor word", offset, _WORDS)
        end = offset + size
        while stream.offset < end:
            yield _read_record_after_descriptor_word(stream, stream.take(_WORD), end)


def _read_record_after_descriptor_word(stream: ByteStream, word: bytes, block_end: int | None) -> FramedRecord:
    stream.record_number += 1
    offset, size = stream.offset, int.from_bytes(word[:2], "big")
    if len(word) < _WORD or size < _WORD or word[2:] != b"\0\0" or (block_end and offset - _WORD + size > block_end):
        _raise_descriptor_word_error(stream, word, offset - len(word), size)
    data = stream.take(size - _WORD)
    if len(data) < size - _WORD:
        states = (
            f"{_descriptor_word_text(word)} states {size - _WORD:,} bytes, beyond the end of the file: {len(data):,} "
            "follow"
        )
        stream.raise_error(states, offset - _WORD)
    return offset, data


def _raise_descriptor_word_error(stream: ByteStream, word: bytes, offset: int, size: int) -> NoReturn:
    if len(word) < _WORD:
        stream.raise_error("the file ends in the middle of a record descriptor word", offset)
    if size > _WORD and word[3] == 0 and word[2] in _SPANNED:
        hint = "Ask for a file without spanned records (RECFM=VB, and not VBS)."
        stream.raise_error(f"{_descriptor_word_text(word)} is that of a segment of a spanned record", offset, hint)
    if size < _WORD or word[2:] != b"\0\0":
        stream.raise_error(f"X'{word.hex().upper()}' is not a record descriptor word", offset, _WORDS)
    stream.raise_error(f"{_descriptor_word_text(word)} states a record beyond the end of its block", offset, _WORDS)


def _descriptor_word_text(word: bytes) -> str:
    return f"the record descriptor word X'{word.hex().upper()}'"


def read_records_of_computed_size(stream: ByteStream, size_of: Callable[[ByteStream], int]) -> Iterator[FramedRecord]:
    """Yield records whose size depends on what they hold; *size_of* finds it without taking bytes."""
    while stream.peek(1):
        stream.record_number += 1
        offset, size = stream.offset, size_of(stream)
        data = stream.take(size)
        if len(data) < size:
            stream.raise_error(f"the file ends after {len(data):,} of the {size:,} bytes of a record", offset)
        yield offset, data


_BATCH_BYTES, _BATCH_RECORDS = 4 << 20, 1 << 14
_OFFSET, _SIZE, _COUNT = "_offset", "_size", "_count_"
_NO_TEXT = "[\x00-\x1f\x7f-\x9f\ufffd]"
_SHOWN_BYTES = 40
_WRONG = "Was a record shifted, or has the layout changed? Correct the copybook or columns, or ask the sender."


class _RawRecordBatch(Struct):
    """Records in their order; the first has the number *first*."""

    first: int
    offsets: list[int] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)


class _PaddedRecordsOfType(Struct):
    """Records of one type: tables that take up counted elements only are filled up, so that places are the same."""

    numbers: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    counts: list[list[int]] = field(default_factory=list)
    """Of each table that depends on a count, those of the records."""
    filled: list[int] = field(default_factory=list)


class _ColumnExpressions(Struct, frozen=True):
    name: str
    column: FixedColumn
    is_odd: pl.Expr | None
    is_unset: pl.Expr | None
    cell: pl.Expr


def read_binary_records(
    path: Openable, layout: FixedWidthFormat, *, name: str, batch_rows: int, leniencies: LeniencyCounts | None
) -> Iterator[pl.DataFrame]:
    """Read the chosen records, as `FormatReader.rows` describes.

    `_line` counts records, or with ``copybook.rows`` rows.
    """
    with open_and_unpack_if_gzip(path, name=name) as opened:
        stream = ByteStream(opened, name)
        if not stream.peek(1):
            raise RefusedError(
                "the file is empty", where=name, hint="Fetch it again, or ask the sender.", code="file_empty"
            )
        counted = leniencies if leniencies is not None else LeniencyCounts()
        file = BinaryRecordParser(layout, name, counted)
        hierarchy = RecordHierarchy(
            name,
            layout.record_types_with_columns,
            layout.type_to_read,
            layout.groups,
            keeps_empty=layout.keeps_empty_groups and layout.row_making_occurs_table_name is None,
        )
        frames = check_hierarchy_and_select_rows(
            map_in_parallel(file.data_frames_by_record_type, file.batch_raw_records(stream)), hierarchy, batch_rows
        )
        yield from (
            frames
            if layout.row_making_occurs_table_name is None
            else _make_rows_of_table_elements(frames, find_row_making_occurs_table(layout), batch_rows, counted)
        )


def read_hex_cells_at_lines(
    path: Openable, layout: FixedWidthFormat, lines: Sequence[int], *, name: str
) -> Mapping[int, Mapping[str, str]]:
    """Return the bytes of the columns of the records *lines*, in hexadecimal, by number and column."""
    with open_and_unpack_if_gzip(path, name=name) as opened:
        file, wanted = BinaryRecordParser(layout, name, LeniencyCounts()), set(lines)
        framed = enumerate(file.read_framed_records(ByteStream(opened, name)), 1)
        first = takewhile(lambda record: record[0] <= max(wanted, default=0), framed)
        return {
            number: file.hex_cells_of_record(data, number, place) for number, (place, data) in first if number in wanted
        }


class BinaryRecordParser:
    """Splits records by type. Between two batches it keeps only what counts mean, so that threads may share it."""

    def __init__(self, layout: FixedWidthFormat, name: str, leniencies: LeniencyCounts) -> None:
        self._layout, self._name, self._leniencies = layout, name, leniencies
        types, place = layout.record_types_with_columns, layout.type_code_place
        codes = {each: declared_type_code(each, kind) for each, kind in types.items()}
        self._otherwise = next((each for each, code in codes.items() if code is None), None)
        self._codes = {
            code.ljust(place.length).encode(layout.encoding): each
            for each, code in codes.items()
            if code is not None and place is not None
        }
        self._tables = {each: layout.copybook_layouts[each].tables if layout.copybook_layouts else () for each in types}
        self._with_count = {each: [table for table in tables if table.counter] for each, tables in self._tables.items()}
        self._known_counts = {  # by their bytes, because they repeat
            table: dict[bytes, int]() for tables in self._with_count.values() for table in tables
        }
        self._columns = {each: [*self._column_expressions(each)] for each in types}
        widest = max(len(columns) for columns in self._columns.values())
        self._most = max(1, min(_BATCH_RECORDS, MAX_FRAME_CELLS // (widest + 2)))

    def batch_raw_records(self, stream: ByteStream) -> Iterator[_RawRecordBatch]:
        batch, size = _RawRecordBatch(1), 0
        for offset, data in self.read_framed_records(stream):
            batch.offsets.append(offset)
            batch.records.append(data)
            size += len(data)
            if len(batch.records) >= self._most or size >= _BATCH_BYTES:
                yield batch
                batch, size = _RawRecordBatch(batch.first + len(batch.records)), 0
        if batch.records:
            yield batch

    def data_frames_by_record_type(self, batch: _RawRecordBatch) -> dict[str, pl.DataFrame]:
        return {
            name: self._parse_records_of_type(name, found) for name, found in self._group_by_type_and_pad(batch).items()
        }

    def hex_cells_of_record(self, data: bytes, number: int, offset: int) -> Mapping[str, str]:
        name = self._type_of_record_or_raise(data, number)
        filled = self._record_with_padded_tables(name, data, number, offset)
        data = filled.records[0]
        absent = {
            each
            for table, counts in zip(self._with_count[name], filled.counts, strict=True)
            for element in table.elements[counts[0] :]
            for each in element.values()
        }
        columns = self._layout.record_types_with_columns[name].columns.items()
        return {
            each: data[column.at - 1 : column.last_position].hex().upper()
            for each, column in columns
            if each not in absent
        }

    def read_framed_records(self, stream: ByteStream) -> Iterator[FramedRecord]:
        layout = self._layout
        match layout.line_end:
            case "rdw":
                return read_records_after_descriptor_words(stream)
            case "bdw":
                return read_records_in_descriptor_blocks(stream)
            case "none" if layout.tables_omit_unused_elements and any(self._with_count.values()):
                return read_records_of_computed_size(stream, self._size_of_next_record)
        ends = [end.encode(layout.encoding) for end in _ENDS[layout.line_end]]
        lengths = {layout.record_length(name) for name in layout.record_types_with_columns}
        if ends and not layout.has_packed_or_binary_columns:
            return read_records_before_line_ends(stream, ends)
        return read_records_of_fixed_length(stream, max(lengths), ends)

    def _size_of_next_record(self, stream: ByteStream) -> int:
        most = max(self._layout.record_length(name) for name in self._layout.record_types_with_columns)
        data = stream.peek(most)
        name = self._type_of_record_or_raise(data, stream.record_number)
        length, first = self._layout.record_length(name), next(iter(self._with_count[name]), None)
        if first is None or (first.counter and len(data) < first.counter[1].last_position):
            return length  # such a record is cut, or has no count
        return (
            length
            - self._record_with_padded_tables(
                name, data.ljust(most, b"\0"), stream.record_number, stream.offset
            ).filled[0]
        )

    def _type_of_record_or_raise(self, data: bytes, number: int) -> str:
        place = self._layout.type_code_place
        if place is None:
            return self._layout.type_to_read
        name = self._codes.get(data[place.at - 1 : place.at - 1 + place.length], self._otherwise)
        if name is None:
            hint = "Declare its type in record_types, or ask the sender what it is."
            self._raise_error("a record of no declared type", number, place.at, hint)
        return name

    def _group_by_type_and_pad(self, batch: _RawRecordBatch) -> dict[str, _PaddedRecordsOfType]:
        if self._layout.type_code_place is None:
            numbers = list(range(batch.first, batch.first + len(batch.records)))
            only = _PaddedRecordsOfType(numbers, batch.offsets, batch.records)
            self._pad_tables_and_fit_record_sizes(self._layout.type_to_read, only)
            return {self._layout.type_to_read: only}
        found: dict[str, _PaddedRecordsOfType] = {}
        for number, (offset, data) in enumerate(zip(batch.offsets, batch.records, strict=True), batch.first):
            name = self._type_of_record_or_raise(data, number)
            of_type = found.get(name)
            if of_type is None:
                of_type = found[name] = _PaddedRecordsOfType()
            of_type.numbers.append(number)
            of_type.offsets.append(offset)
            of_type.records.append(data)
        for name, of_type in found.items():
            self._pad_tables_and_fit_record_sizes(name, of_type)
        return found

    def _pad_tables_and_fit_record_sizes(self, name: str, of_type: _PaddedRecordsOfType) -> None:
        """Fill up tables, so that places are the same in all records, and check the sizes."""
        self._pad_tables_to_full_size(name, of_type)
        of_type.sizes = [len(data) for data in of_type.records]
        least, most = self._layout.least_record_length(name), self._layout.record_length(name)
        if min(of_type.sizes) < least or max(of_type.sizes) > most:
            self._pad_cut_or_refuse_records(name, of_type, least, most)

    def _pad_tables_to_full_size(self, name: str, of_type: _PaddedRecordsOfType) -> None:
        records, is_counted = of_type.records, self._layout.tables_omit_unused_elements
        of_type.filled = [0] * len(records)
        for table in self._with_count[name]:
            assert table.counter is not None
            counter, known, counts = table.counter[1], self._known_counts[table], list[int]()
            start, end = counter.at - 1, counter.last_position
            for row, data in enumerate(records):
                count = known.get(data[start:end])
                if count is None:
                    offset = of_type.offsets[row] - of_type.filled[row]
                    count = known[data[start:end]] = self._read_element_count_or_raise(
                        table, data, of_type.numbers[row], offset
                    )
                counts.append(count)
                place = table.at - 1 + count * table.size
                if is_counted and count < table.most and len(data) >= place:  # else its length is told to be wrong
                    room = (table.most - count) * table.size
                    records[row] = data[:place] + bytes(room) + data[place:]
                    of_type.filled[row] += room
            of_type.counts.append(counts)

    def _record_with_padded_tables(self, name: str, data: bytes, number: int, offset: int) -> _PaddedRecordsOfType:
        one = _PaddedRecordsOfType([number], [offset], [data])
        self._pad_tables_to_full_size(name, one)
        return one

    def _read_element_count_or_raise(self, table: OccursTable, data: bytes, number: int, offset: int) -> int:
        assert table.counter is not None
        name, column = table.counter
        count = read_whole_number_or_none(column, data, self._layout.encoding)
        if count is None:
            self._raise_cell_content_error(name, column, data, number, offset)
        if not table.least <= count <= table.most:
            message = f"column {name!r} counts {count} elements of {table.name}, of {table.least} to {table.most}"
            self._raise_error(
                f"{message}, at byte {offset + column.at - 1} of the file (from 0)", number, column.at, _WRONG
            )
        return count

    def _pad_cut_or_refuse_records(self, name: str, of_type: _PaddedRecordsOfType, least: int, most: int) -> None:
        layout, space = self._layout, " ".encode(self._layout.encoding)
        short = long = 0
        for row, data in enumerate(of_type.records):
            beyond = data[most:]
            if len(data) < least and layout.short_lines == "pad":
                short += 1
            elif beyond and self._may_drop_excess_of_record(beyond, space):
                of_type.records[row] = data[:most]
                long += 1
            elif not least <= len(data) <= most:
                padded = of_type.filled[row]
                expected = f"{least - padded:,}" if least == most else f"{least - padded:,} to {most - padded:,}"
                message = f"{len(data) - padded:,} bytes instead of {expected}"
                message += f" in a record of the type {name}" if len(layout.record_types_with_columns) > 1 else ""
                hint = "Does the layout fit the file? short_lines: pad and long_lines allow other lengths."
                where = f"{message}, at byte {of_type.offsets[row]} of the file (from 0)"
                self._raise_error(where, of_type.numbers[row], min(len(data), most) - padded + 1, hint)
        self._leniencies.add("short", short)
        self._leniencies.add("long", long)
        of_type.records = [data.ljust(most, space) if len(data) < least else data for data in of_type.records]

    def _may_drop_excess_of_record(self, beyond: bytes, space: bytes) -> bool:
        how = self._layout.long_lines
        return how == "drop" or (how == "drop_empty" and not beyond.strip(space + b"\0"))

    def _parse_records_of_type(self, name: str, of_type: _PaddedRecordsOfType) -> pl.DataFrame:
        columns, encoding = self._columns[name], self._layout.encoding
        counts = {
            f"{_COUNT}{table.name}": pl.Series(counts, dtype=pl.Int64)
            for table, counts in zip(self._with_count[name], of_type.counts, strict=True)
        }
        records = pl.DataFrame(
            {
                RAW: pl.Series(of_type.records, dtype=pl.Binary),
                TEXT: pl.Series([data.decode(encoding, "replace") for data in of_type.records], dtype=pl.String),
                LINE: pl.Series(of_type.numbers, dtype=pl.UInt64),
                _OFFSET: pl.Series(of_type.offsets, dtype=pl.UInt64),
                _SIZE: pl.Series(of_type.sizes, dtype=pl.Int64),
                **counts,
            }
        )
        odd = [each for each in columns if each.is_odd is not None]
        unset = [each.is_unset for each in columns if each.is_unset is not None]
        checks = [
            _any_invalid_cell_expression(odd).any() if odd else pl.lit(value=False),
            pl.sum_horizontal(each.sum() for each in unset) if unset else pl.lit(0),
        ]
        cells = [each.cell.alias(each.name) for each in columns]
        found = records.lazy().select(checks[0].alias("_odd"), checks[1].alias("_unset"), LINE, *cells).collect()
        if found["_odd"][0]:
            self._raise_first_invalid_cell_error(name, records, odd)
        self._leniencies.add("unset", int(found["_unset"][0]))
        return found.drop("_odd", "_unset")

    def _column_expressions(self, name: str) -> Iterator[_ColumnExpressions]:
        """Yield how each column is read: a cell is empty if it is not there, or unset."""
        elements = {
            each: (table, number)
            for table in self._tables[name]
            if table.counter is not None
            for number, of_element in enumerate(table.elements, 1)
            for each in of_element.values()
        }
        pads = self._layout.short_lines == "pad"
        for each, column in self._layout.record_types_with_columns[name].columns.items():
            odd, text = self._invalid_cell_expression(column), cell_text_expression(column, self._layout.encoding)
            is_there: list[pl.Expr] = []
            if (element := elements.get(each)) is not None:
                is_there.append(pl.col(f"{_COUNT}{element[0].name}") >= element[1])
            if pads:
                is_there.append(pl.col(_SIZE) >= column.at)
            unset = (
                _unset_cell_expression(column, self._layout.encoding) if self._layout.unset_cells == "empty" else None
            )
            if unset is not None and is_there:
                unset &= pl.all_horizontal(is_there)
            is_read = [*is_there, *([] if unset is None else [~unset])]
            if is_read:
                text = pl.when(pl.all_horizontal(is_read)).then(text).otherwise(pl.lit(""))
                odd = None if odd is None else odd & pl.all_horizontal(is_read)
            if pads:
                is_cut = (pl.col(_SIZE) >= column.at) & (pl.col(_SIZE) < column.last_position)
                is_cut = is_cut if column.usage or column.decimals is not None else pl.lit(value=False)
                odd = is_cut if odd is None else odd | is_cut
            yield _ColumnExpressions(each, column, odd, unset, text)

    def _invalid_cell_expression(self, column: FixedColumn) -> pl.Expr | None:
        if column.usage is None and column.decimals is None:
            return pl.col(TEXT).str.slice(column.at - 1, column.length).str.contains(_NO_TEXT)
        return invalid_cell_expression(column, self._layout.encoding)

    def _raise_first_invalid_cell_error(
        self, name: str, records: pl.DataFrame, odd: Sequence[_ColumnExpressions]
    ) -> NoReturn:
        row = records.filter(_any_invalid_cell_expression(odd)).head(1)
        found = next(each for each in odd if each.is_odd is not None and row.select(each.is_odd).item())
        filled = sum(
            (table.most - row[f"{_COUNT}{table.name}"][0]) * table.size
            for table in self._with_count[name]
            if self._layout.tables_omit_unused_elements and table.at + table.most * table.size <= found.column.at
        )
        self._raise_cell_content_error(
            found.name, found.column, row[RAW][0], row[LINE][0], row[_OFFSET][0] - filled, filled
        )

    def _raise_cell_content_error(
        self, name: str, column: FixedColumn, data: bytes, number: int, offset: int, filled: int = 0
    ) -> NoReturn:
        at = column.at - filled
        what, held = column.expected_content, data[column.at - 1 : column.last_position]
        if column.usage is None and column.decimals is None:
            text = held.decode(self._layout.encoding, "replace")
            bad = next(found.start() for found in re.finditer(_NO_TEXT, text))
            what, held = f"text: its byte {bad + 1} is X'{held[bad]:02X}'", b""
        shown = f": X'{held[:_SHOWN_BYTES].hex().upper()}'" if held else ""
        message = f"column {name!r}, positions {at} to {at + column.length - 1}, is not {what}{shown}"
        hint = _WRONG
        if b"" in {data[column.at - 1 : column.last_position].strip(fill) for fill in (b"\0", b"\xff")}:
            hint += " unset_cells: empty allows X'00' and X'FF' of cells without a value."
        self._raise_error(f"{message}, at byte {offset + column.at - 1} of the file (from 0)", number, at, hint)

    def _raise_error(self, message: str, number: int, position: int, hint: str) -> NoReturn:
        raise RefusedError(message, where=f"{self._name}:{number}:{position}", hint=hint, code="file_damaged")


_ENDS = {"line_feed": ("\r\n", "\n"), "nel": ("\x85",), "none": ()}


def _any_invalid_cell_expression(odd: Sequence[_ColumnExpressions]) -> pl.Expr:
    return pl.any_horizontal(each.is_odd for each in odd if each.is_odd is not None)


def _unset_cell_expression(column: FixedColumn, encoding: str) -> pl.Expr | None:
    if column.usage not in {None, "packed"}:
        return None
    held = pl.col(RAW).bin.slice(column.at - 1, column.length)
    fills = [b"\0", b"\xff", *([" ".encode(encoding)] if column.usage else [])]
    return pl.any_horizontal(held == pl.lit(fill * column.length) for fill in fills)


def find_row_making_occurs_table(layout: FixedWidthFormat) -> OccursTable:
    return next(
        table
        for table in layout.copybook_layouts[layout.type_to_read].tables
        if table.name == layout.row_making_occurs_table_name
    )


def _make_rows_of_table_elements(
    frames: Iterator[pl.DataFrame], table: OccursTable, batch_rows: int, leniencies: LeniencyCounts
) -> Iterator[pl.DataFrame]:
    """Make a row of each element of *table*, with the columns outside of it, and its number as ``TABLE(n)``."""
    inner = {name for element in table.elements for name in element.values()}
    counter = table.counter[0] if table.counter else None
    before = 0
    for frame in frames:
        others = [name for name in frame.columns if name not in inner and name != LINE]
        count = pl.lit(table.most) if counter is None else pl.col(counter).cast(pl.Int64)
        leniencies.add("without_elements", frame.select((count < 1).sum()).item())
        parts = [
            frame.filter(count >= number).select(
                *others,
                pl.lit(str(number)).alias(f"{table.name}(n)"),
                *(pl.col(held).alias(base) for base, held in element.items()),
                LINE,
                pl.lit(number).alias(_COUNT),
            )
            for number, element in enumerate(table.elements, 1)
        ]
        rows = pl.concat(parts).sort(LINE, _COUNT).drop(_COUNT, LINE)
        lines = pl.int_range(before + 1, before + 1 + rows.height, dtype=pl.UInt64, eager=True)
        rows = rows.with_columns(lines.alias(LINE))
        before += rows.height
        yield from rows.iter_slices(batch_rows) if rows.height else [rows]


def cell_places_of_table_rows(table: OccursTable, columns: Mapping[str, str]) -> Mapping[str, str]:
    """Return *columns*, what is known of each column of records, by the columns of rows of *table*."""
    inner = {name for element in table.elements for name in element.values()}
    kept = {name: known for name, known in columns.items() if name not in inner}
    first = {base: f"{columns[held]} of the first element" for base, held in table.elements[0].items()}
    return {**kept, f"{table.name}(n)": f"element of {table.name}", **first}
