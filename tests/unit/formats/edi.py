"""A writer of EDI files that shares nothing with the readers, and how the tests read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from crossdock.reading.formats.file_formats import FileFormat, read_rows
from crossdock.values.raw_rows_and_records import LINE, REFUSED

Row = dict[str, str]
_FORMAT: TypeAdapter[FileFormat] = TypeAdapter(FileFormat)


def layout_of(**keys: Any) -> FileFormat:
    return _FORMAT.validate_python(keys)


@dataclass(frozen=True)
class X12:
    """Writes X12 with any separators; segments are lists of elements."""

    element: str = "*"
    component: str = ">"
    end: str = "~\n"
    version: str = "00401"
    repetition: str = "U"

    def isa(self, number: int = 7, *, test: str = "P", padded: bool = True) -> str:
        elements = ["00", " " * 10, "00", " " * 10, "ZZ", "WAREHOUSE".ljust(15), "ZZ", "SHOP".ljust(15), "261101"]
        elements += ["0800", self.repetition, self.version, f"{number:09}", "0", test, self.component]
        if not padded:
            elements = [each.strip(" ") for each in elements]
        return self.element.join(["ISA", *elements]) + self.end

    def text(self, segments: Sequence[Sequence[str]]) -> str:
        return "".join(self.element.join(each) + self.end for each in segments)

    def file(self, *groups: Sequence[Sequence[Sequence[str]]], number: int = 7, **isa: Any) -> str:
        """One interchange of *groups*, each of them a list of sets without ST and SE."""
        text = self.isa(number, **isa)
        for group, sets in enumerate(groups, 1):
            text += self.text([["GS", "SW", "WAREHOUSE", "SHOP", "20261101", "0800", str(group), "X", "004010"]])
            for control, body in enumerate(sets, 1):
                trailer = ["SE", str(len(body) + 2), f"{control:04}"]
                text += self.text([["ST", "945", f"{control:04}"], *body, trailer])
            text += self.text([["GE", str(len(sets)), str(group)]])
        return text + self.text([["IEA", str(len(groups)), f"{number:09}"]])


def released(text: str, special: str = "?+:'") -> str:
    return "".join(f"?{each}" if each in special else each for each in text)


def edifact(
    *messages: Sequence[str], una: str = "UNA:+.? '", kind: str = "DESADV", end: str = "'\n", unb: str = ""
) -> str:
    """One interchange of *messages*, which are texts of segments without UNH and UNT."""
    text = f"{una}\n" if una else ""
    text += f"UNB+UNOC:3+4000001000005:14+4000002000004:14+261101:0800+77{unb}{end}"
    for number, body in enumerate(messages, 1):
        segments = [f"UNH+{number}+{kind}:D:96A:UN", *body, f"UNT+{len(body) + 2}+{number}"]
        text += "".join(segment + end for segment in segments)
    return f"{text}UNZ+{len(messages)}+77{end}"


def read(path: Path, layout: FileFormat, batch_rows: int = 100_000) -> tuple[list[Row], list[str]]:
    """The rows without empty cells, and why sets were refused."""
    rows: list[Row] = []
    refused: list[str] = []
    for frame in read_rows(path, layout, name=path.name, batch_rows=batch_rows):
        assert frame.height <= batch_rows
        for row in frame.iter_rows(named=True):
            if row[REFUSED]:
                refused.append(row[REFUSED])
                assert not any(cell for name, cell in row.items() if name not in {REFUSED, LINE})
            else:
                rows.append({name: cell for name, cell in row.items() if cell and name != LINE})
    return rows, refused
