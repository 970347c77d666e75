"""Guesses the layout of a file, how its columns are written and its key, and writes the guess as YAML to edit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import Struct
from pydantic import TypeAdapter, ValidationError

from crossdock.errors import ConfigError, CrossdockError, RefusedError
from crossdock.printable import printable
from crossdock.reading.formats.file_formats import FileFormat, read_rows
from crossdock.reading.formats.file_kind_and_encoding_mismatch import HEAD, raise_if_head_shows_other_kind
from crossdock.reading.formats.file_preview import read_first_bytes
from crossdock.reading.formats.guesses.columnar_and_sheet_guess import (
    guess_columnar_or_sheet,
    is_columnar_or_sheet,
    may_be_sheet,
)
from crossdock.reading.formats.guesses.delimited_guess import guess_delimited, guess_single_column
from crossdock.reading.formats.guesses.edi_guess import guess_edi
from crossdock.reading.formats.guesses.encoding_guess import guess_encoding_and_decode
from crossdock.reading.formats.guesses.fixed_width_and_mainframe_guess import guess_fixed_width, guess_mainframe
from crossdock.reading.formats.guesses.format_guess_and_file_sample import (
    FileSample,
    FormatGuess,
    GuessedSetting,
    TextSample,
    count_of_total_text,
)
from crossdock.reading.formats.guesses.json_guess import guess_json, is_json_document
from crossdock.reading.formats.guesses.xml_guess import guess_xml
from crossdock.reading.wrappers.stream_compression import open_and_unpack_if_gzip
from crossdock.values.raw_rows_and_records import JSON, LINE, REFUSED

_LONGEST = 64  # characters of a date or number
_LIKELY = 90  # percent
_DATES: Sequence[tuple[str, str | None]] = (
    (r"\d{4}-\d\d-\d\d", None),
    (r"\d{8}", "%Y%m%d"),
    (r"\d{1,2}\.\d{1,2}\.\d{4}", "%d.%m.%Y"),
    (r"\d{1,2}/\d{1,2}/\d{4}", "%d/%m/%Y"),
    (r"\d{1,2}/\d{1,2}/\d{4}", "%m/%d/%Y"),
    (r"\d{4}/\d{1,2}/\d{1,2}", "%Y/%m/%d"),
    (r"\d{1,2}-\d{1,2}-\d{4}", "%d-%m-%Y"),
    (r"\d{1,2}\.\d{1,2}\.\d\d", "%d.%m.%y"),
    (r"\d{1,2}/\d{1,2}/\d\d", "%d/%m/%y"),
    (r"\d{1,2}/\d{1,2}/\d\d", "%m/%d/%y"),
    (r"\d{14}", "%Y%m%d%H%M%S"),
    (r"\d{1,2}\.\d{1,2}\.\d{4} \d{1,2}:\d\d", "%d.%m.%Y %H:%M"),
    (r"\d{1,2}\.\d{1,2}\.\d{4} \d{1,2}:\d\d:\d\d", "%d.%m.%Y %H:%M:%S"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "%Y-%m-%d %H:%M:%S"),
)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?")
_FIRST_YEAR, _LAST_YEAR = 1900, 2100
_TRUTH = (("true", "false"), ("TRUE", "FALSE"), ("True", "False"), ("Y", "N"), ("J", "N"), ("yes", "no"))
_NUMBER_PATTERNS: Sequence[tuple[str, Mapping[str, str]]] = (
    (r"\d+", {}),
    (r"\d*\.\d+|\d+\.?", {}),
    (r"\d*,\d+|\d+", {"decimal_mark": ","}),
    (r"\d{1,3}(?:,\d{3})*(?:\.\d+)?|\d+(?:\.\d+)?", {"thousands": ","}),
    (r"\d{1,3}(?:\.\d{3})*(?:,\d+)?|\d+(?:,\d+)?", {"decimal_mark": ",", "thousands": "."}),
    (r"\d{1,3}(?:[ \u00a0\u202f]\d{3})*(?:,\d+)?|\d+(?:,\d+)?", {"decimal_mark": ",", "thousands": " "}),
    (r"\d{1,3}(?:['\u2019]\d{3})*(?:\.\d+)?|\d+(?:\.\d+)?", {"thousands": "'"}),
)
_SIGNS = (("leading", "[+-]?({})"), ("trailing", "({})[+-]?"), ("parentheses", r"\(?({})\)?"))


class ValueForm(Struct, frozen=True):
    """How a column may be mapped: the keys of a form beside ``from``, what they rest on, and other ways to read it."""

    keys: Mapping[str, Any]
    basis: str
    unsure: str = ""


def guess_value_form(cells: Sequence[str]) -> ValueForm:
    """Return the form of the values in *cells*; texts have no keys."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    if not filled:
        return ValueForm({}, f"empty in {count_of_total_text(len(cells), len(cells), 'row')}")
    if max(map(len, filled)) > _LONGEST:
        return _form_of_unrecognized_texts(cells, filled)
    return (
        _boolean_form(filled)
        or _date_form(filled)
        or _instant_form(filled)
        or _number_form(filled)
        or _form_of_unrecognized_texts(cells, filled)
    )


def _form_of_unrecognized_texts(cells: Sequence[str], filled: Sequence[str]) -> ValueForm:
    different = len(set(filled))
    empty = len(cells) - len(filled)
    told = "the same text" if different == 1 else f"{different:,} different texts"
    told += f", empty in {count_of_total_text(empty, len(cells), 'row')}" if empty else ""
    return ValueForm({}, told)


def _boolean_form(filled: Sequence[str]) -> ValueForm | None:
    for true, false in _TRUTH:
        if set(filled) == {true, false}:
            keys: dict[str, Any] = {"as": "boolean"}
            keys |= {} if true == "true" else {"true_text": true, "false_text": false}
            return ValueForm(keys, count_of_total_text(len(filled), len(filled), "value"))
    return None


def _date_form(filled: Sequence[str]) -> ValueForm | None:
    found = []
    for pattern, form in _DATES:
        matched = [value for value in filled if re.fullmatch(pattern, value) and _is_date(value, form)]
        if 100 * len(matched) >= _LIKELY * len(filled):
            found.append((len(matched), form))
    if not found:
        return None
    count, form = max(found, key=lambda each: each[0])
    others = [each for number, each in found if number == count and each != form]
    has_time = form is not None and "%H" in form
    keys: dict[str, Any] = {"as": "instant" if has_time else "date"}
    keys |= {} if form is None else {"format": form}
    keys |= {"timezone": "UTC"} if has_time else {}
    unsure = f"it may be {', '.join(map(str, others))}: no day is after the 12th" if others else ""
    if count < len(filled):
        unsure = unsure or "the others are no dates: empty: [TEXT] reads a text as no value"
    return ValueForm(
        keys, count_of_total_text(count, len(filled), "value"), unsure or ("in which zone?" if has_time else "")
    )


def _is_date(value: str, form: str | None) -> bool:
    with suppress(ValueError):
        found = datetime.strptime(value, form or "%Y-%m-%d")  # noqa: DTZ007  only whether it is one
        return _FIRST_YEAR <= found.year <= _LAST_YEAR
    return False


def _instant_form(filled: Sequence[str]) -> ValueForm | None:
    matched = [found for value in filled if (found := _INSTANT.fullmatch(value))]
    if 100 * len(matched) < _LIKELY * len(filled):
        return None
    zoned = sum(found[1] is not None for found in matched)
    basis = f"{count_of_total_text(len(matched), len(filled), 'value')}, {zoned:,} with an offset"
    if zoned == len(matched):
        return ValueForm({"as": "instant"}, basis)
    return ValueForm({"as": "instant", "timezone": "UTC"}, basis, "in which zone?")


def _number_form(filled: Sequence[str]) -> ValueForm | None:
    if any(re.fullmatch(r"0\d+", value) for value in filled):
        return None  # an identifier
    for sign, around in _SIGNS:
        fitting = [
            (count, keys)
            for pattern, keys in _NUMBER_PATTERNS
            if 100 * (count := _count_matching(around.format(pattern), filled)) >= _LIKELY * len(filled)
        ]
        if fitting:
            count, keys = max(fitting, key=lambda each: each[0])
            return _make_number_form(filled, count, keys, sign, fitting)
    return None


def _count_matching(pattern: str, values: Sequence[str]) -> int:
    compiled = re.compile(pattern)
    return sum(compiled.fullmatch(value) is not None for value in values)


def _make_number_form(
    filled: Sequence[str],
    count: int,
    keys: Mapping[str, str],
    sign: str,
    fitting: Sequence[tuple[int, Mapping[str, str]]],
) -> ValueForm:
    is_whole = not any(mark in value for value in filled for mark in ".,")
    form: dict[str, Any] = {"as": "integer" if is_whole and sign == "leading" else "decimal", **keys}
    form |= {} if sign == "leading" else {"sign": sign}
    unsure = ""
    others = [each for number, each in fitting if number == count and each != keys]
    marked = [value for value in filled if re.search(r"[.,]", value)]
    if marked and others and all(re.search(r"^\D*\d{1,3}[.,]\d{3}\D*$", value) for value in marked):
        unsure = "the mark may be one of thousands: the digits after it are always three"
    if count < len(filled):
        unsure = "the others are no numbers: empty: [TEXT] reads a text as no value"
    return ValueForm(form, count_of_total_text(count, len(filled), "value"), unsure)


SAMPLE_BYTES = 1 << 20
"""How much of a file is looked at, unpacked."""
_MOST_ROWS = 5_000
_BYTES: Sequence[Callable[[FileSample], FormatGuess | None]] = (guess_mainframe, guess_xml)
_TEXTS: Sequence[Callable[[TextSample], FormatGuess | None]] = (guess_edi, guess_delimited, guess_fixed_width)
_DIGIT_RUNS = re.compile(r"\d{2,}")
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
    guess: FormatGuess
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
    trial = _try_reading_with_guess(path, guess)
    if not trial.is_read and (other := _copy_of_guess_without_quotes(guess)) is not None:
        again = _try_reading_with_guess(path, other)
        guess, trial = (other, again) if again.is_read else (guess, trial)
    columns = {name: _guess_value_form_unless_identifier(name, cells) for name, cells in trial.cells.items()}
    key, basis = _guess_key_column(trial, guess)
    rows = trial.rows
    seen = f"the first {size:,} bytes" if not rows else "one row" if rows == 1 else f"the first {rows:,} rows"
    remarks = [*trial.remarks, *_remarks_about_lists(trial)]
    files = _DIGIT_RUNS.sub("*", path.name)
    return FileGuess(path.name, str(path.parent), files, guess, seen, remarks, columns, key, basis)


def _guess_value_form_unless_identifier(name: str, cells: Sequence[str]) -> ValueForm:
    found = guess_value_form(cells)
    if found.keys.get("as") in {"integer", "decimal"} and _KEY.fullmatch(name):
        return ValueForm({}, f"{found.basis} are numbers, but by its name it identifies something: a text")
    return found


def _read_sample_and_guess(path: Path, head: bytes) -> tuple[FormatGuess, int]:
    with open_and_unpack_if_gzip(path, name=path.name) as stream:
        data = stream.read(SAMPLE_BYTES)
        sample = FileSample(data, is_whole=not stream.read(1))
    if not data:
        raise RefusedError(
            "the file is empty", where=path.name, hint="Fetch it again, or ask the sender.", code="file_empty"
        )
    if may_be_sheet(data):
        return guess_columnar_or_sheet(path, head), path.stat().st_size
    guess = _guess_format_of_sample(sample, path.name)
    if not data.startswith(head[:2]):
        guess = FormatGuess(guess.settings, (*guess.remarks, "The file is packed, and is unpacked as it is read."))
    return guess, len(data)


def _guess_format_of_sample(sample: FileSample, name: str) -> FormatGuess:
    for guess_bytes in _BYTES:
        if (found := guess_bytes(sample)) is not None:
            return found
    text = guess_encoding_and_decode(sample)
    raise_if_head_shows_other_kind(sample.data[:HEAD], text.encoding.value, name=name, expected="JSON")
    if sum(not (each.isprintable() or each in "\t\n\x1f\x85") for each in text.text[:HEAD]) * 20 > len(
        text.text[:HEAD]
    ):
        hint = "crossdock layout show FILE --encoding shows bytes as characters; a copybook may describe them"
        raise RefusedError("is neither text nor a file of a known kind", where=name, hint=hint, code="format_wrong")
    if (found := guess_json(text)) is not None:
        return found
    if is_json_document(text):
        hint = "Ask for a list of objects, or for a table."
        raise RefusedError("is JSON without a list of objects", where=name, hint=hint, code="format_wrong")
    for guess_text in _TEXTS:
        if (found := guess_text(text)) is not None:
            return found
    return guess_single_column(text)


class _TrialReading(Struct, frozen=True):
    """The first rows of a file as its guessed layout reads them, whether there is an error, and what to say of it."""

    cells: Mapping[str, list[str]]
    rows: int
    is_read: bool
    remarks: Sequence[str]
    lists: Sequence[str] = ()


def _try_reading_with_guess(path: Path, guess: FormatGuess) -> _TrialReading:
    try:
        layout: FileFormat = _FORMATS.validate_python(guess.format)
    except (ValidationError, ConfigError):
        return _TrialReading(
            {}, 0, is_read=False, remarks=["The layout is not complete: crossdock check says what it lacks."]
        )
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
    return _TrialReading(cells, rows, not refusal, [remark], lists)


def _copy_of_guess_without_quotes(guess: FormatGuess) -> FormatGuess | None:
    """Return the same guess of a delimited file, but with quotes as ordinary characters."""
    if "delimiter" not in guess.format or "quote" in guess.format:
        return None
    quote = GuessedSetting("quote", None, "with quotes around fields the file is refused")
    first, *rest = guess.settings
    return FormatGuess((first, quote, *rest), guess.remarks)


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


def _remarks_about_lists(trial: _TrialReading) -> Sequence[str]:
    return (
        [f"Lists: {', '.join(trial.lists)}. In a map, each with of: NAME reads their elements."] if trial.lists else []
    )


def _guess_key_column(trial: _TrialReading, guess: FormatGuess) -> tuple[str, str]:
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


_PLAIN = re.compile(r"[A-Za-z_/][\w./\-]*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_SHORT = 60
_FORMAT = "        "


def format_guess_as_stream_yaml(guess: FileGuess) -> str:
    """Return connections with one stream, which is a valid part of a config."""
    return "\n".join(map(printable, [*_head_comments(guess), *_stream_lines(guess)])) + "\n"


def _head_comments(guess: FileGuess) -> Iterator[str]:
    yield f"# Guessed from {guess.seen} of {guess.name}: compare it with what the sender says."
    for remark in [*guess.guess.remarks, *guess.remarks]:
        yield f"# {remark}"


def _stream_lines(guess: FileGuess) -> Iterator[str]:
    yield "connections:"
    yield "  source:"
    yield "    kind: folder_warehouse   # or sftp_warehouse, with host, user and host_key"
    yield f"    path: {_yaml_scalar(guess.folder)}"
    yield "    streams:"
    yield "      records:"
    yield f"        files: {_yaml_scalar(guess.files)}"
    yield "        format:"
    for setting in guess.guess.settings:
        yield from _setting_lines(setting)
    yield "        mode: append   # or snapshot, if each file lists everything; incremental, if it has changes"
    yield from _with_comment(f"{_FORMAT}key: [{_yaml_scalar(guess.key)}]", guess.key_basis)
    yield "        resource: product   # or another one: crossdock schema lists them with their members"
    yield "        map:   # each member of the resource from a column; how the columns are written:"
    for name, form in guess.columns.items():
        keys = {"from": name, **form.keys}
        shown = _yaml_flow_style(keys) if form.keys else _yaml_scalar(name)
        unsure = f"; unsure: {form.unsure}" if form.unsure else ""
        yield f"          # {shown}   # {form.basis}{unsure}"
    yield f"          sku: {_yaml_scalar(guess.key)}"
    yield f"          name: {_yaml_scalar(guess.key)}"


def _setting_lines(setting: GuessedSetting) -> Iterator[str]:
    value = setting.value
    if isinstance(value, Mapping) and len(_yaml_flow_style(value)) > _SHORT:
        yield from _with_comment(f"          {setting.key}:", setting.basis)
        for name, member in value.items():
            yield from _with_comment(
                f"            {_yaml_scalar(name)}: {_yaml_flow_style(member)}", setting.members.get(name, "")
            )
    else:
        yield from _with_comment(f"          {setting.key}: {_yaml_flow_style(value)}", setting.basis)
    for note in setting.notes:
        yield f"          # {note}"


def _with_comment(line: str, comment: str) -> Iterator[str]:
    yield f"{line}   # {comment}" if comment else line


def _yaml_flow_style(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_yaml_scalar(name)}: {_yaml_flow_style(each)}" for name, each in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_yaml_flow_style, value)) + "]"
    return _yaml_scalar(value)


def _yaml_scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
