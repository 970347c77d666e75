"""How the tests make contents and records, and read files back with the readers."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import TypeAdapter
from tests.unit.formats.edi import layout_of

from crossdock.errors import RecordError
from crossdock.reading.formats.file_formats import read_rows
from crossdock.values.raw_rows_and_records import JSON, LINE, REFUSED
from crossdock.writing.files.content_interface import FileOperation
from crossdock.writing.files.content_kinds import FileContent, FileContentConfig, FileRecord, WrittenFileFacts

_CONTENT: TypeAdapter[FileContent] = TypeAdapter(FileContentConfig)
FACTS = WrittenFileFacts(7, datetime(2026, 11, 1, 8, 5, tzinfo=ZoneInfo("America/New_York")), "ORDERS_7.txt")


def content_of(**keys: Any) -> FileContent:
    return _CONTENT.validate_python(keys)


def record(payload: dict[str, Any], operation: FileOperation = "create", name: str = "SO-1") -> FileRecord:
    return FileRecord(operation, name, payload)


def text_of(content: FileContent, *records: FileRecord, encoding: str = "utf-8") -> str:
    for each in records:
        content.check_record(each)
    return content.file_bytes(records, FACTS).decode(encoding)


def refusal(content: FileContent, each: FileRecord) -> tuple[str, str]:
    """The place and the message with which *each* is refused."""
    with pytest.raises(RecordError) as raised:
        content.check_record(each)
    assert raised.value.code == "invalid_draft"
    return raised.value.pointer or "", raised.value.message


def is_writable(content: FileContent, each: FileRecord) -> bool:
    with suppress(RecordError):
        content.check_record(each)
        return True
    return False


def read_back(folder: Path, data: bytes, **layout: Any) -> list[dict[str, str]]:
    """The rows that the reader of *layout* finds in *data*."""
    path = folder / "written"
    path.write_bytes(data)
    rows: list[dict[str, str]] = []
    for frame in read_rows(path, layout_of(**layout), name="written"):
        assert REFUSED not in frame.columns or not any(frame[REFUSED])
        rows += [
            {key: cell for key, cell in row.items() if key not in {LINE, REFUSED}}
            for row in frame.iter_rows(named=True)
        ]
    return rows


def json_back(folder: Path, data: bytes, **layout: Any) -> list[str]:
    return [row[JSON] for row in read_back(folder, data, **layout)]


def lines(*quantities: Any) -> dict[str, Any]:
    """A payload with a line for each quantity."""
    return {"lines": [{"sku": f"S{number}", "quantity": each} for number, each in enumerate(quantities, 1)]}
