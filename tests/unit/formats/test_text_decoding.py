"""Pieces of a stream: whole records, in order, with their lines, in UTF-8."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.errors import RefusedError
from crossdock.reading.formats.text_decoding import (
    DecodingError,
    Piece,
    count_byte,
    decode_into_record_pieces,
    decode_up_to_invalid_byte,
    read_decoded_records_at_lines,
    split_into_smaller_pieces,
    split_off_last_record,
)

TEXTS = st.text(st.sampled_from('ab,"\nü'), min_size=1)


@given(text=TEXTS, chunk=st.integers(1, 20), encoding=st.sampled_from(["utf-8", "cp1252", "utf-16-le"]))
def test_pieces_are_the_text_split_between_records(text: str, chunk: int, encoding: str) -> None:
    """Only at line ends outside of quotes; each piece knows its first line, and the last one that it is the last."""
    found = list(decode_into_record_pieces(io.BytesIO(text.encode(encoding)), encoding, '"', name="f", chunk=chunk))
    assert b"".join(piece.data for piece in found).decode() == text
    before = ""
    for piece in found:
        assert before.count('"') % 2 == 0
        assert piece.line == before.count("\n") + 1
        assert piece.ends == piece.data.count(b"\n")
        before += piece.data.decode()
    assert [piece.last for piece in found] == [False] * (len(found) - 1) + [True]


@given(text=TEXTS, size=st.integers(1, 9))
def test_a_piece_can_be_split_further(text: str, size: int) -> None:
    """Into parts of about a size, and into its last record and the rest; nothing is lost."""
    piece = Piece(5, text.encode(), text.count("\n"), last=True)
    assert b"".join(part.data for part in split_into_smaller_pieces(piece, '"', size)) == piece.data
    body, last = split_off_last_record(piece, '"')
    assert (body.data if body else b"") + last.data == piece.data
    assert last.line == 5 + (body.ends if body else 0)


@given(records=st.lists(st.sampled_from([b"a,b\n", b'"\n",c\n', b"\n", b'"\n\n"\n'])), chunk=st.integers(1, 9))
def test_records_are_found_at_their_lines(records: list[bytes], chunk: int) -> None:
    """Each second one is asked for, and is whole."""
    lines = [1 + sum(record.count(b"\n") for record in records[:number]) for number in range(len(records))]
    stream = io.BytesIO(b"".join(records))
    assert (
        list(read_decoded_records_at_lines(stream, "utf-8", '"', iter(lines[::2]), name="f", chunk=chunk))
        == records[::2]
    )


def test_text_ends_before_the_record_with_a_wrong_byte() -> None:
    """The byte and its place are given; the records before it are whole."""
    text, fault = decode_up_to_invalid_byte(Piece(3, b"a,b\nc,\xff\nd\n", 3), '"')
    assert text == "a,b\n"
    assert fault
    assert (fault.line, fault.column, fault.byte) == (4, 3, 0xFF)


@given(data=st.binary(max_size=300), times=st.integers(1, 600))
def test_bytes_are_counted(data: bytes, times: int) -> None:
    """However many there are."""
    assert count_byte(data * times, b"\n") == data.count(b"\n") * times


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        ("A,B\n".encode("utf-16-le"), "byte order mark is missing", "Declare encoding: utf-16-le"),
        (b"A,B\n1,2\n", "byte order mark is missing", "Ask the sender for the encoding"),
        ("A,B\n".encode("utf-16")[:-1], "the file ends in the middle of a character, at byte 8 ", "It is truncated"),
        (b"\xff\xfe\x00\xdc\x00\x00", "byte 2 of the file", "Ask the sender for the encoding"),
    ],
)
def test_what_to_do_depends_on_the_bytes(content: bytes, message: str, hint: str) -> None:
    """Another encoding is not called UTF-16 without a mark, and a truncated file not one of another encoding."""
    with pytest.raises((RefusedError, DecodingError)) as refused:
        list(decode_into_record_pieces(io.BytesIO(content), "utf-16", '"', name="f", chunk=1 << 10))
    error = refused.value
    assert isinstance(error, RefusedError | DecodingError)
    assert message in str(error)
    assert error.hint
    assert error.hint.startswith(hint)
