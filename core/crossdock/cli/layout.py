"""``crossdock layout``: how the layout of a file reads it, and the file that a record makes for a partner."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import get_terminal_size
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project
from crossdock.cli.shared_options_messages_and_signals import (
    CommandGroup,
    absolute_path,
    as_json,
    common_options,
    help_example,
    print_sentences,
    raise_if_not_writable,
    raise_if_value_not_utf8,
)
from crossdock.errors import ConfigError
from crossdock.values.clock import SystemClock
from crossdock.values.texts_of_numbers_and_times import count_with_noun

if TYPE_CHECKING:
    from crossdock.reading.formats.file_formats import FileFormat
    from crossdock.reading.formats.file_preview import FirstRecords
    from crossdock.reading.wrappers.wrapper import WrapperSettings


@click.command(
    "write",
    epilog=help_example(
        "crossdock layout write shop.orders --record SO-17 --raw",
        "crossdock layout write shop.orders --record SO-17 -o SO-17.csv",
    ),
)
@click.argument("stream", callback=raise_if_value_not_utf8)
@click.option(
    "--record", "key", required=True, metavar="KEY", help="The key of the record.", callback=raise_if_value_not_utf8
)
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the file here.")
@click.option("--raw", is_flag=True, help="Show the file, whose values may be personal.")
@common_options
def show_outgoing_record_file(
    stream: str, key: str, out: Path | None, config: Path, *, raw: bool, as_json: bool
) -> None:
    """Show the file that the next sync would hand over for one record alone, or the last file that had it.

    Nothing is handed over, and no number is used up.
    """
    from crossdock.runs.file_preview_for_one_record import outgoing_file_of_record
    from crossdock.values.record_keys import key_text_of_input
    from crossdock.values.safe_local_files import replace_file_atomically

    if not raw and out is None:
        raise ConfigError(
            "the file may have personal values: give --raw to show it, or -o FILE", code="personal_data_withheld"
        )
    place = absolute_path(out)
    loaded = load_project(config)
    raise_if_not_writable(place)
    (named,) = loaded.selected_streams([loaded.stream_of_record(stream)])
    name, body = outgoing_file_of_record(loaded, named, key_text_of_input(key), SystemClock())
    if place is not None:
        replace_file_atomically(place, body)
    if as_json:
        content = base64.b64encode(body).decode() if raw else None
        terminal_output.print_json({"name": name, "bytes": len(body), "content_base64": content})
        return
    print_sentences(
        f"{name}, {count_with_noun(len(body), 'byte')}" + (f", written to {place}" if place else ""), err=raw
    )
    if raw:
        terminal_output.print_lines(
            terminal_output.output_console(), body.decode("utf-8", "backslashreplace").rstrip("\n")
        )


_MOST = 1000  # records are held in memory
_WIDTH = 70  # positions side by side: a line has 80 columns
_NARROW, _RAW = 80, "   raw  "


@click.group(cls=CommandGroup, epilog=help_example("crossdock layout show out/ITEM_1.txt --stream wms.products"))
def layout() -> None:
    """Inspect and guess the layout of files."""


@layout.command(epilog=help_example("crossdock layout guess out/ITEM_1.csv", "crossdock layout guess F > guessed.yaml"))
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@as_json
def guess(file: Path, *, as_json: bool) -> int:
    """Write a layout for a file, to edit: a stream of a config, in which each line says what it rests on.

    Looks at the first part of FILE: its kind, encoding, delimiter or positions, header, types of records, lists and
    paths, and how dates and numbers are written. Tells whether this part is read so. No run guesses anything.

    Names of columns come from FILE. Values are not shown, but codes of types of records, sets and sheets are.

    Exit codes: 0 a layout is written; 2 no regular file; 4 the file is empty, damaged or of an unknown kind.
    """
    from crossdock.reading.formats.guesses.file_guess import format_guess_as_stream_yaml, guess_file

    found = guess_file(file)
    if as_json:
        terminal_output.print_json(
            {
                "file": found.name,
                "format": found.guess.format,
                "settings": [
                    {"key": each.key, "basis": each.basis, "notes": list(each.notes)} for each in found.guess.settings
                ],
                "columns": [
                    {"column": name, "form": form.keys, "basis": form.basis, "unsure": form.unsure or None}
                    for name, form in found.columns.items()
                ],
                "key": found.key,
                "remarks": [*found.guess.remarks, *found.remarks],
                "config": format_guess_as_stream_yaml(found),
            }
        )
    else:
        print_sentences(*format_guess_as_stream_yaml(found).splitlines())
    return 0


layout.add_command(show_outgoing_record_file)


@layout.command(
    "show", epilog=help_example("crossdock layout show out/ITEM_1.txt", "crossdock layout show F --stream wms.products")
)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--stream", callback=raise_if_value_not_utf8, metavar="CONNECTION.STREAM", help="Read FILE as this stream's files."
)
@click.option(
    "-n", "--limit", type=click.IntRange(1, _MOST), default=5, show_default=True, help="Records to show at most."
)
@click.option("--encoding", default="utf-8", show_default=True, help="Without --stream: the character encoding.")
@click.option("--length", type=click.IntRange(1, 1_000_000), help="Without --stream: characters of each record.")
@click.option("--raw", is_flag=True, help="Show all values, which may be personal.")
@common_options
def show_first_records(
    file: Path,
    stream: str | None,
    limit: int,
    encoding: str,
    length: int | None,
    config: Path,
    *,
    raw: bool,
    as_json: bool,
) -> int:
    """Show the first records of a file as they are read, with the place of each value.

    Reads FILE to its end as the files of a stream are read, without its repairs, filters and mapping, and tells whether
    it is as declared. Without --stream, shows the first lines below a ruler, which helps to find positions.

    Members of JSON objects are shown by their paths. Without --raw, letters are shown as a and A, and digits as 9. With
    it, the bytes of each record stand below it, as far as it is a line or segments, and binary cells in hexadecimal.

    Exit codes: 0 the file is as declared; 2 wrong usage or config; 4 the file is refused.
    """
    from crossdock.reading.formats.file_preview import read_first_bytes

    head = read_first_bytes(file)
    if stream is None:
        _refuse_sheet_or_columnar_file(file, head)
        return _show_first_lines_below_ruler(file, limit, encoding, length, raw=raw, as_json=as_json)
    read = _first_records(file, config, stream, limit)
    if as_json:
        members = [{"file": found.name, **_document_of_first_records(found, raw=raw)} for found in read]
        terminal_output.print_json(members[0] if read[0].name == file.name else {"file": file.name, "members": members})
    for found in () if as_json else read:
        held = found.cell_bytes if raw else {}
        shown = [
            (line, _cells_with_hex_bytes(cells, held.get(line, {})))
            for line, cells in _masked_or_raw_cells(found, raw=raw)
        ]
        _print_records_with_places(found, shown, found.raw if raw else {})
    if (error := read[-1].error) is not None:
        terminal_output.print_errors({"": error})
        return error.exit_code
    return 0


def _first_records(file: Path, config: Path, stream: str, limit: int) -> list[FirstRecords]:
    """Return the first records of a file, or of each file that is wrapped in it, up to one that is refused."""
    from crossdock.reading.formats.file_preview import FirstRecords, read_first_records_and_count_rows
    from crossdock.reading.wrappers.wrapping_and_unwrapping import unwrap_file

    layout, wrapped = _declared_layout_and_wrappers(config, stream)
    if not wrapped:
        return [read_first_records_and_count_rows(file, layout, limit, name=file.name)]
    read = list[FirstRecords]()
    with TemporaryDirectory() as folder:
        for part in unwrap_file(file, wrapped, name=file.name, folder=Path(folder)):
            read.append(read_first_records_and_count_rows(part.content, layout, limit, name=part.name))
            if read[-1].error is not None:
                break
    return read


def _masked_or_raw_cells(found: FirstRecords, *, raw: bool) -> list[tuple[int, dict[str, tuple[str, Any]]]]:
    from crossdock.reading.formats.file_preview import mask_letters_and_digits

    return [
        (line, {name: (place, cell if raw else mask_letters_and_digits(cell)) for name, (place, cell) in cells.items()})
        for line, cells in found.records
    ]


def _document_of_first_records(found: FirstRecords, *, raw: bool) -> dict[str, Any]:
    held = found.cell_bytes if raw else {}
    listed = [
        {
            "line": line,
            "cells": [
                {"column": n, "place": p, "text": t} | ({"bytes": held[line].get(n, "")} if line in held else {})
                for n, (p, t) in cells.items()
            ],
        }
        | ({"raw": _bytes_as_escaped_text(found.raw[line])} if raw and line in found.raw else {})
        for line, cells in _masked_or_raw_cells(found, raw=raw)
    ]
    return {"rows": found.rows, "records": listed, "error": None if found.error is None else str(found.error)}


def _declared_layout_and_wrappers(config: Path, name: str) -> tuple[FileFormat, Sequence[WrapperSettings]]:
    from crossdock.errors import ConfigError
    from crossdock.reading.formats.file_formats import FileLayout

    project = load_project(config)
    wanted = project.selected_streams([name])
    if len(wanted) > 1:
        raise ConfigError(
            f"{name!r} has {len(wanted)} streams",
            hint=f"name one of them: {', '.join(sorted(wanted))}",
            code="choice_unsuitable",
        )
    (selected,) = wanted
    bound = project.stream(selected)
    found = getattr(bound, "format", None)
    if not isinstance(found, FileLayout):
        raise ConfigError(
            f"{name} reads no files", hint="name a stream of a warehouse that exports files", code="choice_unsuitable"
        )
    return found, getattr(bound, "wrapped", ())


def _show_first_lines_below_ruler(
    file: Path, limit: int, encoding: str, length: int | None, *, raw: bool, as_json: bool
) -> int:
    from crossdock.reading.formats.file_preview import add_position_rulers, mask_letters_and_digits, read_first_lines
    from crossdock.reading.formats.text_decoding import validate_encoding_name

    try:
        validate_encoding_name(encoding)
    except ValueError as error:
        raise click.UsageError(f"--encoding {error}") from None
    lines = read_first_lines(file, limit, encoding=encoding, length=length)
    shown = [_unprintable_as_question_marks(line if raw else mask_letters_and_digits(line)) for line in lines]
    if as_json:
        terminal_output.print_json({"file": file.name, "lines": shown, "lengths": [len(line) for line in lines]})
        return 0
    print_sentences(*add_position_rulers(shown, _WIDTH))
    lengths = sorted({len(line) for line in lines})
    verb = "it has" if len(lines) == 1 else "they have"
    print_sentences(
        "", f"{_number_of_shown_lines_text(len(lines), limit)}; {verb} {', '.join(map(str, lengths))} characters"
    )
    return 0


def _number_of_shown_lines_text(number: int, limit: int) -> str:
    if number < limit:
        return count_with_noun(number, "line")
    return "the first line" if number == 1 else f"the first {count_with_noun(number, 'line')}"


def _refuse_sheet_or_columnar_file(file: Path, head: bytes) -> None:
    from crossdock.errors import ConfigError
    from crossdock.reading.formats.guesses.columnar_and_sheet_guess import is_columnar_or_sheet, may_be_sheet

    if may_be_sheet(head) or is_columnar_or_sheet(head):
        kind = (
            "a sheet of Excel or OpenDocument, or another packed file"
            if may_be_sheet(head)
            else "a Parquet or Arrow file"
        )
        hint = (
            f"see its rows as a stream reads them: crossdock layout show {file} --stream CONNECTION.STREAM; and write"
        )
        raise ConfigError(
            f"is {kind}, so it has no lines",
            where=str(file),
            hint=f"{hint} its layout: crossdock layout guess {file}",
            code="choice_unsuitable",
        )


def _bytes_as_escaped_text(data: bytes) -> str:
    r"""Return bytes as text: ASCII, and escapes such as ``\xf6`` and ``\n`` for all others."""
    return data.decode("latin-1").encode("unicode_escape").decode()


def _unprintable_as_question_marks(line: str) -> str:
    """Replace each character that a terminal does not show by a question mark, so that positions stay."""
    return "".join(character if character.isprintable() else "?" for character in line)


def _cells_with_hex_bytes(cells: dict[str, tuple[str, Any]], held: Mapping[str, str]) -> dict[str, tuple[str, Any]]:
    return {
        name: (f"{place}  X'{held[name]}'" if name in held else place, text) for name, (place, text) in cells.items()
    }


def _print_records_with_places(
    found: FirstRecords, records: list[tuple[int, dict[str, tuple[str, Any]]]], raw: Mapping[int, bytes]
) -> None:
    name, room = found.name, max(_NARROW, get_terminal_size().columns) - len(_RAW)
    for number, (line, cells) in enumerate(records, 1):
        print_sentences(f"{number}  {name}:{line}")
        column, width = (max(map(len, texts)) for texts in zip(*((n, p) for n, (p, _) in cells.items()), strict=True))
        print_sentences(
            *(f"   {each:{column}}  {place:{width}}  {text}".rstrip() for each, (place, text) in cells.items())
        )
        text = _bytes_as_escaped_text(raw.get(line, b""))
        starts = range(0, len(text), room)
        print_sentences(*(f"{' ' * len(_RAW) if start else _RAW}{text[start : start + room]}" for start in starts), "")
    how = "as declared" if found.error is None else "before the error"
    print_sentences(f"{name}: {count_with_noun(found.rows, 'record')}, {how}")
