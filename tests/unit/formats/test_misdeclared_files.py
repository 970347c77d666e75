"""A file of another kind is refused by saying what it is, whatever its name and the declared format are."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.formats.layouts import read

from crossdock.errors import RefusedError
from crossdock.reading.formats.file_kind_and_encoding_mismatch import (
    HEAD,
    raise_if_edi_interchange,
    raise_if_head_shows_other_kind,
    raise_if_not_sheet_file,
)

ROWS = b"SKU;NAME\n0017;Bolt\n"
X12 = (
    b"ISA*00*          *00*          *ZZ*SENDER         *ZZ*RECEIVER       *261125*0800*U*00401*000000001*0*P*>~GS*IB*"
)
DELIMITED: dict[str, Any] = {"delimiter": ";"}
FIXED: dict[str, Any] = {"kind": "fixed_width", "short_lines": "pad", "columns": {"SKU": {"at": 1, "length": 4}}}
SHEET: dict[str, Any] = {"kind": "sheet"}


def zipped(name: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(name, ROWS)
    return target.getvalue()


def tarred() -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("ITEM.csv"), io.BytesIO())
    return target.getvalue()


KINDS: list[tuple[bytes, str]] = [
    (zipped("ITEM.csv"), "a zip archive"),
    (zipped("[Content_Types].xml"), "an Excel file"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "an old Excel file"),
    (b"%PDF-1.7\n", "a PDF document"),
    (bz2.compress(ROWS), "packed with bzip2"),
    (lzma.compress(ROWS), "packed with xz"),
    (gzip.compress(gzip.compress(ROWS, mtime=0), mtime=0), "gzip inside of gzip"),
    (tarred(), "a tar archive"),
    (b"-----BEGIN PGP MESSAGE-----\n\nhQEMA\n", "a PGP message"),
    (b"\x85\x01\x0c\x03" + bytes(range(64)), "encrypted with PGP"),
    (b"<!DOCTYPE html>\n<html><body>Login</body></html>", "an HTML page"),
    (b"<html xmlns:x='urn:schemas-microsoft-com:office:excel'><table>", "an HTML page"),
    (b'<?xml version="1.0"?>\n<items/>', "XML"),
    ("\ufeff<?xml version='1.0'?>\n<items/>".encode(), "XML"),
    (b"PAR1\x15\x04\x15", "a Parquet file"),
    (b"ARROW1\0\0\xff\xff", "an Arrow file"),
    (json.dumps([{"sku": "0017"}]).encode(), "JSON"),
    (json.dumps({"items": []}, indent=2).encode(), "JSON"),
    (ROWS.decode().encode("utf-16-le"), "in utf-16-le"),
]


@pytest.mark.parametrize(("data", "what"), KINDS)
@pytest.mark.parametrize("layout", [DELIMITED, FIXED, SHEET])
def test_a_file_of_another_kind_is_named(data: bytes, what: str, layout: dict[str, Any]) -> None:
    """The message says what it is, and the hint what to do."""
    if layout is SHEET and what in {"a zip archive", "an Excel file", "an old Excel file", "in utf-16-le"}:
        return  # these may be sheets
    with pytest.raises(RefusedError, match=f"the file is {what.removesuffix(' inside of gzip')}") as refused:
        read(data, layout) if layout is not SHEET else raise_if_not_sheet_file(data[:HEAD], name="f")
    assert refused.value.hint
    assert str(refused.value.where).startswith("f")


@pytest.mark.parametrize(
    ("data", "what"), [(X12, "X12"), (b"UNA:+.? '\nUNB+UNOC:3+S+R'", "EDIFACT"), (b"UNB+UNOC:3+S+R'", "EDIFACT")]
)
def test_an_interchange_is_named_unless_its_segments_are_declared(data: bytes, what: str) -> None:
    """As record types they may be read."""
    with pytest.raises(RefusedError, match=f"the file is an {what} interchange"):
        read(data, DELIMITED)
    types = {"ISA": {"names": [f"E{number}" for number in range(17)]}, "GS": {"names": ["T", "E", "F"]}}
    layout = {"delimiter": "*", "row_end": "~", "record_types": types, "records": "ISA", "long_lines": "drop"}
    if what == "X12":
        assert read(X12 + b"~", layout).height == 1


def test_text_that_is_declared_to_be_a_sheet_is_named() -> None:
    """A CSV file with the name of an Excel file."""
    with pytest.raises(RefusedError, match="the file is text, and no sheet"):
        raise_if_not_sheet_file(ROWS, name="STOCK.xlsx")


@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60), st.sampled_from(["utf-8", "cp1252", "cp037"])
)
def test_rows_of_text_are_of_no_other_kind(text: str, encoding: str) -> None:
    """Whatever a table of texts holds, in any encoding."""
    data = f"0017;{text}".encode(encoding, errors="replace")
    raise_if_head_shows_other_kind(data, encoding, name="f")
    raise_if_edi_interchange(data, name="f")
