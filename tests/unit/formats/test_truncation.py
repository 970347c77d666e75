"""Which files end in the middle of a row."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from crossdock.reading.formats.text_decoding import is_last_row_end_missing


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp037"])
@pytest.mark.parametrize("end", [None, "&|\n", "~"])
@pytest.mark.parametrize("dos_end", ["", "\x1a"])
def test_a_row_without_its_end_is_cut(tmp_path: Path, encoding: str, end: str | None, dos_end: str) -> None:
    """In every encoding, with and without the end mark of DOS."""
    path = tmp_path / "file"
    for text, cut in ((end or "\n", False), ((end or "\n").replace("\n", "\r\n"), False), ("", True)):
        path.write_bytes(f"A;B{end or chr(10)}1;2{text}{dos_end}".encode(encoding))
        assert is_last_row_end_missing(path, encoding, end) is cut


def test_either_byte_order_ends_rows(tmp_path: Path) -> None:
    """The mark at the beginning decides, whatever this machine's order is."""
    path = tmp_path / "file"
    path.write_bytes(b"\xfe\xff" + "A;B\n1;2\n".encode("utf-16-be"))
    assert not is_last_row_end_missing(path, "utf-16", None)


def test_gzip_has_its_own_end(tmp_path: Path) -> None:
    """What is packed is whole, or refused when it is unpacked."""
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(b"A;B\n1;2", mtime=0))
    assert not is_last_row_end_missing(path, "utf-8", None)
