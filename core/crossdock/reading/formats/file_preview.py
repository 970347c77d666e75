"""The first records of a file with their places, and its first lines with their positions."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from crossdock.errors import ConfigError, RefusedError
from crossdock.reading.formats.file_formats import FileFormat, get_reader_of_layout, read_rows
from crossdock.reading.formats.file_kind_and_encoding_mismatch import HEAD
from crossdock.reading.wrappers.stream_compression import open_and_unpack_if_gzip
from crossdock.reading.wrappers.wrapper import Openable
from crossdock.values import exact_json
from crossdock.values.raw_rows_and_records import JSON, LINE, REFUSED
from crossdock.values.safe_local_files import open_regular_file

_MOST_BYTES = 1 << 20
_LINE_END = re.compile("\r\n|\n|\x85")


class FirstRecords(Struct, frozen=True):
    name: str
    records: Sequence[tuple[int, Mapping[str, tuple[str, str]]]]
    rows: int
    error: RefusedError | None
    cell_bytes: Mapping[int, Mapping[str, str]]
    """The bytes of cells in hexadecimal, by line and column; only of binary records."""
    raw: Mapping[int, bytes]
    """The bytes of records as they are in the file, by line; none of formats without lines or segments."""


def read_first_records_and_count_rows(path: Openable, layout: FileFormat, number: int, *, name: str) -> FirstRecords:
    records: list[tuple[int, Mapping[str, tuple[str, str]]]] = []
    rows, error = 0, None
    try:
        for frame in read_rows(path, layout, name=name):
            rows += frame.height
            for row in frame.head(max(0, number - len(records))).iter_rows(named=True):
                line = row.pop(LINE)
                if refused := row.pop(REFUSED, ""):
                    error = error or RefusedError(
                        refused, where=name, hint="The other sets can be read.", code="file_damaged"
                    )
                    continue
                places = get_reader_of_layout(layout).describe_cell_places(layout, list(row), line)
                cells = {name: (places[name], cell) for name, cell in row.items()}
                records.append((line, _json_values_by_path(row[JSON], places[JSON]) if JSON in row else cells))
    except RefusedError as refused:
        error = refused
    lines = [line for line, _ in records]
    cell_bytes = get_reader_of_layout(layout).hex_cells_at_lines(path, layout, lines, name=name)
    raw = get_reader_of_layout(layout).record_bytes_at_lines(path, layout, lines, name=name)
    return FirstRecords(name, records, rows, error, cell_bytes, raw)


def read_first_bytes(path: Path) -> bytes:
    """Return the first bytes of a file. Raises ConfigError if it is no regular file."""
    try:
        with open_regular_file(path) as file:
            return file.read(HEAD)
    except OSError as error:
        hint = "name a file; save what comes from a pipe or device to one first"
        raise ConfigError(
            f"cannot be read: {error.strerror or error}", where=str(path), hint=hint, code="file_unreadable"
        ) from error


def _json_values_by_path(text: str, place: str) -> Mapping[str, tuple[str, str]]:
    """Return the members of a JSON object by dotted paths, those of lists by their numbers from 0."""
    return {
        path: (place, value) for path, value in _json_leaf_texts_by_path(exact_json.loads_trusted_canonical(text), "")
    }


def _json_leaf_texts_by_path(value: Any, path: str) -> Iterator[tuple[str, str]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inner:
        for name, each in inner:
            yield from _json_leaf_texts_by_path(each, f"{path}.{name}" if path else str(name))
    else:
        yield path, value if isinstance(value, str) else exact_json.dumps(value).decode()


def read_first_lines(path: Path, number: int, *, encoding: str, length: int | None) -> list[str]:
    """Return the first *number* lines of *path*, or records of *length* characters. Invalid bytes become U+FFFD."""
    with open_and_unpack_if_gzip(path, name=path.name) as stream:
        data = stream.read(_MOST_BYTES)
    if not data:
        raise RefusedError(
            "the file is empty", where=path.name, hint="Fetch it again, or ask the sender.", code="file_empty"
        )
    text = codecs.getincrementaldecoder(encoding)("replace").decode(data)
    if length is not None:
        return [text[start : start + length] for start in range(0, min(len(text), number * length), length)]
    lines = _LINE_END.split(text, number)
    return lines[:number] if lines[-1] or len(lines) > number else lines[:-1]


def add_position_rulers(lines: Sequence[str], width: int) -> Iterator[str]:
    """Yield *lines* below rulers that number the positions, at most *width* positions side by side."""
    longest = max(map(len, lines), default=0)
    margin = len(str(len(lines)))
    for start in range(0, longest, width):
        end = min(start + width, longest)
        tens = "".join(f"{position:>10}" for position in range(start + 10, end + 1, 10))
        yield f"{'':{margin}}  {tens}".rstrip()
        yield f"{'':{margin}}  {''.join(str(position % 10) for position in range(start + 1, end + 1))}"
        yield from (f"{number:{margin}}  {line[start:end]}".rstrip() for number, line in enumerate(lines, 1))
        if end < longest:
            yield ""


def mask_letters_and_digits(text: str) -> str:
    """Mask *text*: letters become ``A`` and ``a``, digits become ``9``, all else stays."""
    return "".join(map(_masked_character, text))


def _masked_character(character: str) -> str:
    if character.isalpha():
        return "A" if character.isupper() else "a"
    return "9" if character.isnumeric() else character
