"""The strict parser of delimited text: slow, plain, and the judge of every record that is not plainly right.

It follows RFC 4180 with any delimiter, and refuses what the RFC leaves open. It never says what stands in a cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from crossdock.errors import RefusedError

MAX_COLUMNS = 4_096
"""MySQL and Oracle allow so many, other databases fewer; each column costs memory, however few rows there are."""
_CONTROLS = "".join(map(chr, [*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0)]))
_DOUBLE = "A quote inside a quoted field must be doubled; if quotes are ordinary characters, declare quote: null."


@dataclass(frozen=True)
class StrictParser:
    """Parses whole records.

    Attributes:
        name: What errors call the file.
        delimiter: What stands between two cells, one character or several.
        quote: What encloses a cell that holds delimiters, line ends or quotes; None if nothing does.
    """

    name: str
    delimiter: str
    quote: str | None

    def records(self, text: str, line: int, *, crlf: bool | None = None) -> Iterator[tuple[int, list[str]]]:
        """The records of *text* and the lines where they begin; the last one may lack its line end.

        Args:
            text: Begins where a record begins.
            line: The number of its first line.
            crlf: How the file ends its lines; None if not known yet.

        Raises:
            RefusedError: At the first deviation.
        """
        start = 0
        while start < len(text):
            cells, end = self._record(text, start, line)
            self._check_characters(text, start, end, line)
            if cells == [""] and text[start:end].strip("\r\n") == "":
                self.refuse(
                    "the line is blank", line, hint="Blank lines are no records: the sender must not write any."
                )
            if crlf is not None and text[end - 1] == "\n" and text.endswith("\r\n", start, end) != crlf:
                found, before = ("LF", "CRLF") if crlf else ("CRLF", "LF")
                line += text.count("\n", start, end) - 1
                hint = "Files joined from two systems look so: have it written by one."
                self.refuse(f"the line ends with {found}, the lines before it with {before}", line, hint=hint)
            yield line, cells
            line += text.count("\n", start, end)
            start = end

    def refuse(self, message: str, line: int, column: int | None = None, *, hint: str) -> NoReturn:
        where = f"{self.name}:{line}" if column is None else f"{self.name}:{line}:{column}"
        raise RefusedError(message, where=where, hint=hint)

    @cached_property
    def _cell_end(self) -> re.Pattern[str]:
        """Where an unquoted cell ends, or goes wrong."""
        return re.compile(
            "|".join([re.escape(self.delimiter), re.escape(self.quote or self.delimiter), r"\r?\n", r"\Z"])
        )

    @cached_property
    def _odd_character(self) -> re.Pattern[str]:
        controls = "".join(control for control in _CONTROLS if control != self.delimiter)
        return re.compile(f"[{re.escape(controls)}\ufeff]|\r(?!\n)")

    def _record(self, text: str, start: int, line: int) -> tuple[list[str], int]:
        """The cells of the record at *start*, and where the next one starts."""
        first_line, end = line, text.find("\n", start) + 1 or len(text)
        if self.quote is None or text.find(self.quote, start, end) < 0:
            self._check_number(text.count(self.delimiter, start, end) + 1, first_line)
            return text[start:end].removesuffix("\n").removesuffix("\r").split(self.delimiter), end
        cells: list[str] = []
        while True:
            if text.startswith(self.quote, start):
                cell, start = self._quoted(text, start, line, len(cells))
            else:
                cell, start = self._unquoted(text, start, line, len(cells))
            line += cell.count("\n")
            cells.append(cell)
            self._check_number(len(cells), first_line)
            if text.startswith(self.delimiter, start):
                start += len(self.delimiter)
            else:
                return cells, min(len(text), start + (2 if text.startswith("\r\n", start) else 1))

    def _check_number(self, cells: int, line: int) -> None:
        if cells > MAX_COLUMNS:
            hint = "Are delimiter and quote the declared ones, and is it a table?"
            self.refuse(f"{cells} columns or more, at most {MAX_COLUMNS} are taken", line, hint=hint)

    def _unquoted(self, text: str, start: int, line: int, field: int) -> tuple[str, int]:
        stop = self._cell_end.search(text, start)
        assert stop is not None
        if stop.group() == self.quote:
            self.refuse(
                f"a quote stands inside field {field + 1}, which does not begin with one",
                line,
                _column(text, stop.start()),
                hint="The sender must quote the whole field; if quotes are ordinary characters, declare quote: null.",
            )
        return text[start : stop.start()], stop.start()

    def _quoted(self, text: str, start: int, line: int, field: int) -> tuple[str, int]:
        quote = self.quote
        assert quote is not None
        end = text.find(quote, start + 1)
        while end >= 0 and text.startswith(quote, end + 1):
            end = text.find(quote, end + 2)
        if end < 0:
            self.refuse(
                f"the quote that opens field {field + 1} is never closed",
                line,
                _column(text, start),
                hint=_DOUBLE,
            )
        cell, end = text[start + 1 : end].replace(quote * 2, quote), end + 1
        if end < len(text) and not text.startswith((self.delimiter, "\n", "\r\n"), end):
            self.refuse(
                f"text follows the closing quote of field {field + 1}, which was opened in line {line}",
                line + cell.count("\n"),
                _column(text, end),
                hint=_DOUBLE,
            )
        return cell, end

    def _check_characters(self, text: str, start: int, end: int, line: int) -> None:
        odd = self._odd_character.search(text, start, end)
        if odd is None:
            return
        found, hint = (
            f"control character U+{ord(odd.group()):04X}",
            "Is it a text file, and the declared encoding the right one? U+0080 to U+009F are often cp1252.",
        )
        if odd.group() == "\r":
            found, hint = "a CR without LF", "Lines end with LF or CRLF: the sender must write one of the two."
        elif odd.group() == "\ufeff":
            found, hint = "a byte order mark inside the file", "Files joined together look so: have them sent apart."
        self.refuse(found, line + text.count("\n", start, odd.start()), _column(text, odd.start()), hint=hint)


def _column(text: str, at: int) -> int:
    return at - text.rfind("\n", 0, at)
