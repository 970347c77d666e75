"""JSON Lines (jsonlines.org), one object in each line, and JSON documents (RFC 8259) with a list of records in them.

Both are read as a stream.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from json import JSONDecodeError
from typing import Annotated, Any, Literal, NoReturn, Self

import polars as pl
from pydantic import AfterValidator, model_validator

from crossdock.errors import RefusedError
from crossdock.reading.formats.file_formats import FileLayout, FormatReader, LeniencyCounts
from crossdock.reading.formats.file_kind_and_encoding_mismatch import HEAD, raise_if_head_shows_other_kind
from crossdock.reading.formats.raw_record_bytes import read_raw_records_at_lines
from crossdock.reading.formats.text_decoding import MAX_RECORD_BYTES, is_last_row_end_missing
from crossdock.reading.wrappers.stream_compression import open_and_unpack_if_gzip
from crossdock.reading.wrappers.wrapper import Openable, Readable
from crossdock.values import exact_json
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock.values.exact_json import loads_replacing_invalid_values
from crossdock.values.json_paths import MISSING, is_pointer, member_or_missing, unescaped_pointer_part
from crossdock.values.raw_rows_and_records import JSON, LINE

CHUNK_BYTES = _WINDOW_BYTES = 1 << 20
_FRAME_BYTES = 32 << 20  # bytes of text in one frame
_SCHEMA = {JSON: pl.String, LINE: pl.UInt64}
_LINE_HINT = "Each line must be one JSON object: ask the sender, or fetch the file again."
_MARK = b"\xef\xbb\xbf"


class JsonLinesFormat(FileLayout):
    """A file with one JSON object in each line, in UTF-8; its members are named by dotted paths, as those of an API."""

    kind: Literal["json_lines"]

    @property
    def has_paths(self) -> bool:
        return True


class JsonLinesReader(FormatReader[JsonLinesFormat]):
    """Reads JSON Lines; blank lines may follow the last object."""

    layout = JsonLinesFormat

    def rows(
        self, path: Openable, layout: JsonLinesFormat, *, name: str, batch_rows: int, leniencies: LeniencyCounts | None
    ) -> Iterator[pl.DataFrame]:
        del layout, leniencies
        with open_and_unpack_if_gzip(path, name=name) as stream:
            yield from make_frames_of_objects(_read_canonical_objects(stream, name), batch_rows)

    def may_be_truncated(self, path: Openable, layout: JsonLinesFormat) -> bool:
        del layout
        return is_last_row_end_missing(path, "utf-8", None)

    def record_bytes_at_lines(
        self, path: Openable, layout: JsonLinesFormat, lines: Sequence[int], *, name: str
    ) -> Mapping[int, bytes]:
        del layout
        return read_raw_records_at_lines(path, lines, "utf-8", None, name=name)

    def describe_cell_places(self, layout: JsonLinesFormat, names: Sequence[str], line: int) -> Mapping[str, str]:
        del layout
        return dict.fromkeys(names, f"line {line}")


def make_frames_of_objects(objects: Iterable[tuple[int, str]], batch_rows: int) -> Iterator[pl.DataFrame]:
    """Yield at least one frame of *objects*, each the place and the canonical text of one."""
    texts, lines, size, is_begun = list[str](), list[int](), 0, False
    for line, text in objects:
        texts.append(text)
        lines.append(line)
        size += len(text)
        if len(texts) >= batch_rows or size >= _FRAME_BYTES:
            yield _make_frame(texts, lines)
            texts, lines, size, is_begun = [], [], 0, True
    if texts or not is_begun:
        yield _make_frame(texts, lines)


def read_and_check_first_block(stream: Readable, name: str) -> bytes:
    """Return the first bytes of a file of JSON without its byte order mark; another kind of file is refused."""
    block = stream.read(CHUNK_BYTES)
    if not block:
        raise RefusedError(
            "the file is empty", where=name, hint="Fetch it again, or ask the sender.", code="file_empty"
        )
    block = block.removeprefix(_MARK)
    if block.startswith(_MARK):
        hint = "Ask the sender for one byte order mark or none, or fetch the file again."
        raise RefusedError("begins with two byte order marks", where=f"{name}:1", hint=hint, code="encoding_wrong")
    if not block.lstrip().startswith((b"{", b"[")) or b"\0" in block[:HEAD]:
        raise_if_head_shows_other_kind(block[:HEAD], "utf-8", name=name, expected="JSON")
    return block


def _make_frame(texts: list[str], lines: list[int]) -> pl.DataFrame:
    return pl.DataFrame({JSON: texts, LINE: lines}, schema=_SCHEMA)


def _read_canonical_objects(stream: Readable, name: str) -> Iterator[tuple[int, str]]:
    number, blank = 1, 0
    for lines in _read_blocks_of_lines(stream, name):
        texts = None if blank else exact_json.canonicalize_json_object_lines(lines)
        if texts is not None:
            yield from enumerate(texts, number)
        else:
            for at, line in enumerate(lines, number):
                if not line.strip():
                    blank = blank or at
                    continue
                if blank:
                    hint = "Blank lines may only follow the last object: ask the sender, or fetch the file again."
                    raise RefusedError("is a blank line", where=f"{name}:{blank}", hint=hint, code="file_damaged")
                yield at, _canonical_object_or_raise(line, f"{name}:{at}")
        number += len(lines)


def _canonical_object_or_raise(line: bytes, where: str) -> str:
    """Return the canonical text of the object in *line*. Raises RefusedError with the reason if there is none."""
    try:
        found = loads_replacing_invalid_values(line)
    except JSONDecodeError as error:
        raise RefusedError(
            f"is not JSON: {error.msg}", where=f"{where}:{error.colno}", hint=_LINE_HINT, code="file_damaged"
        ) from None
    except ValueError as error:  # the text of the error quotes nothing
        raise RefusedError(f"is not JSON: {error}", where=where, hint=_LINE_HINT, code="file_damaged") from None
    if not isinstance(found, dict):
        what = "a list" if isinstance(found, list) else "not an object"
        hint = "Each line must be one JSON object, not one document of several lines, nor a list of all."
        raise RefusedError(f"is {what}", where=where, hint=hint, code="file_damaged")
    return exact_json.dumps(found).decode()


def _read_blocks_of_lines(stream: Readable, name: str) -> Iterator[list[bytes]]:
    block = read_and_check_first_block(stream, name)
    rest, number = b"", 1
    while block:
        *whole, rest = (rest + block).split(b"\n")
        number += len(whole)
        if len(rest) > MAX_RECORD_BYTES:
            message = f"a line of more than {MAX_RECORD_BYTES:,} bytes"
            raise RefusedError(
                message, where=f"{name}:{number}", hint="Check that each line is one object.", code="file_too_large"
            )
        yield whole
        block = stream.read(CHUNK_BYTES)
    if rest:
        yield [rest]


MAX_MEMBERS = 10_000
"""Members of an object around the records: their names are kept, to refuse repeated ones."""
MAX_STEPS = 32

_DELIMITED = frozenset({dict, list, str})
_LONGEST_WORD = 9  # characters: -Infinity; after fewer, a number may go on after the window

_blanks = re.compile(r"[ \t\r\n]*+").match
_next = re.compile(r"[ \t\r\n]*+([,\]])[ \t\r\n]*+").match
_parts = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+("|\Z)|([\[{])|[\]}]', re.DOTALL).finditer
_CUT = "The file is truncated or is still being written: fetch it again."
_DOCUMENT_HINT = "The file must be one JSON document: ask the sender, or fetch the file again."
_COUNT = "The file is damaged or incomplete: fetch it again, or ask the sender what the number counts."


def validate_member_path(text: str) -> str:
    """Return *text* if it is a dotted path or JSON pointer. Raises ValueError."""
    names = split_member_path(text)
    if text.startswith("/") and not is_pointer(text):
        raise ValueError("must be a JSON pointer (RFC 6901), such as /data/items, or a dotted path")
    if len(names) > MAX_STEPS or (not text.startswith("/") and not all(names)):
        raise ValueError(f"must be a dotted path such as data.items, of at most {MAX_STEPS} names")
    return text


def split_member_path(path: str) -> tuple[str, ...]:
    """Return the names of members on a dotted path or JSON pointer, from the outermost one."""
    if path.startswith("/"):
        return tuple(map(unescaped_pointer_part, path.split("/")[1:]))
    return tuple(path.split(".")) if path else ()


class JsonFormat(FileLayout):
    """A file with one JSON document in UTF-8. Members of its records are named by dotted paths, as those of an API."""

    kind: Literal["json"]
    records: Annotated[str, AfterValidator(validate_member_path)] = ""
    """The dotted path of the list of records, such as ``data.items``; a JSON pointer such as ``/a.b/items`` where a
    name has a dot in it. Default: the document is the list."""
    count: Annotated[str, AfterValidator(validate_member_path)] | None = None
    """The path of a member outside of the records that states their number."""

    @property
    def has_paths(self) -> bool:
        return True

    @property
    def states_rows(self) -> bool:
        return self.count is not None

    @model_validator(mode="after")
    def _raise_if_count_inside_records(self) -> Self:
        records = split_member_path(self.records)
        if self.count is not None and split_member_path(self.count)[: len(records)] == records:
            raise make_pydantic_error_at_key(("count",), "must be outside of the records")
        return self


class JsonReader(FormatReader[JsonFormat]):
    """Reads JSON documents. `LINE` is the number of a record: several may be on one line of the file."""

    layout = JsonFormat

    def rows(
        self, path: Openable, layout: JsonFormat, *, name: str, batch_rows: int, leniencies: LeniencyCounts | None
    ) -> Iterator[pl.DataFrame]:
        del leniencies
        with open_and_unpack_if_gzip(path, name=name) as stream:
            yield from make_frames_of_objects(_JsonDocumentReader(stream, layout, name).records(), batch_rows)

    def describe_cell_places(self, layout: JsonFormat, names: Sequence[str], line: int) -> Mapping[str, str]:
        del layout
        return dict.fromkeys(names, f"record {line}")


class _JsonDocumentReader:
    """Reads a document from a window of its text, of which `_at` is the next character."""

    def __init__(self, stream: Readable, layout: JsonFormat, file: str) -> None:
        self._stream, self._layout, self._file = stream, layout, file
        self._path, self._count = split_member_path(layout.records), split_member_path(layout.count or "")
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text, self._at, self._is_ended = "", 0, False
        self._lines, self._column = 0, 0  # before the window
        self._number, self._stated = 0, MISSING
        self._add_to_window(read_and_check_first_block(stream, file))

    def records(self) -> Iterator[tuple[int, str]]:
        """Yield number and canonical text of each record; what follows the list is read, too."""
        yield from self._read_records_below(0)
        if self._peek_after_blanks():
            self._raise_error(
                "text follows the end of the document", "If each line is an object, it is kind: json_lines."
            )
        if self._layout.count is not None:
            if type(self._stated) is not int:
                self._raise_error(f"{self._layout.count} states no number of records", _COUNT)
            if self._stated != self._number:
                stated = f"{self._layout.count} states {self._stated:,} records"
                self._raise_error(f"{stated}, and the file has {self._number:,}", _COUNT)

    def _read_records_below(self, depth: int) -> Iterator[tuple[int, str]]:
        if depth == len(self._path):
            yield from self._read_list_elements()
            return
        wanted, seen = self._path[depth], set[str]()
        self._enter_container("{", "an object", depth)
        is_more = self._peek_after_blanks() != "}"
        while is_more:
            name = self._read_member_name()
            if name in seen:
                self._raise_error("an object repeats a member name", _DOCUMENT_HINT)
            seen.add(name)
            if len(seen) > MAX_MEMBERS:
                self._raise_error(
                    f"an object around the records with more than {MAX_MEMBERS:,} members", _DOCUMENT_HINT
                )
            if name == wanted:
                yield from self._read_records_below(depth + 1)
            else:
                self._skip_member_or_read_count(depth, name)
            is_more = self._take_comma_or_end("}")
        if not seen:
            self._require_mark("}")
        if wanted not in seen:
            hint = "Correct records: the dotted path of the list, such as data.items."
            self._raise_error(f"the document has no member {'.'.join(self._path[: depth + 1])}", hint)

    def _read_list_elements(self) -> Iterator[tuple[int, str]]:
        self._enter_container("[", "a list", len(self._path))
        if self._peek_after_blanks() == "]":
            self._require_mark("]")
            return
        is_more = True
        while is_more:
            self._number += 1
            if not self._text.startswith("{", self._at):
                self._raise_record_without_object_error()
            value = self._read_value()
            yield self._number, exact_json.dumps(value).decode()
            found = _next(self._text, self._at)
            if found is not None and found.end() < len(self._text):
                self._at, is_more = found.end(), found[1] == ","
            else:
                is_more = self._take_comma_or_end("]")

    def _raise_record_without_object_error(self) -> NoReturn:
        line, column = self._line_and_column(self._at)
        self._read_value()
        message, hint = f"record {self._number:,} is not an object", "Each element of the list must be an object."
        raise RefusedError(message, where=f"{self._file}:{line}:{column}", hint=hint, code="file_damaged")

    def _skip_member_or_read_count(self, depth: int, name: str) -> None:
        value = self._read_value()
        if self._count[: depth + 1] == (*self._path[:depth], name):
            for inner in self._count[depth + 1 :]:
                value = member_or_missing(value, inner)
            self._stated = value

    def _read_member_name(self) -> str:
        if self._peek_after_blanks() != '"':
            self._raise_wrong_or_truncated_text_error("is not JSON: expecting the name of a member in double quotes")
        name = self._read_value()
        if not isinstance(name, str):
            self._raise_error("the name of a member has a lone surrogate, which UTF-8 cannot represent", _DOCUMENT_HINT)
        self._require_mark(":")
        self._peek_after_blanks()
        return name

    def _enter_container(self, mark: str, what: str, depth: int) -> None:
        if (found := self._peek_after_blanks()) != mark and found:
            place = ".".join(self._path[:depth]) or "the document"
            self._raise_error(
                f"{place} is not {what}", "Correct records: the dotted path of the list, such as data.items."
            )
        self._require_mark(mark)
        self._peek_after_blanks()

    def _take_comma_or_end(self, end: str) -> bool:
        if self._peek_after_blanks() == end:
            self._require_mark(end)
            return False
        self._require_mark(",")
        self._peek_after_blanks()
        return True

    def _require_mark(self, mark: str) -> None:
        if self._peek_after_blanks() != mark:
            self._raise_wrong_or_truncated_text_error(f"is not JSON: expecting {mark}")
        self._at += 1

    def _peek_after_blanks(self) -> str:
        """Pass over blanks, and return the next character, or no text at the end of the file."""
        while True:
            found = _blanks(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_more_into_window():
                return ""

    def _read_value(self) -> Any:
        while True:
            try:
                value, end = exact_json.loads_at(self._text, self._at)
            except JSONDecodeError as error:
                if self._text.startswith(("{", "[", '"'), self._at):
                    return self._read_long_value()
                if len(self._text) - self._at > _LONGEST_WORD or not self._read_more_into_window():
                    self._raise_wrong_or_truncated_text_error(f"is not JSON: {error.msg}")
            except ValueError as error:
                if self._text.startswith(("{", "[", '"'), self._at):
                    return self._read_long_value()
                self._raise_error(f"is not JSON: {error}", _DOCUMENT_HINT)
            else:
                if (
                    type(value) in _DELIMITED
                    or len(self._text) - end > _LONGEST_WORD
                    or not self._read_more_into_window()
                ):
                    self._at = end
                    return value

    def _read_long_value(self) -> Any:
        """Read a value that has something invalid, or goes on after the window."""
        end = _find_end_of_value(self._text, self._at)
        while end is None:
            held = len(self._text) - self._at
            if held > MAX_RECORD_BYTES:
                self._raise_error(
                    f"a value of more than {MAX_RECORD_BYTES:,} characters", "Check that records is right."
                )
            while self._read_more_into_window() and len(self._text) - self._at < 2 * held:
                pass
            end = _find_end_of_value(self._text, self._at)
            if end is None and self._is_ended:
                self._raise_truncated_file_error()
        try:
            value = loads_replacing_invalid_values(self._text[self._at : end].encode())
        except JSONDecodeError as error:
            self._raise_error(f"is not JSON: {error.msg}", _DOCUMENT_HINT, self._at + error.pos)
        except ValueError as error:
            self._raise_error(f"is not JSON: {error}", _DOCUMENT_HINT)
        self._at = end
        return value

    def _read_more_into_window(self) -> bool:
        if self._is_ended:
            return False
        self._add_to_window(self._stream.read(_WINDOW_BYTES))
        return True

    def _add_to_window(self, block: bytes) -> None:
        try:
            text = self._decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            if not block:
                self._raise_truncated_file_error()
            line = self._line_and_column(len(self._text))[0] + error.object[: error.start].count(b"\n")
            hint = "Ask the sender for UTF-8, the encoding of JSON, or fetch the file again."
            raise RefusedError(
                f"byte 0x{error.object[error.start]:02X} is not UTF-8",
                where=f"{self._file}:{line}",
                hint=hint,
                code="encoding_wrong",
            ) from None
        line, column = self._line_and_column(self._at)
        self._lines, self._column = line - 1, column - 1
        self._text, self._at, self._is_ended = self._text[self._at :] + text, 0, not block

    def _line_and_column(self, at: int) -> tuple[int, int]:
        line = self._lines + self._text.count("\n", 0, at) + 1
        begin = self._text.rfind("\n", 0, at) + 1
        return line, at - begin + 1 + (0 if begin else self._column)

    def _raise_wrong_or_truncated_text_error(self, message: str) -> NoReturn:
        if self._at == len(self._text):  # only at the end of the file
            self._raise_truncated_file_error()
        self._raise_error(message, _DOCUMENT_HINT)

    def _raise_truncated_file_error(self) -> NoReturn:
        self._raise_error("the file ends before its document does", _CUT, len(self._text))

    def _raise_error(self, message: str, hint: str, at: int | None = None) -> NoReturn:
        line, column = self._line_and_column(self._at if at is None else at)
        raise RefusedError(message, where=f"{self._file}:{line}:{column}", hint=hint, code="file_damaged")


def _find_end_of_value(text: str, start: int) -> int | None:
    """Return the index after the value at *start* by its brackets and quotes, or None if it goes on after *text*."""
    depth = 0
    for found in _parts(text, start):
        closing, opening = found.groups()
        if closing is None:
            depth += 1 if opening else -1
        elif not closing:
            return None
        if depth <= 0:
            return found.end()
    return None
