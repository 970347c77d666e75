"""``crossdock layout``: how the layout of a file reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.config_loading import load
from crossdock.cli.plain_text import counted, say
from crossdock.cli.shared_options import as_json, common_options, example, utf8

if TYPE_CHECKING:
    from crossdock.reading.formats.file_formats import FileFormat
    from crossdock.reading.formats.first_records import FirstRecords

_MOST = 1000  # records are held in memory
_ZIP, _OLD_SHEET = b"PK\x03\x04", bytes.fromhex("d0cf11e0a1b11ae1")  # how files of sheets begin
_WIDTH = 70  # positions side by side: a line has 80 columns


@click.group(epilog=example("crossdock layout show out/ITEM_1.txt --stream wms.products"))
def layout() -> None:
    """Inspect and guess the layout of files."""


@layout.command(epilog=example("crossdock layout guess out/ITEM_1.csv", "crossdock layout guess F > guessed.yaml"))
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@as_json
def guess(file: Path, *, as_json: bool) -> int:
    """Write a layout for a file, to edit: a stream of a config, in which each line says what it rests on.

    Looks at the first part of FILE: its kind, encoding, delimiter or positions, header, types of records, lists and
    paths, and how dates and numbers are written. Tells whether this part is read so. No run guesses anything.

    Names of columns come from FILE. Values are not shown, but codes of types of records, sets and sheets are.

    Exit codes: 0 a layout is written; 2 no regular file; 4 the file is empty, damaged or of an unknown kind.
    """
    from crossdock.reading.formats.guesses.file_guess import guess_file
    from crossdock.reading.formats.guesses.layout_text import yaml_of

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
                "config": yaml_of(found),
            }
        )
    else:
        say(*yaml_of(found).splitlines())
    return 0


@layout.command(epilog=example("crossdock layout show out/ITEM_1.txt", "crossdock layout show F --stream wms.products"))
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--stream", callback=utf8, metavar="CONNECTION.STREAM", help="Read FILE as this stream's files.")
@click.option(
    "-n", "--limit", type=click.IntRange(1, _MOST), default=5, show_default=True, help="Records to show at most."
)
@click.option("--encoding", default="utf-8", show_default=True, help="Without --stream: the character encoding.")
@click.option("--length", type=click.IntRange(1, 1_000_000), help="Without --stream: characters of each record.")
@click.option("--raw", is_flag=True, help="Show all values, which may be personal.")
@common_options
def show(
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

    Without --raw, letters are shown as a and A, and digits as 9. With it, binary records are also shown in hexadecimal.

    Exit codes: 0 the file is as declared; 2 wrong usage or config; 4 the file is refused.
    """
    if stream is None:
        return _show_lines(file, limit, encoding, length, raw=raw, as_json=as_json)
    from crossdock.reading.formats.first_records import first_records, shape

    found = first_records(file, _layout_of(config, stream), limit)
    records = [
        (line, {name: (place, cell if raw else shape(cell)) for name, (place, cell) in cells.items()})
        for line, cells in found.records
    ]
    held = found.cell_bytes if raw else {}
    if as_json:
        listed = [
            {
                "line": line,
                "cells": [
                    {"column": n, "place": p, "text": t} | ({"bytes": held[line].get(n, "")} if line in held else {})
                    for n, (p, t) in cells.items()
                ],
            }
            for line, cells in records
        ]
        error = None if found.error is None else str(found.error)
        terminal_output.print_json({"file": file.name, "rows": found.rows, "records": listed, "error": error})
    else:
        shown = [(line, _with_bytes(cells, held.get(line, {}))) for line, cells in records]
        _print(file.name, shown, found)
    if found.error is not None:
        terminal_output.print_errors({"": found.error})
        return found.error.exit_code
    return 0


def _layout_of(config: Path, name: str) -> FileFormat:
    from crossdock.errors import ConfigError
    from crossdock.reading.formats.format_reader import FileLayout

    project = load(config)
    wanted = project.selected([name])
    if len(wanted) > 1:
        raise ConfigError(f"{name!r} has {len(wanted)} streams", hint=f"name one of them: {', '.join(sorted(wanted))}")
    (selected,) = wanted
    found = getattr(project.stream(selected), "format", None)
    if not isinstance(found, FileLayout):
        raise ConfigError(f"{name} reads no files", hint="name a stream of a warehouse that exports files")
    return found


def _show_lines(file: Path, limit: int, encoding: str, length: int | None, *, raw: bool, as_json: bool) -> int:
    from crossdock.reading.formats.first_records import first_lines, ruled, shape
    from crossdock.reading.formats.text_encodings import known_encoding

    try:
        known_encoding(encoding)
    except ValueError as error:
        raise click.UsageError(f"--encoding {error}") from None
    _refuse_sheet(file)
    lines = first_lines(file, limit, encoding=encoding, length=length)
    shown = [_visible(line if raw else shape(line)) for line in lines]
    if as_json:
        terminal_output.print_json({"file": file.name, "lines": shown, "lengths": [len(line) for line in lines]})
        return 0
    say(*ruled(shown, _WIDTH))
    lengths = sorted({len(line) for line in lines})
    verb = "it has" if len(lines) == 1 else "they have"
    say("", f"{_extent(len(lines), limit)}; {verb} {', '.join(map(str, lengths))} characters")
    return 0


def _extent(number: int, limit: int) -> str:
    if number < limit:
        return counted(number, "line")
    return "the first line" if number == 1 else f"the first {counted(number, 'line')}"


def _refuse_sheet(file: Path) -> None:
    from crossdock.errors import ConfigError
    from crossdock.values.local_files import open_regular

    try:
        with open_regular(file) as opened:
            begin = opened.read(len(_OLD_SHEET))
    except OSError:
        return  # it is reported when its lines are read
    if begin.startswith((_ZIP, _OLD_SHEET)):
        raise ConfigError(
            "is a sheet of Excel or OpenDocument, or another packed file, so it has no lines",
            where=str(file),
            hint=f"see its rows as a stream reads them: crossdock layout show {file} --stream CONNECTION.STREAM",
        )


def _visible(line: str) -> str:
    """Replace each character that a terminal does not show by a question mark, so that positions stay."""
    return "".join(character if character.isprintable() else "?" for character in line)


def _with_bytes(cells: dict[str, tuple[str, Any]], held: Mapping[str, str]) -> dict[str, tuple[str, Any]]:
    return {
        name: (f"{place}  X'{held[name]}'" if name in held else place, text) for name, (place, text) in cells.items()
    }


def _print(name: str, records: list[tuple[int, dict[str, tuple[str, Any]]]], found: FirstRecords) -> None:
    for number, (line, cells) in enumerate(records, 1):
        say(f"{number}  {name}:{line}")
        column, width = (max(map(len, texts)) for texts in zip(*((n, p) for n, (p, _) in cells.items()), strict=True))
        say(*(f"   {each:{column}}  {place:{width}}  {text}".rstrip() for each, (place, text) in cells.items()), "")
    how = "as declared" if found.error is None else "before the error"
    say(f"{name}: {counted(found.rows, 'record')}, {how}")
