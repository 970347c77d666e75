"""The strict parser of delimited text, slow and simple, for every record that polars may read wrong.

It follows RFC 4180 with any delimiter, and refuses what the RFC leaves open. Its errors never quote a cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from crossdock.errors import RefusedError

MAX_COLUMNS = 4_096
"""The limit of MySQL and Oracle; each column costs memory, however few rows there are."""
_CONTROLS = "".join(map(chr, [*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0)]))
_FILLING = "\0\x1a"
_DOUBLE = "A quote inside a quoted field must be doubled: ask the sender to correct the export."


@dataclass(frozen=True)
class StrictDelimitedParser:
    name: str
    delimiter: str
    quote: str | None
    marks: str = ""

    def records(self, text: str, line: int, *, crlf: bool | None = None) -> Iterator[tuple[int, list[str]]]:
        """Yield the records of *text* with the lines where they begin. *crlf* is None until the line end is known."""
        start = 0
        while start < len(text):
            cells, end = self._parse_record(text, start, line)
            self._raise_if_invalid_character(text, start, end, line)
            if cells == [""] and text[start:end].strip("\r\n") == "":
                self.raise_error("the line is blank", line, hint="Ask the sender not to write blank lines.")
            if crlf is not None and text[end - 1] == "\n" and text.endswith("\r\n", start, end) != crlf:
                found, before = ("LF", "CRLF") if crlf else ("CRLF", "LF")
                line += text.count("\n", start, end) - 1
                hint = "Were files of two systems joined? Ask the sender to send them separately."
                self.raise_error(f"the line ends with {found}, the lines before it with {before}", line, hint=hint)
            yield line, cells
            line += text.count("\n", start, end)
            start = end

    def raise_error(self, message: str, line: int, column: int | None = None, *, hint: str) -> NoReturn:
        where = f"{self.name}:{line}" if column is None else f"{self.name}:{line}:{column}"
        raise RefusedError(message, where=where, hint=hint, code="file_damaged")

    @cached_property
    def _cell_end_pattern(self) -> re.Pattern[str]:
        special = re.escape(self.delimiter), re.escape(self.quote or self.delimiter)
        return re.compile("|".join((*special, r"\r?\n", r"\Z")))

    @cached_property
    def _invalid_character_pattern(self) -> re.Pattern[str]:
        controls = "".join(control for control in _CONTROLS if control not in (self.delimiter, *self.marks))
        return re.compile(f"[{re.escape(controls)}\ufeff]|\r(?!\n)")

    def _parse_record(self, text: str, start: int, line: int) -> tuple[list[str], int]:
        first_line, end = line, text.find("\n", start) + 1 or len(text)
        if self.quote is None or text.find(self.quote, start, end) < 0:
            self._raise_if_too_many_cells(text.count(self.delimiter, start, end) + 1, first_line)
            return text[start:end].removesuffix("\n").removesuffix("\r").split(self.delimiter), end
        cells: list[str] = []
        while True:
            if text.startswith(self.quote, start):
                cell, start = self._parse_quoted_cell(text, start, line, len(cells))
            else:
                cell, start = self._parse_unquoted_cell(text, start, line, len(cells))
            line += cell.count("\n")
            cells.append(cell)
            self._raise_if_too_many_cells(len(cells), first_line)
            if text.startswith(self.delimiter, start):
                start += len(self.delimiter)
            else:
                return cells, min(len(text), start + (2 if text.startswith("\r\n", start) else 1))

    def _raise_if_too_many_cells(self, cells: int, line: int) -> None:
        if cells > MAX_COLUMNS:
            hint = "Check the declared delimiter and quote, and that the file is a table."
            self.raise_error(f"{cells} columns or more; the limit is {MAX_COLUMNS}", line, hint=hint)

    def _parse_unquoted_cell(self, text: str, start: int, line: int, field: int) -> tuple[str, int]:
        stop = self._cell_end_pattern.search(text, start)
        assert stop is not None
        if stop.group() == self.quote:
            hint = "The sender must quote the whole field, and double the quotes in it."
            if not re.search(f"(?:^|{re.escape(self.delimiter)}) *{re.escape(self.quote or '')}", text, re.MULTILINE):
                hint += " If no field is ever quoted, and quotes are ordinary characters, declare quote: null."
            message = f"field {field + 1} contains a quote, but does not begin with one"
            self.raise_error(message, line, _column_in_line(text, stop.start()), hint=hint)
        return text[start : stop.start()], stop.start()

    def _parse_quoted_cell(self, text: str, start: int, line: int, field: int) -> tuple[str, int]:
        quote = self.quote
        assert quote is not None
        end = text.find(quote, start + 1)
        while end >= 0 and text.startswith(quote, end + 1):
            end = text.find(quote, end + 2)
        if end < 0:
            self.raise_error(
                f"the quote that opens field {field + 1} is never closed",
                line,
                _column_in_line(text, start),
                hint=_DOUBLE,
            )
        cell, end = text[start + 1 : end].replace(quote * 2, quote), end + 1
        if end < len(text) and not text.startswith((self.delimiter, "\n", "\r\n"), end):
            message = f"text follows the closing quote of field {field + 1}, which was opened in line {line}"
            self.raise_error(message, line + cell.count("\n"), _column_in_line(text, end), hint=_DOUBLE)
        return cell, end

    def _raise_if_invalid_character(self, text: str, start: int, end: int, line: int) -> None:
        odd = self._invalid_character_pattern.search(text, start, end)
        if odd is None:
            return
        found = f"control character U+{ord(odd.group()):04X}"
        hint = "Check that it is a text file in the declared encoding."
        if not text[odd.start() :].strip(_FILLING):
            hint = (
                "The rest of the file is filled up: fetch it again, or ask the sender for the file without its filling."
            )
        elif odd.group() >= "\x80":
            hint += " U+0080 to U+009F often mean cp1252."
        if odd.group() == "\r":
            found, hint = "a CR without LF", "Ask the sender to end lines with LF or CRLF."
        elif odd.group() == "\ufeff":
            found, hint = (
                "a byte order mark inside the file",
                "Were files joined? Ask the sender to send them separately.",
            )
        self.raise_error(
            found, line + text.count("\n", start, odd.start()), _column_in_line(text, odd.start()), hint=hint
        )


def _column_in_line(text: str, at: int) -> int:
    return at - text.rfind("\n", 0, at)
