"""Guesses the layout of a file: its format, whether its first part can be read so, and how its columns are written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import Struct
from pydantic import TypeAdapter, ValidationError

from crossdock.errors import ConfigError, CrossdockError, RefusedError
from crossdock.reading.formats.file_formats import FileFormat, read_rows
from crossdock.reading.formats.file_preview import read_first_bytes
from crossdock.reading.formats.guesses.columnar_and_sheet_guess import (
    guess_columnar_or_sheet,
    is_columnar_or_sheet,
    may_be_sheet,
)
from crossdock.reading.formats.guesses.delimited_guess import guess_delimited, guess_single_column
from crossdock.reading.formats.guesses.edi_guess import guess_edi
from crossdock.reading.formats.guesses.encoding_guess import guess_encoding_and_decode
from crossdock.reading.formats.guesses.fixed_width_guess import guess_fixed_width
from crossdock.reading.formats.guesses.format_guess_and_file_sample import Guess, Sample, Setting, TextSample
from crossdock.reading.formats.guesses.json_guess import guess_json, is_json
from crossdock.reading.formats.guesses.mainframe_guess import guess_mainframe
from crossdock.reading.formats.guesses.value_forms import ValueForm, guess_value_form
from crossdock.reading.formats.guesses.xml_guess import guess_xml
from crossdock.reading.formats.misdeclared_files import HEAD, refuse_other_kind
from crossdock.reading.wrappers.stream_compression import open_and_unpack_if_gzip
from crossdock.values.raw_rows_and_records import JSON, LINE, REFUSED

SAMPLE_BYTES = 1 << 20
"""How much of a file is looked at, unpacked."""
_MOST_ROWS = 5_000
_BYTES: Sequence[Callable[[Sample], Guess | None]] = (guess_mainframe, guess_xml)
_TEXTS: Sequence[Callable[[TextSample], Guess | None]] = (guess_edi, guess_delimited, guess_fixed_width)
_NUMBERS = re.compile(r"\d{2,}")
_CONTROLS = "\t\n\x1c\x1d\x1e\x1f"  # some of which separate fields and rows
_KEY = re.compile(
    r"(?i:(?:.*[._ -])?(?:id|sku|key|no|nr|number|code|item|article|artikel\w*))"
    r"|.*[a-z](?:ID|Id|SKU|Sku|Key|No|Nr|Number|Code)|[A-Z]+NO"
)
"""How columns that identify something are called."""
_FORMATS: TypeAdapter[FileFormat] = TypeAdapter(FileFormat)


class FileGuess(Struct, frozen=True):
    """What is guessed of one file.

    Attributes:
        seen: What was looked at, such as "the first 1,204 rows".
        remarks: Whether the file is read as it is guessed, and what is not known.
        columns: How each column is written; of JSON objects, the paths of members.
        key: The column that may identify records.
    """

    name: str
    folder: str
    files: str
    guess: Guess
    seen: str
    remarks: Sequence[str]
    columns: Mapping[str, ValueForm]
    key: str
    key_basis: str


def guess_file(path: Path) -> FileGuess:
    """Guess the layout of a local file from its first part.

    Raises:
        ConfigError: If it is no regular file, or of a kind that cannot be read.
        RefusedError: If it is empty or damaged.
    """
    head = read_first_bytes(path)
    guess, size = (
        (guess_columnar_or_sheet(path, head), path.stat().st_size)
        if is_columnar_or_sheet(head)
        else _read_sample_and_guess(path, head)
    )
    trial = _read_with_guess(path, guess)
    if not trial.is_read and (other := _copy_of_guess_without_quotes(guess)) is not None:
        again = _read_with_guess(path, other)
        guess, trial = (other, again) if again.is_read else (guess, trial)
    columns = {name: _guess_value_form(name, cells) for name, cells in trial.cells.items()}
    key, basis = _guess_key(trial, guess)
    rows = trial.rows
    seen = f"the first {size:,} bytes" if not rows else "one row" if rows == 1 else f"the first {rows:,} rows"
    remarks = [*trial.remarks, *_remarks_about_lists(trial)]
    files = _NUMBERS.sub("*", path.name)
    return FileGuess(path.name, str(path.parent), files, guess, seen, remarks, columns, key, basis)


def _guess_value_form(name: str, cells: Sequence[str]) -> ValueForm:
    found = guess_value_form(cells)
    if found.keys.get("as") in {"integer", "decimal"} and _KEY.fullmatch(name):
        return ValueForm({}, f"{found.basis} are numbers, but by its name it identifies something: a text")
    return found


def _read_sample_and_guess(path: Path, head: bytes) -> tuple[Guess, int]:
    with open_and_unpack_if_gzip(path, name=path.name) as stream:
        data = stream.read(SAMPLE_BYTES)
        sample = Sample(data, is_whole=not stream.read(1))
    if not data:
        raise RefusedError(
            "the file is empty", where=path.name, hint="Fetch it again, or ask the sender.", code="file_empty"
        )
    if may_be_sheet(data):
        return guess_columnar_or_sheet(path, head), path.stat().st_size
    guess = _guess_format_of_sample(sample, path.name)
    if not data.startswith(head[:2]):
        guess = Guess(guess.settings, (*guess.remarks, "The file is packed, and is unpacked as it is read."))
    return guess, len(data)


def _guess_format_of_sample(sample: Sample, name: str) -> Guess:
    for guess_bytes in _BYTES:
        if (found := guess_bytes(sample)) is not None:
            return found
    text = guess_encoding_and_decode(sample)
    refuse_other_kind(sample.data[:HEAD], text.encoding.value, name=name, expected="JSON")
    if sum(not (each.isprintable() or each in "\t\n\x1f\x85") for each in text.text[:HEAD]) * 20 > len(
        text.text[:HEAD]
    ):
        hint = "crossdock layout show FILE --encoding shows bytes as characters; a copybook may describe them"
        raise RefusedError("is neither text nor a file of a known kind", where=name, hint=hint, code="format_wrong")
    if (found := guess_json(text)) is not None:
        return found
    if is_json(text):
        hint = "Ask for a list of objects, or for a table."
        raise RefusedError("is JSON without a list of objects", where=name, hint=hint, code="format_wrong")
    for guess_text in _TEXTS:
        if (found := guess_text(text)) is not None:
            return found
    return guess_single_column(text)


class _Trial(Struct, frozen=True):
    """The first rows of a file as its guessed layout reads them, whether there is an error, and what to say of it."""

    cells: Mapping[str, list[str]]
    rows: int
    is_read: bool
    remarks: Sequence[str]
    lists: Sequence[str] = ()


def _read_with_guess(path: Path, guess: Guess) -> _Trial:
    try:
        layout: FileFormat = _FORMATS.validate_python(guess.format)
    except (ValidationError, ConfigError):
        return _Trial({}, 0, is_read=False, remarks=["The layout is not complete: crossdock check says what it lacks."])
    frames, is_part, refusal = list[pl.DataFrame](), False, ""
    try:
        found = read_rows(path, layout, name=path.name, batch_rows=_MOST_ROWS)
        with closing(found):  # type: ignore[type-var]  # a generator
            for frame in found:
                frames.append(frame)
                if is_part := sum(each.height for each in frames) >= _MOST_ROWS:
                    break
    except CrossdockError as error:
        refusal = f"{error.message} ({error.where})" if error.where else error.message
    rows = min(_MOST_ROWS, sum(each.height for each in frames))
    if refusal:
        remark = f"With this layout the file is refused after {rows:,} row{'s' * (rows != 1)}: {refusal}"
    elif is_part:
        remark = f"The first {rows:,} rows are read so; the others were not looked at."
    else:
        remark = f"The whole file is read so: {rows:,} row{'s' * (rows != 1)}."
    cells, lists = _cells_by_column(pl.concat(frames).head(_MOST_ROWS)) if frames else ({}, [])
    return _Trial(cells, rows, not refusal, [remark], lists)


def _copy_of_guess_without_quotes(guess: Guess) -> Guess | None:
    """Return the same guess of a delimited file, but with quotes as ordinary characters."""
    if "delimiter" not in guess.format or "quote" in guess.format:
        return None
    quote = Setting("quote", None, "with quotes around fields the file is refused")
    first, *rest = guess.settings
    return Guess((first, quote, *rest), guess.remarks)


def _cells_by_column(rows: pl.DataFrame) -> tuple[Mapping[str, list[str]], Sequence[str]]:
    """Return the texts of columns, or of the members of JSON objects; and the members that are lists."""
    if JSON not in rows.columns:
        return {name: rows[name].to_list() for name in rows.columns if name not in {LINE, REFUSED}}, ()
    found: dict[str, list[str]] = {}
    lists: dict[str, None] = {}
    for text in rows[JSON].head(_MOST_ROWS):
        for name, value in _json_member_paths_and_texts(json.loads(text, parse_float=str, parse_int=str), ""):
            if value is None:
                lists[name] = None
            else:
                found.setdefault(name, []).append(value)
    return found, list(lists)


def _json_member_paths_and_texts(value: Any, path: str) -> Iterator[tuple[str, str | None]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _json_member_paths_and_texts(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        yield path, None
    elif isinstance(value, bool):
        yield path, str(value).lower()
    else:
        yield path, value or ""


def _remarks_about_lists(trial: _Trial) -> Sequence[str]:
    return (
        [f"Lists: {', '.join(trial.lists)}. In a map, each with of: NAME reads their elements."] if trial.lists else []
    )


def _guess_key(trial: _Trial, guess: Guess) -> tuple[str, str]:
    filled = [name for name, cells in trial.cells.items() if len(cells) == trial.rows and all(cells)]
    different = [name for name in filled if len(set(trial.cells[name])) == trial.rows]
    if trial.rows > 1 and different:
        return _likely_key_by_name(different), f"all {trial.rows:,} values differ"
    if trial.cells:
        why = "one row shows nothing" if trial.rows == 1 else "no column has another value in each row"
        return _likely_key_by_name(filled or list(trial.cells)), f"unsure: {why}"
    names = guess.format.get("names") or list(guess.format.get("columns") or ()) or ["KEY"]
    return str(names[0]), "unsure: no rows were read"


def _likely_key_by_name(names: Sequence[str]) -> str:
    return min((name for name in names if _KEY.fullmatch(name)), key=lambda name: name.count("."), default=names[0])
