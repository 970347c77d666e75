"""JSON Lines (jsonlines.org): one JSON object in each line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from json import JSONDecodeError
from typing import Literal

import polars as pl

from crossdock.errors import RefusedError
from crossdock.reading.formats.decoding_into_record_pieces import MAX_RECORD_BYTES, lacks_last_row_end
from crossdock.reading.formats.format_reader import FileLayout, FormatReader
from crossdock.reading.formats.leniency_counts import Leniencies
from crossdock.reading.formats.misdeclared_files import HEAD, refuse_other_kind
from crossdock.reading.formats.raw_bytes_of_shown_records import bytes_of_records_at_lines
from crossdock.reading.wrappers.stream_compression import open_and_unpack_if_gzip
from crossdock.reading.wrappers.wrapper import Openable, Readable
from crossdock.values import exact_json
from crossdock.values.half_characters import loads_marking_half_characters
from crossdock.values.raw_rows_and_records import JSON, LINE

CHUNK_BYTES = 1 << 20
_FRAME_BYTES = 32 << 20  # bytes of text in one frame
_SCHEMA = {JSON: pl.String, LINE: pl.UInt64}
_HINT = "Each line must be one JSON object: ask the sender, or fetch the file again."
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
        self, path: Openable, layout: JsonLinesFormat, *, name: str, batch_rows: int, leniencies: Leniencies | None
    ) -> Iterator[pl.DataFrame]:
        del layout, leniencies
        with open_and_unpack_if_gzip(path, name=name) as stream:
            yield from frames_of_objects(_canonical_objects(stream, name), batch_rows)

    def looks_cut(self, path: Openable, layout: JsonLinesFormat) -> bool:
        del layout
        return lacks_last_row_end(path, "utf-8", None)

    def record_bytes_at_lines(
        self, path: Openable, layout: JsonLinesFormat, lines: Sequence[int], *, name: str
    ) -> Mapping[int, bytes]:
        del layout
        return bytes_of_records_at_lines(path, lines, "utf-8", None, name=name)

    def describe_cell_places(self, layout: JsonLinesFormat, names: Sequence[str], line: int) -> Mapping[str, str]:
        del layout
        return dict.fromkeys(names, f"line {line}")


def frames_of_objects(objects: Iterable[tuple[int, str]], batch_rows: int) -> Iterator[pl.DataFrame]:
    """Yield at least one frame of *objects*, each the place and the canonical text of one."""
    texts, lines, size, is_begun = list[str](), list[int](), 0, False
    for line, text in objects:
        texts.append(text)
        lines.append(line)
        size += len(text)
        if len(texts) >= batch_rows or size >= _FRAME_BYTES:
            yield _frame(texts, lines)
            texts, lines, size, is_begun = [], [], 0, True
    if texts or not is_begun:
        yield _frame(texts, lines)


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
        refuse_other_kind(block[:HEAD], "utf-8", name=name, expected="JSON")
    return block


def _frame(texts: list[str], lines: list[int]) -> pl.DataFrame:
    return pl.DataFrame({JSON: texts, LINE: lines}, schema=_SCHEMA)


def _canonical_objects(stream: Readable, name: str) -> Iterator[tuple[int, str]]:
    number, blank = 1, 0
    for lines in _blocks_of_lines(stream, name):
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
                yield at, _canonical_object(line, f"{name}:{at}")
        number += len(lines)


def _canonical_object(line: bytes, where: str) -> str:
    """Return the canonical text of the object in *line*. Raises RefusedError with the reason if there is none."""
    try:
        found = loads_marking_half_characters(line)
    except JSONDecodeError as error:
        raise RefusedError(
            f"is not JSON: {error.msg}", where=f"{where}:{error.colno}", hint=_HINT, code="file_damaged"
        ) from None
    except ValueError as error:  # the text of the error quotes nothing
        raise RefusedError(f"is not JSON: {error}", where=where, hint=_HINT, code="file_damaged") from None
    if not isinstance(found, dict):
        what = "a list" if isinstance(found, list) else "not an object"
        hint = "Each line must be one JSON object, not one document of several lines, nor a list of all."
        raise RefusedError(f"is {what}", where=where, hint=hint, code="file_damaged")
    return exact_json.dumps(found).decode()


def _blocks_of_lines(stream: Readable, name: str) -> Iterator[list[bytes]]:
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
