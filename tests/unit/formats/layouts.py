"""What the tests of layouts have in common: a format from a config, and reading bytes with it."""

from __future__ import annotations

from io import BytesIO
from typing import Any, BinaryIO, Literal

import polars as pl
from pydantic import TypeAdapter

from crossdock.reading.formats.file_formats import FileFormat, read_rows
from crossdock.reading.formats.fixed_width_layout import FixedWidthFormat

FORMATS: TypeAdapter[FileFormat] = TypeAdapter(FileFormat)
ORDERS: dict[str, Any] = {
    "kind": "fixed_width",
    "record_type": {"length": 3},
    "record_types": {
        "file_header": {"code": "HDR", "once": "first", "columns": {"SENT": {"at": 4, "length": 8}}},
        "order": {"code": "ORD", "columns": {"ORDER": {"at": 4, "length": 6}}},
        "line": {
            "code": "LIN",
            "parent": "order",
            "columns": {
                "SKU": {"at": 4, "length": 6},
                "QTY": {"at": 10, "length": 4, "decimals": 0},
                "AMOUNT": {"at": 14, "length": 7, "decimals": 2, "sign": "overpunch"},
            },
        },
        "order_end": {
            "code": "END",
            "parent": "order",
            "once": "last",
            "columns": {"LINES": {"at": 4, "length": 3, "decimals": 0}},
            "counts": {"LINES": ["line"]},
        },
        "trailer": {
            "code": "TRL",
            "once": "last",
            "columns": {
                "ALL_LINES": {"at": 4, "length": 6, "decimals": 0},
                "TOTAL": {"at": 10, "length": 9, "decimals": 2, "sign": "trailing"},
            },
            "counts": {"ALL_LINES": ["line"]},
            "sums": {"TOTAL": "line.AMOUNT"},
        },
    },
    "records": "line",
}
"""Two levels of headers and trailers, with counts and a sum."""
GOOD = (
    "HDR20261101",
    "ORDA00001",
    "LINP00001  12000125{",
    "LINP00002   1000010}",
    "END002",
    "ORDA00002",
    "END000",
    "ORDA00003",
    "LINP00001   3000000A",
    "END001",
    "TRL00000300001151 ",
)
"""A file of this layout; the amounts are 12.50, -1.00 and 0.01."""


class Content:
    """Bytes that can be read like a file."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def open(self, mode: Literal["rb"], /) -> BinaryIO:
        return BytesIO(self._data)


def layout(**config: Any) -> FileFormat:
    return FORMATS.validate_python(config)


def fixed_width(**config: Any) -> FixedWidthFormat:
    return FixedWidthFormat.model_validate(config)


def read(data: bytes | str, config: dict[str, Any], *, batch_rows: int = 100_000) -> pl.DataFrame:
    """All rows of a file with the content *data*."""
    content = Content(data.encode() if isinstance(data, str) else data)
    return pl.concat(read_rows(content, FORMATS.validate_python(config), name="f", batch_rows=batch_rows))


def lines(*texts: str, end: str = "\n") -> str:
    return "".join(f"{text}{end}" for text in texts)
