"""The strict parser: RFC 4180 with any delimiter, and errors with line and column."""

from __future__ import annotations

import pytest

from crossdock.errors import RefusedError
from crossdock.reading.formats.strict_delimited_parser import StrictDelimitedParser


def test_records_come_with_the_lines_where_they_begin() -> None:
    """Line ends inside of quotes count; the last record may lack its line end."""
    records = StrictDelimitedParser("f", "||", '"').records('a||"b\n""c"""\nd||e', 7)
    assert list(records) == [(7, ["a", 'b\n"c"']), (9, ["d", "e"])]


def test_without_a_quote_quotes_are_ordinary_characters() -> None:
    """As the layout declares."""
    assert list(StrictDelimitedParser("f", ",", None).records('"a,b"\n', 1)) == [(1, ['"a', 'b"'])]


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ('a,b"c\n', "f:1:4", "field 2 contains a quote"),
        ('a,"b\n', "f:1:3", "never closed"),
        ('a,"b\nc"d\n', "f:2:3", "follows the closing quote of field 2, which was opened in line 1"),
        ("a,b\n\n", "f:2", "the line is blank"),
        ("a,b\r\n", "f:1", "ends with CRLF, the lines before it with LF"),
        ("a,b\rc\n", "f:1:4", "a CR without LF"),
        ("a,\x07\n", "f:1:3", "control character U+0007"),
        ("a,\ufeffb\n", "f:1:3", "a byte order mark inside the file"),
    ],
)
def test_a_deviation_is_refused_at_its_place(text: str, where: str, message: str) -> None:
    """The error has file, line, column and a hint."""
    with pytest.raises(RefusedError) as refused:
        list(StrictDelimitedParser("f", ",", '"').records(text, 1, crlf=False))
    assert refused.value.where == where
    assert message in refused.value.message
    assert refused.value.hint


def test_advice_to_read_quotes_as_text_is_given_only_where_no_field_is_quoted() -> None:
    """Followed elsewhere, the quotes around other cells would become a part of them, and of keys."""
    for text, advised in (('0017;5" bolt\n', True), ('"0016";Nut\n0017;5" bolt\n', False)):
        with pytest.raises(RefusedError) as refused:
            list(StrictDelimitedParser("f", ";", '"').records(text, 1))
        assert ("quote: null" in str(refused.value.hint)) is advised


@pytest.mark.parametrize("filling", ["\0" * 5, "\x1a\x1a", "\x1a\0\0"])
def test_a_file_that_is_filled_up_is_told_so(filling: str) -> None:
    """Such characters at the end say nothing of the encoding, as they do elsewhere."""
    for text, advice in ((f"a,b\n{filling}", "fetch it again"), (f"a,b\n{filling}c,d\n", "in the declared encoding")):
        with pytest.raises(RefusedError) as refused:
            list(StrictDelimitedParser("f", ",", '"').records(text, 1))
        assert refused.value.where == "f:2:1"
        assert advice in str(refused.value.hint)
        assert "cp1252" not in str(refused.value.hint)
