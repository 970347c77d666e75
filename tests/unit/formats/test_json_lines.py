"""JSON Lines: one object in each line, or the file is refused with its place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from crossdock.errors import RefusedError
from crossdock.reading.formats import json_files
from crossdock.reading.formats.file_formats import may_be_truncated, read_rows, read_rows_at_lines
from crossdock.reading.formats.json_files import JsonLinesFormat
from crossdock.values.raw_rows_and_records import JSON, LINE, Record, invalid_json_value_error

LAYOUT = JsonLinesFormat(kind="json_lines")
TWO = '{"id": "0017", "price": 1.50, "big": 9007199254740993}\n{"id": "ü"}\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.jsonl"


def rows(file: Path, batch_rows: int = 100_000) -> list[tuple[int, Any]]:
    """The line and the object of each row, after a frame for each batch."""
    frames = list(read_rows(file, LAYOUT, name="a.jsonl", batch_rows=batch_rows))
    assert all(frame.columns == [JSON, LINE] and frame.height <= batch_rows for frame in frames)
    return [(line, json.loads(text)) for frame in frames for text, line in frame.iter_rows()]


@pytest.mark.parametrize("written", [TWO, TWO.rstrip(), f"{TWO}\n \n", f"\ufeff{TWO}", TWO.replace("\n", "\r\n")])
@pytest.mark.parametrize("packed", [False, True])
def test_objects_are_read_exactly(file: Path, monkeypatch: pytest.MonkeyPatch, written: str, *, packed: bool) -> None:
    """With or without a byte order mark, a last line end and blank lines after it, from any pieces of the file."""
    file.write_bytes(gzip.compress(written.encode()) if packed else written.encode())
    expected = [(1, {"id": "0017", "price": 1.5, "big": 9007199254740993}), (2, {"id": "ü"})]
    for size in (1 << 20, 5):
        monkeypatch.setattr(json_files, "CHUNK_BYTES", size)
        assert rows(file) == rows(file, 1) == expected
    (found,) = read_rows_at_lines(file, LAYOUT, [2], name="a.jsonl")
    assert found.rows() == [('{"id":"ü"}', 2)]


def test_a_file_that_may_be_cut_is_recognized(file: Path) -> None:
    """A last line without its end could be a part of one, as far as it is JSON."""
    file.write_text(TWO)
    assert not may_be_truncated(file, LAYOUT)
    file.write_text(TWO.rstrip())
    assert may_be_truncated(file, LAYOUT)


@pytest.mark.parametrize(
    ("written", "where", "says"),
    [
        ("", "a.jsonl", "the file is empty"),
        ('{"id": 1}\n{"id" 2}\n', "a.jsonl:2:7", "is not JSON"),
        ('{"id": 1}\n{"id": 2', "a.jsonl:2:9", "is not JSON"),
        ('{"id": 1}\n\n{"id": 2}\n', "a.jsonl:2", "is a blank line"),
        ('[{"id": 1}]\n', "a.jsonl:1", "is a list"),
        ('{"id": 1}\n17\n', "a.jsonl:2", "is not an object"),
        ("<html><body>log in</body></html>", "a.jsonl", "HTML"),
        ("SKU;NAME\n1;a\n", "a.jsonl:1", "is not JSON"),
        ('{\n  "id": 1\n}\n', "a.jsonl:1", "is not JSON"),
        ('\ufeff\ufeff{"id": 1}\n', "a.jsonl:1", "two byte order marks"),
        ('{"id": 1}\n'.encode("utf-16"), "a.jsonl", "in utf-16-le"),
        ('{"id": 1}\n'.encode("utf-16-be"), "a.jsonl", "in utf-16-be"),
    ],
)
def test_anything_else_is_refused_with_its_place(file: Path, written: str | bytes, where: str, says: str) -> None:
    """Nothing of a record is quoted, and nothing is advised that this format cannot declare."""
    file.write_bytes(written if isinstance(written, bytes) else written.encode())
    with pytest.raises(RefusedError, match=says) as refused:
        rows(file)
    assert (refused.value.where or "").startswith(where)
    assert refused.value.hint
    assert "eclare" not in refused.value.hint
    assert "log in" not in str(refused.value)


def test_half_of_a_character_refuses_its_record_and_not_the_file(file: Path) -> None:
    """As in an answer of an API: programs cut texts within an emoji or write NaN; a dead letter names the member."""
    file.write_text('{"id": "1", "name": "Lamp"}\n{"id": "2", "name": "Lamp \\ud83d"}\n{"id": "3", "size": NaN}\n')
    found = [
        Record(str(line), ({JSON: text},), "a.jsonl", (line,))
        for frame in read_rows(file, LAYOUT, name="a.jsonl")
        for text, line in frame.iter_rows()
    ]
    errors = [invalid_json_value_error(each) for each in found]
    assert [error and error.pointer for error in errors] == [None, "/name", "/size"]


def test_a_line_has_a_bound(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without line ends does not fill the memory."""
    monkeypatch.setattr(json_files, "MAX_RECORD_BYTES", 64)
    monkeypatch.setattr(json_files, "CHUNK_BYTES", 16)
    file.write_text('{"id": 1}\n{"id": "' + "x" * 100 + '"}\n')
    with pytest.raises(RefusedError, match="a line of more than 64 bytes") as refused:
        rows(file)
    assert refused.value.where == "a.jsonl:2"
