"""The layout as it is declared, batches, limits, and what refusals do not tell."""

from __future__ import annotations

import csv
import gzip
import random
import tracemalloc
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest
from pydantic import ValidationError
from tests.unit.formats.layouts import Content

from crossdock.errors import RefusedError
from crossdock.reading.formats import delimited_files, polars_delimited_parser, text_decoding
from crossdock.reading.formats.delimited_files import read_delimited_rows, read_delimited_rows_at_lines
from crossdock.reading.formats.delimited_layout import DelimitedFormat, Trailer
from crossdock.reading.formats.polars_delimited_parser import PolarsDelimitedParser
from crossdock.reading.formats.strict_delimited_parser import MAX_COLUMNS, StrictDelimitedParser
from crossdock.values.schema_descriptions_from_docstrings import SchemaGeneratorWithDescriptions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spooled"


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        pytest.param({"delimiter": ""}, "1 to 8 characters", id="no delimiter"),
        pytest.param({"delimiter": "123456789"}, "1 to 8 characters", id="long delimiter"),
        pytest.param({"delimiter": "a\n"}, "without line breaks", id="line end in delimiter"),
        pytest.param({"delimiter": "\x00"}, "control character", id="NUL delimiter"),
        pytest.param({"delimiter": "\x01|"}, "control character", id="control character not alone"),
        pytest.param({"delimiter": '"'}, "may contain the quote", id="quote as delimiter"),
        pytest.param({"quote": "#"}, "quote", id="strange quote"),
        pytest.param({"encoding": "rot13"}, "not a character encoding", id="no text codec"),
        pytest.param({"encoding": "cp1522"}, "did you mean 'cp1252'", id="unknown encoding"),
        pytest.param({"header": False}, "needs names", id="neither header nor names"),
        pytest.param({"names": ()}, "names", id="no columns"),
        pytest.param({"names": ("A", "A")}, "columns 1 and 2 have the same name", id="name twice"),
        pytest.param({"names": ("_json",)}, "is reserved", id="name of ours"),
        pytest.param({"trailer": {"prefix": "", "count": 1}}, "prefix", id="empty prefix"),
        pytest.param({"trailer": {"prefix": "T\n", "count": 1}}, "prefix", id="line end in prefix"),
        pytest.param({"trailer": {"prefix": '"T', "count": 1}}, "may contain the quote", id="quote in prefix"),
        pytest.param({"trailer": {"prefix": "T", "count": -1}}, "count", id="negative field"),
        pytest.param({"delimeter": ","}, "did you mean 'delimiter'", id="unknown key"),
        pytest.param({"trailer": {"prefix": "T", "counts": 1}}, "did you mean 'count'", id="unknown key of a trailer"),
        pytest.param({"skip_lines": 0}, "skip_lines", id="no line to skip"),
        pytest.param({"comment": ""}, "comment", id="empty comment"),
        pytest.param({"comment": '"#'}, "must not begin with it", id="comment in quotes"),
        pytest.param({"row_end": ""}, "1 to 8 characters", id="empty row end"),
        pytest.param({"row_end": "\n"}, "need no row_end", id="usual row end"),
        pytest.param({"row_end": "&|\\n"}, "in double quotes", id="row end with a backslash"),
        pytest.param({"row_end": "|", "delimiter": "+|"}, "part of the delimiter", id="row end in the delimiter"),
        pytest.param({"row_end": '"\n'}, "must not contain the quote", id="quote in the row end"),
    ],
)
def test_impossible_layouts_are_refused(layout: dict[str, Any], says: str) -> None:
    """A layout that cannot be meant is refused where it is declared."""
    with pytest.raises(ValidationError, match=says):
        DelimitedFormat(**layout)


@pytest.mark.parametrize("delimiter", ["\t", "tab", r"\t"])
def test_tab_can_be_written_in_three_ways(delimiter: str, path: Path) -> None:
    """The word, the character and its escape, which YAML leaves alone without quotes, mean the same layout."""
    layout = DelimitedFormat(delimiter=delimiter)
    path.write_text("A\tB\n1\t2\n")
    (frame,) = read_delimited_rows(path, layout, name="f")
    assert frame.rows() == [("1", "2", 2)]
    assert layout == DelimitedFormat(delimiter="\t")


@pytest.mark.parametrize("encoding", ["UTF8", "windows-1252", "ISO-8859-1", "utf-8"])
def test_encodings_have_many_names(encoding: str, path: Path) -> None:
    """Each usual name of an encoding will do."""
    path.write_text("A,B\nü,2\n", encoding=encoding)
    (frame,) = read_delimited_rows(path, DelimitedFormat(encoding=encoding), name="f")
    assert frame.rows() == [("ü", "2", 2)]


def test_options_tell_what_they_mean() -> None:
    """The schema of the layout describes every option."""
    schema = DelimitedFormat.model_json_schema(schema_generator=SchemaGeneratorWithDescriptions)
    options = {**schema["properties"], **schema["$defs"]["Trailer"]["properties"]}
    assert [name for name, option in options.items() if name != "kind" and not option.get("description")] == []


def test_file_without_rows_gives_its_columns(path: Path) -> None:
    """A header alone gives one empty frame, so that the columns can be checked all the same."""
    path.write_bytes(b"A,B\n")
    (frame,) = read_delimited_rows(path, DelimitedFormat(), name="f")
    assert frame.schema == {"A": pl.String(), "B": pl.String(), "_line": pl.UInt64()}
    assert frame.is_empty()


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252", "utf-8"])
@pytest.mark.parametrize("packed", [False, True])
def test_some_rows_are_read_again(path: Path, encoding: str, packed: bool) -> None:
    """Whatever the encoding, packed or not, with a trailer or a last line that has no end."""
    rows = [(f"k{number}", "ä\r\nb" if number % 3 else "") for number in range(500)]
    text = "K;V\r\n" + "".join(f'{key};"{value}"\r\n' for key, value in rows) + "TRL;500"
    path.write_bytes(gzip.compress(text.encode(encoding)) if packed else text.encode(encoding))
    layout = DelimitedFormat(delimiter=";", encoding=encoding, trailer=Trailer(prefix="TRL;", count=1))
    whole = pl.concat(read_delimited_rows(path, layout, name="f", _chunk=100))
    assert whole.height == 500
    wanted = whole[::7]
    again = read_delimited_rows_at_lines(path, layout, wanted["_line"].to_list(), name="f", _chunk=100)
    assert pl.concat(again).equals(wanted)
    assert list(read_delimited_rows_at_lines(path, layout, [], name="f")) == []


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_usual_writers_are_proved_by_writing_again(
    path: Path, quoting: Literal[0, 1, 2], end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slower proof is not needed for what a common library writes, whichever cells it quotes."""
    monkeypatch.delattr(PolarsDelimitedParser, "_parse_after_rewriting")
    rows = [(f"K{n}", n, "" if n % 3 else "y", f"line\n{n}" if n % 7 == 0 else 'a "b", c') for n in range(500)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=quoting, lineterminator=end)
        writer.writerows([("A", "B", "C", "D"), *rows])
    frames = list(read_delimited_rows(path, DelimitedFormat(), name="f", _chunk=2_000))
    assert len(frames) > 5
    assert [row[:4] for frame in frames for row in frame.rows()] == [(a, str(b), c, d) for a, b, c, d in rows]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_few_quotes_are_looked_at(path: Path, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other proof is needed where they are few, whatever they enclose."""
    for other in ("_parse_if_round_trip_agrees", "_parse_after_rewriting"):
        monkeypatch.delattr(PolarsDelimitedParser, other)
    cells = [f"two{end}lines", "a,b", '"', '""', "", "plain"]
    rows = [(f"K{n}", cells[n // 50 % 6] if n % 50 == 0 else "x" * 20, "y" * 20) for n in range(3000)]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator=end).writerows([("A", "B", "C"), *rows])
    frames = list(read_delimited_rows(path, DelimitedFormat(), name="f", _chunk=20_000))
    assert len(frames) > 5
    assert [row[:3] for frame in frames for row in frame.rows()] == rows


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_many_quotes_are_looked_at_a_part_at_a_time(path: Path, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and their lines are the same, wherever cells have line ends and quotes."""
    cells = [f'"two{end}lines"', '"a,b"', '""""', '"a ""b"""', '""', "plain"]
    lines = ["A,B", *(f"K{n},{cells[n % 6]}" for n in range(600))]
    path.write_text(end.join(lines) + end, encoding="utf-8", newline="")
    whole = pl.concat(read_delimited_rows(path, DelimitedFormat(), name="f"))
    assert [row[:2] for row in whole.rows()] == [
        tuple(row) for row in csv.reader(StringIO(end.join(lines[1:]), newline=""))
    ]
    monkeypatch.setattr(polars_delimited_parser, "_QUOTES_AT_ONCE", 50)
    monkeypatch.delattr(StrictDelimitedParser, "_parse_quoted_cell")  # which would read them as well
    assert pl.concat(read_delimited_rows(path, DelimitedFormat(), name="f")).equals(whole)


@pytest.mark.parametrize("cell", ["x", "x^", "x\u0680", "x\u0700", "x\u0680A", "BZh91AY&SY"])
@pytest.mark.parametrize("delimiter", [",", "||", "\x01", "\x02"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_text_that_looks_packed_is_text(path: Path, cell: str, delimiter: str, quote: str) -> None:
    """What begins as zlib's data do is not unpacked, which polars would do unasked."""
    rows = [(cell, "a"), ("b", f"{quote}c{delimiter if quote else ''}{quote}")]
    path.write_text("".join(f"{one}{delimiter}{other}\n" for one, other in [("A", "B"), *rows]))
    (frame,) = read_delimited_rows(path, DelimitedFormat(delimiter=delimiter), name="f")
    assert frame.rows() == [(one, other.replace('"', ""), line) for line, (one, other) in enumerate(rows, 2)]


def test_batches_are_no_larger_than_asked(path: Path) -> None:
    """Frames hold at most the asked number of rows, in file order."""
    path.write_bytes(b"A\n" + b"".join(b"%d\n" % n for n in range(1000)))
    frames = list(read_delimited_rows(path, DelimitedFormat(), name="f", batch_rows=64, _chunk=500))
    assert max(frame.height for frame in frames) == 64
    assert pl.concat(frames)["A"].to_list() == [str(n) for n in range(1000)]
    assert pl.concat(frames)["_line"].to_list() == list(range(2, 1002))


@pytest.mark.parametrize("quote", ['"', "'"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("every", [1, 2, 30])
def test_long_files_keep_their_lines(path: Path, quote: str, end: str, every: int) -> None:
    """Thousands of rows with line ends, delimiters and quotes in all cells or some keep cells and line numbers."""
    choose = random.Random(every)
    cells = ["plain", "two\nlines", "a;b", f"{quote}", "", "\n\n;", "ü€🚚"]
    rows = [[choose.choice(cells) if n % every == 0 else "x" for _ in range(3)] for n in range(5000)]
    written, line, expected = [f"A;B;C{end}"], 2, []
    for row in rows:
        quoted = [
            f"{quote}{cell.replace(quote, quote * 2)}{quote}" if every == 1 or cell != "x" else cell for cell in row
        ]
        written.append(";".join(quoted) + end)
        expected.append((*row, line))
        line += written[-1].count("\n")
    path.write_text("".join(written), encoding="utf-8", newline="")
    frames = read_delimited_rows(path, DelimitedFormat(delimiter=";", quote=quote), name="f", _chunk=50_000)
    assert pl.concat(frames).rows() == expected


@pytest.mark.parametrize("row", [b"1,2,3\n", b'"1","2","3"\n', b'"1",2,3\n'])
def test_one_fault_in_many_rows_is_found(path: Path, row: bytes) -> None:
    """Deep in a large file the fault is still named by its line."""
    path.write_bytes(b"A,B,C\n" + row * 30_000 + b'1,"2\n' + row * 30_000)
    with pytest.raises(RefusedError) as refusal:
        list(read_delimited_rows(path, DelimitedFormat(), name="f"))
    assert str(refusal.value).startswith("f:3000")


@pytest.mark.parametrize(
    "data", [pytest.param(b'A,B\n1,"', id="open quote"), pytest.param(b"A,B\n1,", id="no line end")]
)
def test_endless_records_are_refused(path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that does not end is refused before it fills the memory."""
    monkeypatch.setattr(text_decoding, "MAX_RECORD_BYTES", 2000)
    path.write_bytes(data + b"x" * 100_000)
    with pytest.raises(RefusedError) as refusal:
        list(read_delimited_rows(path, DelimitedFormat(), name="f", _chunk=500))
    assert str(refusal.value).startswith("f:2")


def test_columns_are_limited(path: Path) -> None:
    """A header of more columns than any export has is refused, not turned into a frame."""
    path.write_bytes(",".join(f"C{n}" for n in range(10_001)).encode())
    with pytest.raises(RefusedError, match="10001 columns"):
        list(read_delimited_rows(path, DelimitedFormat(), name="f"))


@pytest.mark.parametrize("cell", [b"", b"ab", b'"ab"', b'","'])
@pytest.mark.parametrize("data", [b"%b\n1,2\n", b"A,B\n1,2\n%b\n", b"A,B\n1,2\n%b"])
def test_columns_of_any_record_are_limited(path: Path, data: bytes, cell: bytes) -> None:
    """No header and no row is taken apart into any number of cells, quoted or not."""
    path.write_bytes(data % b",".join([cell] * (MAX_COLUMNS + 1)))
    line = data.count(b"\n", 0, data.index(b"%")) + 1
    with pytest.raises(RefusedError, match=f"f:{line}: {MAX_COLUMNS + 1} columns or more"):
        list(read_delimited_rows(path, DelimitedFormat(), name="f"))


def test_many_delimiters_in_a_cell_are_no_columns(path: Path) -> None:
    """What is in quotes is text, however many delimiters it holds."""
    text = "," * (3 * MAX_COLUMNS)
    path.write_text(f'A,B\n1,"{text}"\n2,x\n')
    assert pl.concat(read_delimited_rows(path, DelimitedFormat(), name="f")).rows() == [("1", text, 2), ("2", "x", 3)]


@pytest.mark.parametrize(("limited", "limit"), [("_LARGE", 1000), ("MAX_FRAME_CELLS", 100)])
def test_a_record_that_is_large_or_of_many_lines_is_not_for_polars(
    path: Path, limited: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that cannot be cut is read cell by cell: polars might take each of its lines for a row."""
    text = "\n".join(["some text"] * 200)
    path.write_text(f'A,B\n1,"{text}"\n')

    def never(*_: object, **__: object) -> None:
        pytest.fail("polars was asked")

    monkeypatch.setattr(polars_delimited_parser, limited, limit)
    monkeypatch.setattr(PolarsDelimitedParser, "_read_csv", never)
    (frame,) = read_delimited_rows(path, DelimitedFormat(), name="f")
    assert frame.rows() == [("1", text, 2)]


@pytest.mark.parametrize("quote", ["", '"'])
def test_frames_hold_few_cells(path: Path, quote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short rows come in more frames, since a cell takes its room however short it is; nothing else changes."""
    rows = [(f"{number}", f"{quote}{',' if quote else ''}{quote}") for number in range(20_000)]
    path.write_text("A,B\n" + "".join(f"{one},{other}\n" for one, other in rows))
    whole = pl.concat(read_delimited_rows(path, DelimitedFormat(), name="f"))
    for module in (polars_delimited_parser, delimited_files):
        monkeypatch.setattr(module, "MAX_FRAME_CELLS", 20_000)
    monkeypatch.setattr(delimited_files, "_SMALLEST_PART_BYTES", 1000)
    frames = list(read_delimited_rows(path, DelimitedFormat(), name="f"))
    assert max(frame.height * 2 for frame in frames) <= 20_000
    assert pl.concat(frames).equals(whole)
    monkeypatch.setattr(delimited_files, "_PICKED_CELLS", 500)
    picked = list(read_delimited_rows_at_lines(path, DelimitedFormat(), whole["_line"].to_list(), name="f"))
    assert max(frame.height * 2 for frame in picked) <= 500
    assert pl.concat(picked).equals(whole)


@pytest.mark.parametrize(
    "line",
    [
        b'1,"canary"canary\n',
        b'1,can"ary\n',
        b"canary,canary,canary\n",
        b"canary\n",
        b"canary,\x00\n",
        b"canary,\xff\n",
        b'canary,"canary\n',
        b"TRL,canary\n",
    ],
)
def test_refusals_tell_no_contents(path: Path, line: bytes) -> None:
    """What stands in cells may be personal, and is never repeated."""
    path.write_bytes(b"A,B\ncanary,canary\n" + line)
    layout = DelimitedFormat(trailer={"prefix": "TRL", "count": 1})
    with pytest.raises(RefusedError) as refusal:
        list(read_delimited_rows(path, layout, name="f"))
    assert "canary" not in str(refusal.value)


def test_memory_does_not_grow_with_the_file(path: Path) -> None:
    """Four times the rows take no more memory of ours."""
    peaks = []
    for times in (1, 4):
        path.write_bytes(b"A,B\n" + b'1,"a,b"\n2,xxxxxxxxxxxxx\n' * (10_000 * times))
        tracemalloc.start()
        for _ in read_delimited_rows(path, DelimitedFormat(), name="f", _chunk=20_000):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_short_lines_are_not_all_objects_at_once(path: Path) -> None:
    """Comments are looked for, and some rows are read again, in a part of a block at a time."""
    path.write_bytes(b"A,B\n" + b"1,2\n" * 800_000 + b"# end\n3,4\n")
    all_rows = partial(read_delimited_rows, path, DelimitedFormat(comment="#"))
    some = partial(read_delimited_rows_at_lines, path, DelimitedFormat(), [2, 800_003])
    for read, times in ((all_rows, 15), (some, 8)):
        tracemalloc.start()
        *_, last = read(name="f")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert last.rows()[-1] == ("3", "4", 800_003)
        assert peak < times * path.stat().st_size


def test_quotes_behind_a_plain_beginning_take_little_memory(path: Path) -> None:
    """They are counted before the cells in them are held one by one, each of which takes many times its length."""
    path.write_bytes(b"A,B\n" + b"abcdefghijklmnopq,cd\n" * 6300 + b'"a","b"\n' * 100_000)
    tracemalloc.start()
    assert sum(frame.height for frame in read_delimited_rows(path, DelimitedFormat(), name="f")) == 106_300
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * path.stat().st_size


@pytest.mark.parametrize(
    ("data", "advised"),
    [
        (b"SKU;NAME\n0017;M\xfcller\n", "declare it, such as cp1252"),
        (b"SKU;NAME\n0016;M\xc3\xbcller\n0017;M\xfcller\n", "joins texts in two encodings"),
    ],
)
def test_another_encoding_is_not_advised_for_a_damaged_file(data: bytes, advised: str) -> None:
    """Followed, all of its letters with accents would be others."""
    with pytest.raises(RefusedError, match="byte 0xFC is not UTF-8") as refused:
        list(read_delimited_rows(Content(data), DelimitedFormat(delimiter=";"), name="f"))
    assert (refused.value.code, advised in str(refused.value.hint)) == ("encoding_wrong", True)


@pytest.mark.parametrize(("stated", "advised"), [(1, False), (3, True), (4, True), (5, False)])
def test_a_count_that_may_include_other_lines_is_not_called_right(stated: int, advised: bool) -> None:
    """A file that lacks a row looks the same: the hint asks for what the sender says."""
    layout = DelimitedFormat.model_validate({"delimiter": ";", "trailer": {"prefix": "TRL;", "count": 1}})
    with pytest.raises(RefusedError, match=f"the trailer counts {stated}, the file has 2") as refused:
        list(read_delimited_rows(Content(f"A;B\n1;2\n3;4\nTRL;{stated}\n".encode()), layout, name="f"))
    assert "The file is not whole: fetch it again." in str(refused.value.hint)
    assert ("count_includes" in str(refused.value.hint)) is advised


@pytest.mark.parametrize("rows", [1, 2_000])
@pytest.mark.parametrize("line", ["sku,name", "SKU,Name", '"S.K.U.", name '])
def test_a_header_that_a_sender_adds_is_no_row(line: str, rows: int) -> None:
    """In whatever notation it has the declared names, it would be a record with the key SKU."""
    content, names = Content(f"{line}\n".encode() + b"17,Bolt\n" * rows), ("sku", "name")
    with pytest.raises(RefusedError, match="^f:1: the first line is a header") as refused:
        list(read_delimited_rows(content, DelimitedFormat(header=False, names=names), name="f"))
    assert "declare header: true" in str(refused.value.hint)
    found = list(
        read_delimited_rows(Content(b"17,Bolt\nsku,Name\n"), DelimitedFormat(header=False, names=names), name="f")
    )
    assert pl.concat(found)["sku"].to_list() == ["17", "sku"]


def test_the_advice_for_a_wrong_header_makes_no_row_of_it() -> None:
    """Followed in part, without ``skip_lines``, the header is refused among the rows."""
    with pytest.raises(RefusedError, match="header: column 3 has no name") as refused:
        list(read_delimited_rows(Content(b"A;B;\n1;2;\n"), DelimitedFormat(delimiter=";"), name="f"))
    assert refused.value.hint == (
        "If a delimiter ends each line, declare long_lines: drop_empty. Ask the sender to correct the header. To give "
        "columns other names, declare skip_lines: 1, header: false and names; without skip_lines only if this line is "
        "a row."
    )
    content, names = b"A;B;\n1;2;\n", ("A", "B", "C")
    followed = DelimitedFormat(delimiter=";", skip_lines=1, header=False, names=names)
    assert pl.concat(read_delimited_rows(Content(content), followed, name="f"))["A"].to_list() == ["1"]
    with pytest.raises(RefusedError, match="a header line among the rows"):
        list(read_delimited_rows(Content(content), DelimitedFormat(delimiter=";", header=False, names=names), name="f"))
