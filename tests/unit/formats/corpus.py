"""Nasty delimited files: what each holds, how it is declared, and what must come of it."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from typing import Any

Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class Nasty:
    """One file and its expected result: rows with lines, or place after the name and part of the message."""

    id: str
    data: bytes
    expected: Rows | tuple[str, str]
    layout: dict[str, Any] = field(default_factory=dict)


TRAILER = {"trailer": {"prefix": "TRL", "count": 1}, "delimiter": "|"}
_WIDE = ",".join(f"C{n}" for n in range(2000))
_PACKED = gzip.compress(b"A,B\n" + b"".join(b"%d,x\n" % n for n in range(60)), mtime=0)

CORPUS = [
    # taken
    Nasty("plain", b"A,B\n0017,1.0\n", [("0017", "1.0", 2)]),
    Nasty("no-last-line-end", b"A,B\n1,2\n3,4", [("1", "2", 2), ("3", "4", 3)]),
    Nasty("crlf", b"A,B\r\n1,2\r\n", [("1", "2", 2)]),
    Nasty("crlf-no-last-line-end", b"A,B\r\n1,2\r\n3,", [("1", "2", 2), ("3", "", 3)]),
    Nasty("empty-cells", b"A,B,C\n,,\n,x,\n", [("", "", "", 2), ("", "x", "", 3)]),
    Nasty("null-word", b"A,B\nNULL,NA\nnan,null\n", [("NULL", "NA", 2), ("nan", "null", 3)]),
    Nasty("blanks-kept", b"A,B\n 1 , 2\n", [(" 1 ", " 2", 2)]),
    Nasty("quoted-delimiter", b'A,B\n"1,5",2\n', [("1,5", "2", 2)]),
    Nasty("quoted-quote", b'A,B\n"5"" bolt",""""\n', [('5" bolt', '"', 2)]),
    Nasty("quoted-empty", b'A,B\n"",""\n', [("", "", 2)]),
    Nasty("embedded-lf", b'A,B\n"x\ny",1\n"\n\n",2\n3,4\n', [("x\ny", "1", 2), ("\n\n", "2", 4), ("3", "4", 7)]),
    Nasty("embedded-crlf", b'A,B\r\n"x\r\ny",1\r\n3,4\r\n', [("x\r\ny", "1", 2), ("3", "4", 4)]),
    Nasty("embedded-lf-in-crlf-file", b'A,B\r\n"x\ny",1\r\n3,4\r\n', [("x\ny", "1", 2), ("3", "4", 4)]),
    Nasty("quoted-header", b'"A,1","B\nx"\n1,2\n', [("1", "2", 3)]),
    Nasty("everything-quoted", b'"A","B"\n"1","2"\n"3","4"', [("1", "2", 2), ("3", "4", 3)]),
    Nasty("one-column", b'A\n1\n""\n2\n', [("1", 2), ("", 3), ("2", 4)]),
    Nasty("header-only", b"A,B\n", []),
    Nasty("header-only-no-line-end", b"A,B", []),
    Nasty("utf8-mark", b"\xef\xbb\xbfA,B\n1,2\n", [("1", "2", 2)]),
    Nasty("utf8-mark-before-quote", b'\xef\xbb\xbf"A","B"\n1,2\n', [("1", "2", 2)]),
    Nasty("beyond-the-basic-plane", "A,B\nå∫🚚,\u2028\n".encode(), [("å∫🚚", "\u2028", 2)]),
    Nasty("ctrl-z", b"A,B\n1,2\n\x1a", [("1", "2", 2)]),
    Nasty("ctrl-z-after-text", b"A,B\n1,2\x1a", [("1", "2", 2)]),
    Nasty("cp1252", b"A,B\nM\xfcller,\x80\n", [("Müller", "€", 2)], {"encoding": "cp1252"}),
    Nasty("cp850", b"A,B\nM\x81ller,1\n", [("Müller", "1", 2)], {"encoding": "cp850"}),
    Nasty("utf-16", 'A,B\n"ü\n",2\n'.encode("utf-16"), [("ü\n", "2", 2)], {"encoding": "utf-16"}),
    Nasty("utf-16-le-with-mark", "\ufeffA,B\n1,🚚\n".encode("utf-16-le"), [("1", "🚚", 2)], {"encoding": "utf-16-le"}),
    Nasty(
        "two-character-delimiter", b'A+|B\n1,+|"2+|3"\n+||\n', [("1,", "2+|3", 2), ("", "|", 3)], {"delimiter": "+|"}
    ),
    Nasty("overlapping-delimiter", b"A||B\n1|||2\n", [("1", "|2", 2)], {"delimiter": "||"}),
    Nasty("unit-separator", b'A\x1fB\n1\x1f"2\x1f"\n', [("1", "2\x1f", 2)], {"delimiter": "\x1f"}),
    Nasty("delimiter-not-ascii", "A¦B\n1¦2\n".encode(), [("1", "2", 2)], {"delimiter": "¦"}),
    Nasty("tab", b"A\tB\n\t1,2\n", [("", "1,2", 2)], {"delimiter": "\t"}),
    Nasty("no-quotes", b'A,B\n5" bolt,"x\n', [('5" bolt', '"x', 2)], {"quote": None}),
    Nasty("single-quotes", b"A,B\n'it''s',\"\n", [("it's", '"', 2)], {"quote": "'"}),
    Nasty("no-header", b"1,2\n3,4\n", [("1", "2", 1), ("3", "4", 2)], {"header": False, "names": ("A", "B")}),
    Nasty("declared-header", b"A,B\n3,4\n", [("3", "4", 2)], {"names": ("A", "B")}),
    Nasty("trailer", b"A|B\n1|2\nTRL|1\n", [("1", "2", 2)], TRAILER),
    Nasty("trailer-unterminated", b"A|B\n1|2\nTRL|0001", [("1", "2", 2)], TRAILER),
    Nasty("trailer-quoted", b'A|B\n"1\n2"|2\n"TRL"|"1"|"x\ny"\n', [("1\n2", "2", 2)], TRAILER),
    Nasty("trailer-no-rows", b"A|B\nTRL|0|\n", [], TRAILER),
    Nasty(
        "trailer-counts-all-lines",
        b"A|B\n1|2\nTRL|3\n",
        [("1", "2", 2)],
        {"delimiter": "|", "trailer": {"prefix": "TRL|", "count": 1, "count_includes": 2}},
    ),
    Nasty(
        "trailer-like-row",
        b'A|B\nTRLX|1\n"TRL|"|2\nTRL|2\n',
        [("TRLX", "1", 2), ("TRL|", "2", 3)],
        {"delimiter": "|", "trailer": {"prefix": "TRL|", "count": 1}},
    ),
    Nasty(
        "trailer-only-no-header",
        b"TRL|0",
        [],
        {"delimiter": "|", "header": False, "names": ("A", "B"), "trailer": {"prefix": "TRL", "count": 1}},
    ),
    Nasty("gzip", _PACKED, [(str(n), "x", n + 2) for n in range(60)]),
    Nasty(
        "very-many-columns", f"{_WIDE}\n{_WIDE.replace('C', 'x')}\n".encode(), [(*(f"x{n}" for n in range(2000)), 2)]
    ),
    # refused
    Nasty("empty", b"", ("", "empty")),
    Nasty("only-a-mark", b"\xef\xbb\xbf", ("", "empty")),
    Nasty("short-row", b"A,B,C\n1,2,3\n1,2\n1,2,3\n", (":3", "2 fields instead of 3")),
    Nasty("long-row", b"A,B\n1,2\n1,2,3\n", (":3", "3 fields instead of 2")),
    Nasty("short-row-balances-long-row", b"A,B,C\n1,2\n1,2,3,4\n", (":2", "2 fields instead of 3")),
    Nasty("trailing-delimiter", b"A,B\n1,2,\n", (":2", "3 fields instead of 2")),
    Nasty("trailing-delimiter-in-header", b"A,B,\n1,2,\n", (":1", "column 3 has no name")),
    Nasty("cut-last-line", b"A,B,C\n1,2,3\n1,2", (":3", "2 fields")),
    Nasty("undeclared-trailer", b"A,B,C\n1,2,3\nTRL,1\n", (":3", "2 fields")),
    Nasty("blank-first-line", b"\nA,B\n1,2\n", (":1", "blank")),
    Nasty("blank-line", b"A,B\n1,2\n\n3,4\n", (":3", "blank")),
    Nasty("blank-second-line", b"A,B\n\n3,4\n", (":2", "blank")),
    Nasty("blank-line-after-embedded-line-end", b'A,B\n"x\ny",2\n\n3,4\n', (":4", "blank")),
    Nasty("blank-last-line", b"A,B\n1,2\n\n", (":3", "blank")),
    Nasty("blank-line-one-column", b"A\n1\n\n2\n", (":3", "blank")),
    Nasty("blank-line-crlf", b"A,B\r\n1,2\r\n\r\n", (":3", "blank")),
    Nasty("quote-in-unquoted-cell", b'A,B\n1,5" bolt\n', (":2:4", "field 2 contains a quote")),
    Nasty("blank-before-quote", b'A,B\n1, "x"\n', (":2:4", "field 2 contains a quote")),
    Nasty("two-lone-quotes", b'A,B\n1,5" bolt\n2,6" bolt\n', (":2:4", "field 2 contains a quote")),
    Nasty(
        "quote-after-overlapping-delimiter",
        b'A||B\n"1"|||"2"\n',
        (":2:7", "field 2 contains a quote"),
        {"delimiter": "||"},
    ),
    Nasty("text-after-quote", b'A,B\n"1"x,2\n', (":2:4", "follows the closing quote of field 1")),
    Nasty("text-after-quote-lines-later", b'A,B\n1,"2\n3,4\n5,"6"\n', (":4:4", "opened in line 2")),
    Nasty("never-closed", b'A,B\n1,2\n3,"4\n5,6\n', (":3:3", "never closed")),
    Nasty("never-closed-header", b'A,"B\n1,2\n', (":1:3", "never closed")),
    Nasty("backslash-is-no-escape", b'A,B\n"x\\"y",1\n', (":2:5", "follows the closing quote")),
    Nasty("nul", b"A,B\n1,2\n3,\x00\n", (":3:3", "U+0000")),
    Nasty("escape-in-quotes", b'A,B\n1,"\n\x1b[0m"\n', (":3:1", "U+001B")),
    Nasty("ctrl-z-inside", b"A,B\n1,2\n\x1a\n", (":3:1", "U+001A")),
    Nasty("cp1252-as-latin-1", b"A,B\n1,\x80\n", (":2:3", "U+0080"), {"encoding": "latin-1"}),
    Nasty("cp1252-as-utf-8", b"A,B\n1,2\n3,M\xfcller\n", (":3:4", "byte 0xFC is not UTF-8")),
    Nasty("cut-character", b"A,B\n1,\xe2\x82", (":2:3", "byte 0xE2 ")),
    Nasty("cut-character-after-mark", b"\xef\xbb\xbfA,B\n1,\xe2\x82", (":2:3", "byte 0xE2 ")),
    Nasty("hole-in-cp1252", b"A,B\n1,\x81\n", (":2", "byte 6 "), {"encoding": "cp1252"}),
    Nasty("character-in-two-cells", b"A,B\n1,2\n\xc3,\xa4\n", (":3:1", "byte 0xC3 ")),
    Nasty("character-in-two-records", b"A,B\n1,\xc3\n\xa4,2\n", (":2:3", "byte 0xC3 ")),
    Nasty("surrogate-in-quotes", b'A,B\n1,"\xed\xa0\x80"\n', (":2:4", "byte 0xED ")),
    Nasty("overlong-delimiter", b'A,B\n"1",\xc0\xac\n', (":2:5", "byte 0xC0 ")),
    Nasty("bad-bytes-behind-an-inner-end", b'A,B\n1,"\n\xfc"\n', (":3:1", "byte 0xFC ")),
    Nasty("fault-before-bad-bytes", b"A,B\n1\n1,2\n3,\xff\n", (":2", "1 field instead of 2")),
    Nasty("utf-16-as-utf-8", "A,B\n1,2\n".encode("utf-16"), (":1", "byte order mark of utf-16")),
    Nasty("utf-8-mark-as-cp1252", b"\xef\xbb\xbfA,B\n1,2\n", (":1", "byte order mark"), {"encoding": "cp1252"}),
    Nasty(
        "utf-16-without-mark",
        "A,B\n".encode("utf-16-le"),
        (":1", "utf-16 byte order mark is missing"),
        {"encoding": "utf-16"},
    ),
    Nasty("odd-utf-16", "A,B\n1,2\n".encode("utf-16")[:-1], (":2", "at byte 16 "), {"encoding": "utf-16"}),
    Nasty("mark-inside", "A,B\n1,2\n\ufeffA,B\n".encode(), (":3:1", "byte order mark")),
    Nasty("two-marks", "\ufeff\ufeffA,B\n1,2\n".encode(), (":1:1", "byte order mark")),
    Nasty("lf-among-crlf", b"A,B\r\n1,2\r\n3,4\n5,6\r\n", (":3", "ends with LF, the lines before it with CRLF")),
    Nasty("crlf-among-lf", b'A,B\n"1\n",2\r\n3,4\n', (":3", "ends with CRLF, the lines before it with LF")),
    Nasty("lone-cr", b"A,B\n1,2\r3,4\n", (":2:4", "CR without LF")),
    Nasty("mac-line-ends", b"A,B\r1,2\r3,4\r", (":1:4", "CR without LF")),
    Nasty("lone-cr-in-quotes", b'A,B\n1,"2\r3"\n', (":2:5", "CR without LF")),
    Nasty("lone-cr-and-lone-lf-in-quotes", b'A,B\r\n"1\r","2\n"\r\n', (":2:3", "CR without LF")),
    Nasty("lone-cr-among-crlf", b'A,B\r\n1,"2\r3"\r\n', (":2:5", "CR without LF")),
    Nasty("lone-cr-at-the-end", b"A,B\n1,2\r", (":2:4", "CR without LF")),
    Nasty("duplicate-name", b"A,B,A\n1,2,3\n", (":1", "columns 1 and 3 have the same name")),
    Nasty("empty-name", b"A, ,C\n1,2,3\n", (":1", "column 2 has no name")),
    Nasty("name-of-ours", b"A,_line\n1,2\n", (":1", "column 2 is reserved")),
    Nasty("not-the-declared-header", b"A,C\n3,4\n", (":1", "missing: B"), {"names": ("A", "B")}),
    Nasty("not-the-declared-order", b"B,A\n3,4\n", (":1", "missing: nothing"), {"names": ("A", "B")}),
    Nasty("header-again", b"A,B\n1,2\nA,B\n3,4\n", (":3", "header line among the rows")),
    Nasty("header-in-another-order", b"A,B,C\n1,2,3\nB,A,C\n4,5,6\n", (":3", "header line among the rows")),
    Nasty("header-again-quoted", b'"A\n1",B\n1,2\n"A\n1",B\n3,4\n', (":4", "header line among the rows")),
    Nasty("trailer-instead-of-header", b"TRL|0\n", (":1", "header is missing"), TRAILER),
    Nasty("no-trailer", b"A|B\n1|2\n", (":2", "not the trailer"), TRAILER),
    Nasty("no-trailer-no-rows", b"A|B\n", (":1", "not the trailer"), TRAILER),
    Nasty("cut-before-trailer", b"A|B\n1|2\n3", (":3", "not the trailer"), TRAILER),
    Nasty("fault-before-trailer", b"A|B\n1|2|3\nTRL|9\n", (":2", "3 fields"), TRAILER),
    Nasty("trailer-counts-more", b"A|B\n1|2\nTRL|2\n", (":3", "counts 2, the file has 1"), TRAILER),
    Nasty("trailer-counts-less", b"A|B\n1|2\n3|4\nTRL|1\n", (":4", "counts 1, the file has 2"), TRAILER),
    Nasty("trailer-twice", b"A|B\n1|2\nTRL|1\nTRL|1\n", (":3", "a trailer that is not the last line"), TRAILER),
    Nasty("rows-after-trailer", b"A|B\n1|2\nTRL|1\n3|4\n", (":3", "a trailer that is not the last line"), TRAILER),
    Nasty("blank-after-trailer", b"A|B\n1|2\nTRL|1\n\n", (":3", "a trailer that is not the last line"), TRAILER),
    Nasty("trailer-without-count", b"A|B\n1|2\nTRL\n", (":3", "field 1 of the trailer is not a count"), TRAILER),
    Nasty("trailer-with-words", b"A|B\n1|2\nTRL|one\n", (":3", "field 1 of the trailer is not a count"), TRAILER),
    Nasty("trailer-with-endless-count", b"A|B\n1|2\nTRL|" + b"1" * 5000, (":3", "is not a count"), TRAILER),
    Nasty("gzip-cut", _PACKED[:-12], ("", "ends before its end mark")),
    Nasty("gzip-only-magic", b"\x1f\x8b", ("", "ends before its end mark")),
    Nasty("gzip-then-garbage", _PACKED + b"A,B\n", ("", "corrupt")),
    Nasty("gzip-wrong-sum", _PACKED[:-8] + b"\0\0\0\0" + _PACKED[-4:], ("", "corrupt")),
]
