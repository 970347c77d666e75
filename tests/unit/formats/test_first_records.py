"""The first records and lines of a file, with their places."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.unit.formats.layouts import GOOD, ORDERS, layout, lines

from crossdock.errors import RefusedError
from crossdock.reading.formats.file_formats import FileFormat, get_reader_of_layout
from crossdock.reading.formats.file_preview import (
    add_position_rulers,
    mask_letters_and_digits,
    read_first_lines,
    read_first_records_and_count_rows,
)


def test_the_whole_file_is_read_and_some_records_are_kept(tmp_path: Path) -> None:
    """So that a fault at its end is told."""
    file = tmp_path / "f"
    file.write_text(lines(*GOOD))
    found = read_first_records_and_count_rows(file, layout(**ORDERS), 2, name=file.name)
    assert (len(found.records), found.rows, found.error) == (2, 3, None)
    assert found.records[0][1]["SKU"] == ("line 4-9", "P00001")
    file.write_text(lines(*GOOD[:-1]))
    assert "the last record" in str(read_first_records_and_count_rows(file, layout(**ORDERS), 2, name=file.name).error)


def test_places_are_those_of_the_config() -> None:
    """Positions, fields from 0, or cells."""

    def places(layout: FileFormat, names: list[str], line: int) -> Mapping[str, str]:
        return get_reader_of_layout(layout).describe_cell_places(layout, names, line)

    assert places(layout(), ["A", "B"], 2) == {"A": "field 0", "B": "field 1"}
    assert places(layout(kind="sheet"), ["A", "B"], 7) == {"A": "A7", "B": "B7"}
    columns = {"A": {"at": 3, "length": 4}}
    assert places(layout(kind="fixed_width", columns=columns), ["A"], 1) == {"A": "3-6"}


def test_first_lines_may_be_packed_and_in_any_encoding(tmp_path: Path) -> None:
    """Bytes that are no characters do not hide the others."""
    file = tmp_path / "f"
    file.write_bytes(gzip.compress(b"ab\xff\r\ncd\nef\n"))
    assert read_first_lines(file, 2, encoding="utf-8", length=None) == ["ab\ufffd", "cd"]
    assert read_first_lines(file, 9, encoding="cp1252", length=None) == ["ab\u00ff", "cd", "ef"]
    file.write_bytes("abcdef".encode("cp037"))
    assert read_first_lines(file, 2, encoding="cp037", length=2) == ["ab", "cd"]
    file.write_bytes(b"")
    with pytest.raises(RefusedError, match="the file is empty"):
        read_first_lines(file, 1, encoding="utf-8", length=None)


def test_rulers_number_every_position() -> None:
    """Parts of wide lines stand below rulers of their own."""
    assert list(add_position_rulers(["abcdefghijkl", "x"], 10)) == [
        "           10", "   1234567890", "1  abcdefghij", "2  x", "", "", "   12", "1  kl", "2",
    ]  # fmt: skip


def test_a_shape_says_nothing() -> None:
    """Letters and digits of any script are replaced, and their number stays."""
    assert mask_letters_and_digits("Zo\u00eb 12-\u0663{") == "Aaa 99-9{"
