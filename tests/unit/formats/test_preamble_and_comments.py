"""Preambles and comments: what is left out, and that all places stay those of the file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.errors import RefusedError
from crossdock.reading.formats import text_decoding
from crossdock.reading.formats.delimited_files import read_delimited_rows, read_delimited_rows_at_lines
from crossdock.reading.formats.delimited_layout import DelimitedFormat
from crossdock.reading.formats.file_formats import LeniencyCounts
from crossdock.reading.formats.text_decoding import (
    CommentRecognizer,
    TextOrSkippedLineCount,
    skip_comment_lines,
    skip_preamble_lines,
)

REPORT = b"""STOCK "OF 2026-11-22
printed by: |||
ID|TEXT
---|----
1|one
# it's a "note
2|"two
# not a note"
-- end of page 1 --
3|three
TRL|3
# 4
"""


@pytest.mark.parametrize("chunk", [1, 2, 7, 1000])
def test_a_preamble_and_comments_are_no_rows(chunk: int, tmp_path: Path) -> None:
    """Neither they nor their quotes count, except inside of quotes, and each row keeps its line."""
    path = tmp_path / "file"
    path.write_bytes(REPORT.replace(b"-- end of page 1 --\n", b"").replace(b"---|----\n", b""))
    layout = DelimitedFormat(delimiter="|", skip_lines=2, comment="#", trailer={"prefix": "TRL|", "count": 1})
    rows = [row for frame in read_delimited_rows(path, layout, name="f", _chunk=chunk) for row in frame.rows()]
    assert rows == [("1", "one", 4), ("2", "two\n# not a note", 6), ("3", "three", 8)]
    picked = [
        row
        for frame in read_delimited_rows_at_lines(path, layout, [4, 8], name="f", _chunk=chunk)
        for row in frame.rows()
    ]
    assert picked == [rows[0], rows[2]]


def test_a_fault_after_them_has_its_line(tmp_path: Path) -> None:
    """Lines that were left out count in places."""
    path = tmp_path / "file"
    path.write_bytes(b"preamble\nA,B\n# note\n1,2\n# note\n3\n")
    with pytest.raises(RefusedError) as refused:
        list(read_delimited_rows(path, DelimitedFormat(skip_lines=1, comment="#"), name="f"))
    assert refused.value.where == "f:6"


def test_a_fault_in_the_header_has_its_line(tmp_path: Path) -> None:
    """The header is where the preamble ends."""
    path = tmp_path / "file"
    path.write_bytes(b"preamble\n# note\nA,A\n1,2\n")
    with pytest.raises(RefusedError) as refused:
        list(read_delimited_rows(path, DelimitedFormat(skip_lines=1, comment="#"), name="f"))
    assert refused.value.where == "f:3"


@pytest.mark.parametrize("text", ["", "one\n", "one\ntwo", "# one\n"])
def test_a_file_of_nothing_else_is_empty(text: str, tmp_path: Path) -> None:
    """A preamble that is cut off is not taken for a header."""
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(RefusedError, match="the file is empty"):
        list(read_delimited_rows(path, DelimitedFormat(skip_lines=2, comment="#"), name="f"))


@given(
    text=st.text(st.sampled_from(list('#a"\n')), max_size=40),
    chunk=st.integers(1, 9),
    skip=st.integers(1, 3),
)
def test_blocks_do_not_matter(text: str, chunk: int, skip: int) -> None:
    """However a file is cut into blocks, the same lines remain."""
    data = text.encode()
    blocks = [data[start : start + chunk] for start in range(0, len(data), chunk)]
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    assert _text(skip_preamble_lines(iter(blocks), skip)) == "".join(lines[skip:])
    kept, quotes = list[str](), 0
    for line in lines:
        if quotes % 2 or not line.startswith("#"):
            kept.append(line)
            quotes += line.count('"')
    found = list(skip_comment_lines(iter(blocks), CommentRecognizer("#", ",", LeniencyCounts()), '"'))
    assert _text(found) == "".join(kept)
    left_out = "".join(kept).count("\n") + sum(block for block in found if isinstance(block, int))
    assert left_out == text.count("\n")


def _text(blocks: Iterable[TextOrSkippedLineCount]) -> str:
    return b"".join(block for block in blocks if not isinstance(block, int)).decode()


def test_an_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded where comments are looked for, too."""
    monkeypatch.setattr(text_decoding, "MAX_RECORD_BYTES", 10_000)
    path = tmp_path / "file"
    path.write_bytes(b"A,B\n" + b"x" * 1_000_000)
    with pytest.raises(RefusedError, match="a record of more than") as refused:
        list(read_delimited_rows(path, DelimitedFormat(comment="#"), name="f", _chunk=1000))
    assert refused.value.where == "f:2"


def test_a_footer_without_a_count_shows_the_end(tmp_path: Path) -> None:
    """A trailer without a number must be there, and is no row."""
    path = tmp_path / "file"
    layout = DelimitedFormat(trailer={"prefix": "(2 rows affected)"})
    path.write_bytes(b"A,B\n1,2\n3,4\n(2 rows affected)\n")
    assert [frame.height for frame in read_delimited_rows(path, layout, name="f")] == [2]
    path.write_bytes(b"A,B\n1,2\n3,4\n")
    with pytest.raises(RefusedError, match="the last line is not the trailer"):
        list(read_delimited_rows(path, layout, name="f"))
