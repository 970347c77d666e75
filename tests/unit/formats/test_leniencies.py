"""What a format lets pass is declared, read the same in every way of reading, and counted."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.formats.layouts import FORMATS, Content

from crossdock.errors import RefusedError
from crossdock.reading.formats import delimited_files
from crossdock.reading.formats.delimited_layout import DelimitedFormat
from crossdock.reading.formats.file_formats import LeniencyCounts, read_rows, read_rows_at_lines

TWO: list[tuple[str, ...]] = [("1", "2"), ("3", "4")]
TYPES = {"I": {"names": ["T", "A", "B"]}, "H": {"names": ["T", "C"]}}
CASES: list[tuple[str, dict[str, Any], list[Any], str]] = [
    ("A;B;\n1;2;\n3;4;\n", {"long_lines": "drop_empty"}, TWO, "2 long lines cut to the declared columns"),
    ("A;B\n1;2;\n3;4;\n", {"long_lines": "drop_empty"}, TWO, "2 long lines cut to the declared columns"),
    ("A;B\n1;2\n3;4;;\n", {"long_lines": "drop_empty"}, TWO, "1 long line cut to the declared columns"),
    ('A;B\n"1";"2";5\n3;4\n', {"long_lines": "drop"}, TWO, "1 long line cut to the declared columns"),
    ("A;B\n1;2\n3\n", {"short_lines": "pad"}, [("1", "2"), ("3", "")], "1 short line filled up"),
    ("A;B\r\n1;2\r\n3;4\r\n\r\n \r\n", {"blank_lines": "at_end"}, TWO, "2 blank lines left out"),
    ("A;B\n1;2\n3;4\n\n\x1a", {"blank_lines": "at_end"}, TWO, "1 blank line left out"),
    ("A;B\n1;2\n\n3;4\n\n", {"blank_lines": "skip"}, TWO, "2 blank lines left out"),
    ('A;B\n1;2\n3;"4\n\n"\n\n', {"blank_lines": "skip"}, [("1", "2"), ("3", "4\n\n")], "1 blank line left out"),
    ("A;B\n1;2\n3;4\nTRL;2\n\n\n", {"blank_lines": "at_end", "trailer": {"prefix": "TRL;", "count": 1}}, TWO,
     "2 blank lines left out"),
    ("# from wms\nA;B\n# 1;2;3\n1;2\n3;4\n#", {"comment": "#"}, TWO, "3 comment lines left out"),
    ("#A;B\nA;B\n1;2\n#10-32;screw\n3;4\n# two rows\n", {"comment": "#"}, TWO,
     "1 comment line left out, 2 comment lines with as many delimiters as a row left out"),
    ("#1;2\nI;1;2\n#H;9\nI;3;4\n", {"comment": "#", "records": "I", "record_types": TYPES},
     [("I", "1", "2"), ("I", "3", "4")], "2 comment lines with as many delimiters as a row left out"),
    ("I;1;2;\nH;9\nI;3;4\n", {"long_lines": "drop_empty", "records": "I", "record_types": TYPES},
     [("I", "1", "2"), ("I", "3", "4")], "1 long line cut to the declared columns"),
    ("H;7;\nI;1\nI;3;4;;\nH\nI;5;6\n\n",
     {"short_lines": "pad", "long_lines": "drop_empty", "blank_lines": "at_end", "records": "I",
      "record_types": TYPES | {"I": {"names": ["I", "A", "B"], "parent": "H"}}},
     [("H", "7", "I", "1", ""), ("H", "7", "I", "3", "4"), ("H", "", "I", "5", "6")],
     "2 short lines filled up, 2 long lines cut to the declared columns, 1 blank line left out"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "declared", "rows", "counted"), CASES)
@pytest.mark.parametrize("chunk", [3, 4 << 20])
def test_a_declared_leniency_is_read_and_counted(
    text: str, declared: dict[str, Any], rows: list[tuple[str, ...]], counted: str, chunk: int
) -> None:
    """Also when the file is read in small pieces, and when its rows are read again by their lines."""
    layout = DelimitedFormat.model_validate({"delimiter": ";", **declared})
    leniencies, content = LeniencyCounts(), Content(text.encode())
    frame = pl.concat(
        delimited_files.read_delimited_rows(content, layout, name="f", leniencies=leniencies, _chunk=chunk)
    )
    assert (frame.drop("_line").rows(), str(leniencies)) == (rows, counted)
    again = pl.concat(read_rows_at_lines(content, layout, frame["_line"].to_list(), name="f"))
    assert again.equals(frame)


def test_no_comment_is_like_a_row_of_one_column() -> None:
    """Every text without a delimiter would be."""
    leniencies, layout = LeniencyCounts(), DelimitedFormat(comment="#")
    frame = pl.concat(read_rows(Content(b"A\n1\n# x\n3\n"), layout, name="f", leniencies=leniencies))
    assert (frame["A"].to_list(), str(leniencies)) == (["1", "3"], "1 comment line left out")


@pytest.mark.parametrize(("text", "declared"), [(text, declared) for text, declared, *_ in CASES])
def test_nothing_passes_by_default(text: str, declared: dict[str, Any]) -> None:
    """The same files are refused without the declaration."""
    others = {name: value for name, value in declared.items() if not name.endswith("_lines") and name != "comment"}
    layout = FORMATS.validate_python({"delimiter": ";", **others})
    with pytest.raises(RefusedError):
        list(read_rows(Content(text.encode()), layout, name="f"))


TRAILER = {"trailer": {"prefix": "TRL;", "count": 1}}


@pytest.mark.parametrize(
    ("text", "declared", "advice"),
    [
        ("A;B\n1;2\nTRL;1\n\n", TRAILER, {"blank_lines": "at_end"}),
        ("A;B\n1;2\nTRL;1\n\n \n", TRAILER, {"blank_lines": "at_end"}),
        ("A;B\n1;2;\n3;4;\n", {}, {"long_lines": "drop_empty"}),
        ("I;1;2;\nH;9;\n", {"records": "I", "record_types": TYPES}, {"long_lines": "drop_empty"}),
    ],
)
def test_the_refusal_names_the_declaration_that_helps(
    text: str, declared: dict[str, Any], advice: dict[str, str]
) -> None:
    """Followed, it reads the file."""
    content, layout = Content(text.encode()), {"delimiter": ";", **declared}
    with pytest.raises(RefusedError) as refused:
        list(read_rows(content, DelimitedFormat.model_validate(layout), name="f"))
    ((key, value),) = advice.items()
    assert f"declare {key}: {value}" in str(refused.value.hint)
    frames = read_rows(content, DelimitedFormat.model_validate({**layout, **advice}), name="f")
    assert sum(frame.height for frame in frames) > 0


@pytest.mark.parametrize("text", ["A;B\n1;2;3\nTRL;1\n", "A;B\nTRL;0\n1;2\n", "A;B\nTRL;0\n1;2\n\n"])
def test_advice_that_would_lose_rows_or_fields_is_not_given(text: str) -> None:
    """A field that is not empty, and rows behind a trailer, are something else."""
    layout = DelimitedFormat.model_validate({"delimiter": ";", **TRAILER})
    with pytest.raises(RefusedError) as refused:
        list(read_rows(Content(text.encode()), layout, name="f"))
    assert "drop_empty" not in str(refused.value.hint)
    assert "at_end" not in str(refused.value.hint)


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        ("A;B\n1;2;x\n", {"long_lines": "drop_empty"}),
        ("A;B\n1\n", {"long_lines": "drop_empty"}),
        ("A;B\n1;2;\n", {"short_lines": "pad"}),
        ("A;B\n\n1;2\n", {"blank_lines": "at_end"}),
        ("A;;B\n1;2;3\n", {"long_lines": "drop_empty"}),
    ],
)
def test_a_leniency_lets_nothing_else_pass(text: str, declared: dict[str, Any]) -> None:
    """Fields with text are not left out, and lines are not filled up, unless that is declared too."""
    with pytest.raises(RefusedError):
        list(
            read_rows(Content(text.encode()), DelimitedFormat.model_validate({"delimiter": ";", **declared}), name="f")
        )


@given(st.lists(st.tuples(st.text('ab;"\n ', max_size=3), st.text('ab;"\n ', max_size=3)), max_size=4), st.data())
def test_a_ragged_file_gives_the_rows_of_the_whole_one(rows: list[tuple[str, str]], data: st.DataObject) -> None:
    """Delimiters at line ends, and blank lines between rows and at the end, change no row."""
    cells = [tuple('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    lines = [";".join(row) + ";" * data.draw(st.integers(0, 2)) + "\n" * data.draw(st.integers(1, 3)) for row in cells]
    layout = DelimitedFormat(delimiter=";", long_lines="drop_empty", blank_lines="skip")
    frame = pl.concat(read_rows(Content(("A;B\n" + "".join(lines)).encode()), layout, name="f"))
    assert frame.drop("_line").rows() == rows
