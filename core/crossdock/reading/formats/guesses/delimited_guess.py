"""Guesses the layout of delimited text: delimiter, quote, preamble, header, trailer and types of records."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct, structs

from crossdock.reading.formats.file_formats import validate_column_names
from crossdock.reading.formats.guesses.format_guess_and_file_sample import (
    FormatGuess,
    GuessedSetting,
    TextSample,
    count_of_total_text,
)
from crossdock.reading.formats.strict_delimited_parser import MAX_COLUMNS

_DELIMITERS = (",", ";", "\t", "|", "^", "~", "\x1f", "||", "&|")
"""No letters, blanks, colons or asterisks: these are inside of texts and times in any column."""
_QUOTES = ('"', None)
_MOST_ROWS = 5_000
_MOST_PREAMBLE = 50
_MOST_WIDTH = 20
_NEAR = 200
_MOST_TYPES = 12
_ENOUGH = 70
"""Percent of rows that must have the same number of fields."""
_MARK = re.compile(r"[,;\t|^~]")
_NUMERIC = re.compile(r"[\d.,' :/TZ+\-]*")
_NAME = re.compile(r"(?=.*[^\W\d_])[^\t\n]{1,80}")
_EXCEL = re.compile(r"sep=(.)\n")
"""A first line that tells Excel the delimiter."""
_CODE = re.compile(r"[A-Z0-9]{1,4}")


class _Parsed(Struct, frozen=True):
    delimiter: str
    quote: str | None
    rows: Sequence[Sequence[str]]
    first: int
    """The row that is the first of the usual width."""
    width: int
    usual: int
    """How many rows from there on have that width."""
    score: int
    """In thousandths: rows of the usual width, less cells that are odd, and a little for more fields."""


def guess_delimited(sample: TextSample) -> FormatGuess | None:
    """Return the guess for a table with delimiters, or None if no character separates fields."""
    typed = _guess_record_types(sample)
    if typed is not None:
        return typed
    if named := _EXCEL.match(sample.text):
        rest = _parse_and_score_delimiter(
            structs.replace(sample, text=sample.text[named.end() :]), named[1], '"' if '"' in sample.text else None
        )
        found = [structs.replace(rest, rows=[[named[0]], *rest.rows], first=rest.first + 1)] if rest else []
    else:
        found = [
            each
            for delimiter in _DELIMITERS
            for quote in _QUOTES
            if (each := _parse_and_score_delimiter(sample, delimiter, quote))
        ]
    if not found:
        return None
    best = max(found, key=lambda each: each.score)
    return _make_delimited_guess(sample, best, found)


def guess_single_column(sample: TextSample) -> FormatGuess:
    """Return the guess for lines without any delimiter: one column."""
    lines = [[line] for line in sample.lines]
    delimiter = next((each for each in ("\t", "|", "\x1f") if each not in sample.text), "\x1f")
    quote = [GuessedSetting("quote", None, "quotes are inside of lines")] if '"' in sample.text else []
    remark = (
        "No character separates fields in most lines: each line is one column. It may have fixed positions: crossdock"
        " layout show FILE shows its lines below a ruler."
    )
    settings = [GuessedSetting("delimiter", delimiter, "no line has it"), *quote, sample.encoding]
    return FormatGuess([*settings, *_header_settings(lines, 1, 0)], (remark,))


def _split_rows(text: str, delimiter: str, quote: str | None) -> list[list[str]]:
    if len(delimiter) > 1:
        return [line.split(delimiter) for line in text.split("\n")[:_MOST_ROWS] if line]
    quoting: Literal[0, 3] = 3 if quote is None else 0  # csv.QUOTE_NONE, csv.QUOTE_MINIMAL
    rows: list[list[str]] = []
    try:
        for row in csv.reader(text.splitlines(keepends=True), delimiter=delimiter, quotechar=quote, quoting=quoting):
            rows.append(row)
            if len(rows) == _MOST_ROWS:
                break
    except csv.Error:
        return []
    return rows


def _parse_and_score_delimiter(sample: TextSample, delimiter: str, quote: str | None) -> _Parsed | None:
    if delimiter not in sample.text or (quote is not None and quote not in sample.text):
        return None
    rows = _split_rows(sample.text, delimiter, quote)
    widths = [len(row) for row in rows]
    if not any(width > 1 for width in widths):
        return None
    width = Counter(each for each in widths if each > 1).most_common(1)[0][0]
    first = widths.index(width)
    counted = [each for each in widths[first:] if each]
    usual = counted.count(width)
    if width > MAX_COLUMNS or first > _MOST_PREAMBLE or 100 * usual < _ENOUGH * len(counted):
        return None
    if usual < min(2, len(rows)):
        return None
    if first and any(each > 1 for each in widths[:first]) and usual < 2 * first:
        return None
    cells = [cell for row in rows[first:] if len(row) == width for cell in row]
    odd = sum(_cell_contains_other_delimiter(cell) for cell in cells) if quote is None else 0
    if quote is None:  # a quote that encloses fields with delimiters is left at the ends of some
        odd += sum(cell.startswith('"') or cell.endswith('"') for cell in cells)
    score = 1000 * usual // len(counted) - 1000 * odd // len(cells)
    score += min(width, _MOST_WIDTH) - 10 * first + 5 * len(delimiter)  # the longer of | and &|
    return _Parsed(delimiter, quote, rows, first, width, usual, score)


def _cell_contains_other_delimiter(cell: str) -> bool:
    """Return whether a cell has another delimiter in it, and is no number or time."""
    return bool(_MARK.search(cell)) and not _NUMERIC.fullmatch(cell)


def _make_delimited_guess(sample: TextSample, best: _Parsed, found: Sequence[_Parsed]) -> FormatGuess:
    rows = [row for row in best.rows[best.first :] if row]
    basis = f"{count_of_total_text(best.usual, len(rows), 'row')} have {best.width} fields"
    others = sorted(
        {each.delimiter for each in found if each.delimiter != best.delimiter and each.score > best.score - _NEAR}
    )
    notes = [f"unsure: {_delimiter_text(each)} separates fields in as many rows" for each in others]
    settings = [GuessedSetting("delimiter", best.delimiter, basis, notes=notes)]
    if best.quote is None and '"' in sample.text:
        settings.append(GuessedSetting("quote", None, "quotes stand inside of fields, and do not enclose them"))
    settings.append(sample.encoding)
    body, trailer = _split_off_trailer(sample, best, rows)
    settings += _header_settings(body, best.width, best.first)
    if trailer is not None:
        settings.append(trailer)
    settings += _refusal_settings_for_irregular_rows(best, body)
    return FormatGuess(settings)


def _delimiter_text(delimiter: str) -> str:
    return "tab" if delimiter == "\t" else repr(delimiter)


def _header_settings(rows: Sequence[Sequence[str]], width: int, skipped: int) -> list[GuessedSetting]:
    first, others = rows[0], [row for row in rows[1:] if len(row) == width]
    numbers = sum(_is_name_above_digits(first[n], [row[n] for row in others]) for n in range(width))
    basis = (
        f"{count_of_total_text(numbers, width, 'column')} have values of another kind below it"
        if numbers
        else "it has names, each once"
    )
    skipping = (
        [GuessedSetting("skip_lines", skipped, "lines before it have another number of fields")] if skipped else []
    )
    if _is_header(first, others):
        notes = [] if numbers else ["unsure: if the first line is a row, declare header: false and names"]
        return [*skipping, GuessedSetting("header", True, basis, notes=notes)]
    if numbers and width > 1:  # names, of which some are missing or there twice
        named = {number: cell.strip() for number, cell in enumerate(first, 1)}
        once = [cell for cell in named.values() if cell and list(named.values()).count(cell) == 1]
        names = [cell if cell in once else f"F{number}" for number, cell in named.items()]
        skip = GuessedSetting(
            "skip_lines", skipped + 1, "the first row names the columns, but some have no name, or the same"
        )
        return [skip, GuessedSetting("header", False), GuessedSetting("names", names, basis)]
    names = [f"F{number}" for number in range(1, width + 1)]
    note = "unsure: if the first line names the columns, leave out header and names"
    header = GuessedSetting("header", False, "the first row looks like the others", notes=(note,))
    return [*skipping, header, GuessedSetting("names", names)]


def _is_header(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    try:
        validate_column_names(first)
    except ValueError:
        return False
    if not all(_NAME.fullmatch(cell.strip()) for cell in first):
        return False
    if any(_is_name_above_digits(cell, [row[number] for row in others]) for number, cell in enumerate(first)):
        return True
    if any(cell in {row[number] for row in others} for number, cell in enumerate(first)):
        return False
    styles = {"upper" if cell.isupper() else "lower" if cell.islower() else "mixed" for cell in first}
    below = {
        "upper" if cell.isupper() else "lower" if cell.islower() else "mixed" for row in others for cell in row if cell
    }
    return not others or (len(styles) == 1 and styles != below) or any("_" in cell for cell in first)


def _is_name_above_digits(name: str, cells: Sequence[str]) -> bool:
    """Return whether all cells have digits and the name above them has none."""
    filled = [cell for cell in cells if cell.strip()]
    has_digits = [any(c.isdigit() for c in cell) for cell in filled]
    return bool(filled) and all(has_digits) and not any(c.isdigit() for c in name)


def _split_off_trailer(
    sample: TextSample, best: _Parsed, rows: Sequence[Sequence[str]]
) -> tuple[Sequence[Sequence[str]], GuessedSetting | None]:
    if not sample.is_whole or len(rows) < 3 or len(rows[-1]) == best.width or not _CODE.fullmatch(rows[-1][0].strip()):
        return rows, None
    *before, last = rows
    value: dict[str, object] = {"prefix": last[0] + (best.delimiter if len(last) > 1 else "")}
    basis = f"the last line has {len(last)} fields, and the others {best.width}"
    for included in (0, 1, 2):
        for number, cell in enumerate(last[1:], 1):
            if cell.strip().isdigit() and int(cell) == len(before) - (not included) + max(0, included - 1):
                value["count"] = number
                if included:
                    value["count_includes"] = included
                return before, GuessedSetting("trailer", value, f"{basis}; field {number} is the number of rows")
    return (rows, None) if last[0].strip().isdigit() else (before, GuessedSetting("trailer", value, basis))


def _refusal_settings_for_irregular_rows(best: _Parsed, rows: Sequence[Sequence[str]]) -> list[GuessedSetting]:
    short = sum(len(row) < best.width for row in rows)
    long = sum(len(row) > best.width for row in rows)
    settings = []
    blank = sum(not row for row in best.rows[best.first :])
    if blank:
        note = "blank_lines: skip   # would leave them out; at_end those at the end of the file"
        settings.append(GuessedSetting("blank_lines", "refuse", f"{blank:,} blank", notes=(note,)))
    if short:
        note = "short_lines: pad   # would read them as if empty fields followed"
        settings.append(
            GuessedSetting(
                "short_lines",
                "refuse",
                f"{count_of_total_text(short, len(rows), 'row')} have fewer fields",
                notes=(note,),
            )
        )
    if long:
        note = "long_lines: drop_empty   # would read those after which only empty fields follow"
        settings.append(
            GuessedSetting(
                "long_lines", "refuse", f"{count_of_total_text(long, len(rows), 'row')} have more fields", notes=(note,)
            )
        )
    return settings


def _guess_record_types(sample: TextSample) -> FormatGuess | None:
    """Return a guess with types of records, if the first field is one of some codes, each with its number of fields."""
    found = []
    for delimiter in _DELIMITERS[:5]:
        rows = [row for row in _split_rows(sample.text, delimiter, '"') if row]
        codes = Counter(row[0] for row in rows)
        if not 1 < len(codes) <= _MOST_TYPES or not all(_CODE.fullmatch(code) for code in codes):
            continue
        widths = {code: {len(row) for row in rows if row[0] == code} for code in codes}
        all_widths = {next(iter(each)) for each in widths.values() if len(each) == 1}
        is_regular = all(len(each) == 1 for each in widths.values()) and len(all_widths) > 1
        if is_regular and min(all_widths) > 1 and len(rows) > len(codes):
            found.append((delimiter, rows, codes, widths))
    if not found:
        return None
    delimiter, rows, codes, widths = found[0]
    types = dict[str, dict[str, object]]()
    for code in codes:
        kind: dict[str, object] = {"names": [f"{code}_{n}" for n in range(1, next(iter(widths[code])) + 1)]}
        if codes[code] == 1 and rows[0][0] == code:
            kind["once"] = "first"
        elif codes[code] == 1 and rows[-1][0] == code and sample.is_whole:
            kind["once"] = "last"
        types[code] = kind
    _add_stated_count(types, rows)
    members = {code: count_of_total_text(count, len(rows), "line") for code, count in codes.items()}
    basis = f"the first field is one of {len(codes)} codes, each with its own number of fields"
    note = "parent: TYPE in a type repeats the columns of the last record of that type; counts states control totals"
    return FormatGuess(
        (
            GuessedSetting("delimiter", delimiter, count_of_total_text(len(rows), len(rows), "line") + " have it"),
            sample.encoding,
            GuessedSetting("record_types", types, basis, members, (note,)),
            GuessedSetting("records", codes.most_common(1)[0][0], "it is there most often"),
        )
    )


def _add_stated_count(types: Mapping[str, dict[str, object]], rows: Sequence[Sequence[str]]) -> None:
    """Add the number of records that the last record states, if it is right."""
    most, number = Counter(row[0] for row in rows).most_common(1)[0]
    last = rows[-1]
    if types[last[0]].get("once") == "last":
        fields = [n for n, cell in enumerate(last[1:], 2) if cell.strip().isdigit() and int(cell) == number]
        if fields:
            types[last[0]]["counts"] = {f"{last[0]}_{fields[0]}": [most]}
