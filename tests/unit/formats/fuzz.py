"""Files of every delimiter, quote, encoding and packing, damaged at random: read as the oracle reads them, or refused.

The short form is in `tests.unit.formats.test_fuzz`, the long one in `tests.long.test_files`.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.formats.oracle import OracleRefusalError, table
from tests.unit.formats.test_delimited_properties import CHUNKS, DELIMITERS, ENDS, QUOTED, TAILS, read, tables, write

from crossdock.errors import RefusedError
from crossdock.reading.formats.delimited_layout import DelimitedFormat

QUOTES = st.sampled_from(['"', "'", None])
ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "cp437", "latin-1"])
PACKED = st.sampled_from(["plain", "plain", "gzip", "members", "padded", "damaged"])
_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\x1f\x8b")
_ODD = ["\n", "\r", "\r\n", "\x00", "\x1a", "\ufeff", '"', "'", '""', "x", "\x85", "ü"]


@dataclass(frozen=True)
class Case:
    """A file, how it is declared, and the text in it.

    Attributes:
        text: Its bytes before it was packed.
        whole: Whether what is packed is as it was packed; if it is not, it may be refused for that.
    """

    data: bytes
    layout: DelimitedFormat
    text: bytes
    whole: bool


@st.composite
def cases(draw: st.DrawFn) -> Case:
    delimiter, quote = draw(DELIMITERS), draw(QUOTES)
    header, rows = draw(tables())
    tail, end = draw(TAILS), draw(ENDS)
    text = write([header, *rows], delimiter, quote or "\x00", end, draw(QUOTED)).decode()
    text = (text if quote else text.replace("\x00", "")).removesuffix(end if "cut" in tail else "")
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        put = draw(st.sampled_from([*_ODD, delimiter, delimiter * 3]) | st.text(max_size=2) | st.just(""))
        text = text[:at] + put + text[at + draw(st.integers(0, 3)) :]
    encoding = draw(ENCODINGS)
    data = (text + ("\x1a" if "DOS" in tail else "")).encode(encoding, errors="replace")
    if draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=2)) + data[at + draw(st.integers(0, 2)) :]
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    packed = draw(PACKED)
    layout = DelimitedFormat(delimiter=delimiter, quote=quote, encoding=encoding)
    return Case(draw(_packed(data, packed)), layout, data, whole=packed != "damaged")


@st.composite
def _packed(draw: st.DrawFn, data: bytes, how: str) -> bytes:
    if how == "plain":
        return data
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=4))) if how == "members" else []
    pieces = zip([0, *cuts], [*cuts, len(data)], strict=True)
    zeros = bytes(draw(st.integers(1, 2000))) if how == "padded" else b""
    whole = b"".join(gzip.compress(data[start:end], mtime=0) + zeros for start, end in pieces)
    if how != "damaged":
        return whole
    at = draw(st.integers(2, len(whole) - 1))
    return draw(
        st.sampled_from(
            [whole[:at], whole[:at] + whole[at + 1 :], whole[:at] + bytes([whole[at] ^ 0x11]) + whole[at + 1 :]]
        )
    )


def _expected(case: Case) -> list[tuple[object, ...]] | None:
    """The rows that the oracle sees; None where it refuses the file."""
    layout = case.layout
    text, declared = case.text, layout.encoding
    marks = {"utf-8": _MARKS[2], "utf-16-le": _MARKS[0], "utf-16-be": _MARKS[1]}
    if declared == "utf-16":
        if not text.startswith(_MARKS[:2]):
            return None
    elif text.startswith(_MARKS) and not text.startswith(marks.get(declared, b"\x00\x00\x00\x00")):
        return None  # the mark of another encoding, or gzip in what was taken for text
    try:
        return table(text, delimiter=layout.delimiter, quote=layout.quote, encoding=declared)[1]
    except OracleRefusalError:
        return None


def read_as_the_oracle_reads(examples: int) -> None:
    """Whatever is declared, and however it is damaged, a file gives the rows of the oracle or is refused."""

    @settings(deadline=None, max_examples=examples, suppress_health_check=[HealthCheck.too_slow])
    @given(case=cases(), chunk=CHUNKS, few=st.booleans())
    def check(case: Case, chunk: int, few: bool) -> None:
        expected = _expected(case)
        try:
            rows = [row for frame in read(case.data, case.layout, chunk, few=few) for row in frame.rows()]
        except RefusedError as refusal:
            if expected is not None and case.whole:
                raise AssertionError(f"{refusal} instead of {expected}") from refusal
        else:
            assert rows == expected

    check()
