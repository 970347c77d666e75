"""Refuses files of another kind or encoding than the declared one. How a file begins shows what it is.

A file in UTF-8 for which another encoding is declared is often read without an error, as MÃ¼ller.
"""

from __future__ import annotations

import codecs
import re
from typing import Literal, NoReturn

import polars as pl
from msgspec import Struct

from crossdock.errors import RefusedError
from crossdock.reading.formats.suspicious_cells import WRONG_ENCODING_PATTERN

_ENOUGH = 3  # wrong texts: fewer may have been damaged before they came into a file of another encoding
DECLARE_UTF_8_HINT = "Declare encoding: utf-8, or ask the sender which one it is."


class MisdeclaredUtf8Search:
    """Looks at the bytes of a file and at what the declared *encoding* makes of them."""

    def __init__(self, encoding: str) -> None:
        is_other = not codecs.lookup(encoding).name.startswith("utf")
        self._decoder = codecs.getincrementaldecoder("utf-8")() if is_other else None
        self._wrong = 0

    def add(self, raw: bytes, text: str, *, final: bool) -> None:
        if self._decoder is None or (raw.isascii() and not self._decoder.getstate()[0]):
            return
        try:
            self._decoder.decode(raw, final)
        except UnicodeDecodeError:
            self._decoder = None
        else:
            odd = pl.Series([line for line in text.split("\n") if not line.isascii()], dtype=pl.String)
            self._wrong += int(odd.str.count_matches(WRONG_ENCODING_PATTERN).sum())

    @property
    def is_found(self) -> bool:
        """Whether all bytes were UTF-8, and the declared encoding makes wrong texts of them."""
        return self._decoder is not None and self._wrong >= _ENOUGH


HEAD = 1_024
_UNPACK = "Ask the sender for the file itself, or packed with gzip, bz2, xz, zstd or zip."
_WRAPPED = "Declare what the files are wrapped in, such as wrapped: [{}]."
_DECRYPT = "Declare wrapped: [{kind: pgp, decrypt: {key: file:PATH}, signed_by: [PATH]}]."
_TABLE = "Ask the sender for an export as a table."
_SHEET = "Declare format: {kind: sheet}, or ask for CSV."
_API = (
    "Declare format: {kind: json_lines} if each line is an object, and {kind: json} if the file is one document with"
    " a list; an API that answers with JSON is read by a connection of kind http_json."
)
_XML = "Declare format: {kind: xml}, with the paths of records and columns, or ask the sender for a table."
_MESSAGE = "Ask for a delimited or fixed-width export, or translate it before the sync."
_X12 = "Declare format: {kind: x12, layout: x12/945}, or another layout."
_EDIFACT = "Declare format: {kind: edifact, layout: edifact/DESADV}, or another layout."
_PAGE = "It may be the page of a login or of an error, or a report that was saved under another name: look at it."


class FoundFileKind(Struct, frozen=True):
    what: str
    hint: str


_BINARY: tuple[tuple[re.Pattern[bytes], FoundFileKind], ...] = tuple(
    (re.compile(pattern, re.DOTALL), FoundFileKind(what, hint))
    for pattern, what, hint in (
        (rb"PK\x03\x04.{26}(?:\[Content_Types\]|_rels/|xl/|docProps/)", "an Excel file (xlsx)", _SHEET),
        (rb"PK\x03\x04.{26}mimetypeapplication/vnd\.oasis", "an OpenDocument file", _SHEET),
        (rb"PK(?:\x03\x04|\x05\x06|\x07\x08)", "a zip archive", _WRAPPED.format("zip")),
        (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel file (xls), or another of Microsoft Office", _SHEET),
        (rb"%PDF-", "a PDF document", _TABLE),
        (rb"\x1f\x8b\x08", "gzip inside of gzip", _WRAPPED.format("gzip, gzip")),
        (rb"\x1f\x9d", "packed with compress (Z)", _UNPACK),
        (rb"BZh[1-9]1AY&SY", "packed with bzip2", _WRAPPED.format("bz2")),
        (rb"\xfd7zXZ\x00", "packed with xz", _WRAPPED.format("xz")),
        (rb"\x28\xb5\x2f\xfd", "packed with zstd", _WRAPPED.format("zstd")),
        (rb"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
        (rb"Rar!\x1a\x07", "a RAR archive", _UNPACK),
        (rb".{257}ustar", "a tar archive", _UNPACK),
        (rb"PAR1\x15", "a Parquet file", "Declare format: {kind: parquet}."),
        (rb"ARROW1\x00\x00", "an Arrow file", "Declare format: {kind: arrow}."),
        (rb"SQLite format 3\x00", "an SQLite database", _TABLE),
        (rb"\x89PNG\r\n|\xff\xd8\xff", "an image", _TABLE),
        (rb"(?:\x85[\x01-\x04].\x03|\x84.\x03|\xc1.{1,2}\x03|\x8c.\x04)[^\r\n]", "encrypted with PGP", _DECRYPT),
    )
)
_NO_COLUMNAR: tuple[tuple[re.Pattern[bytes], FoundFileKind], ...] = (
    (
        re.compile(rb"PARE"),
        FoundFileKind("an encrypted Parquet file", "Ask for one without encryption; SFTP encrypts."),
    ),
    (re.compile(rb"FEA1"), FoundFileKind("a Feather file of version 1", "Ask for version 2, or for Parquet.")),
    (re.compile(rb"\xff{4}"), FoundFileKind("a stream of Arrow", "Ask for the file format of Arrow, or for Parquet.")),
    (re.compile(rb"\x1f\x8b"), FoundFileKind("packed with gzip", "Ask for the file itself: its columns are packed.")),
)
_TEXT: tuple[tuple[re.Pattern[str], FoundFileKind], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), FoundFileKind(what, hint))
    for pattern, what, hint in (
        (r"-----BEGIN PGP (?:SIGNED )?MESSAGE", "a PGP message", _DECRYPT),
        (r"\s*(?:<!--.*?-->\s*)*(?:<\?xml[^>]*>\s*)?<(?:!doctype )?html[\s>]", "an HTML page", _PAGE),
        (r"\s*<\?xml\s", "XML", _XML),
        (r"\s*\[?\s*\{\s*\"[^\"\r\n]*\"\s*:", "JSON", _API),
        (r"\{\\rtf", "an RTF document", _TABLE),
    )
)
_MESSAGES: tuple[tuple[re.Pattern[str], FoundFileKind], ...] = (
    (re.compile(r"\s*ISA([^A-Za-z0-9\s])..\1.{10}\1..\1"), FoundFileKind("an X12 interchange (EDI)", _X12)),
    (re.compile(r"\s*(?:UNA\W{6}|UNB[+:])"), FoundFileKind("an EDIFACT interchange (EDI)", _EDIFACT)),
)
_UTF_16 = {0: "utf-16-be", 1: "utf-16-le"}
_ENCRYPTED = "encrypted with PGP"


def raise_if_head_shows_other_kind(
    head: bytes, encoding: str, *, name: str, expected: Literal["JSON", "XML"] | None = None
) -> None:
    """Refuse a file whose first bytes show another kind than text, or than JSON or XML, which tell their encoding."""
    is_ascii = "0".encode(encoding)[-1:] != b"\xf0"  # in EBCDIC, letters have the bytes of PGP packets
    found = next((kind for pattern, kind in _BINARY if pattern.match(head)), None)
    if found is not None and (is_ascii or found.what != _ENCRYPTED):
        _raise_wrong_kind_error(found, name)
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head).lstrip("\ufeff")
    found = next((kind for pattern, kind in _TEXT if pattern.match(text)), None)
    if found is not None and found.what != expected:
        _raise_wrong_kind_error(found, name)
    if expected == "XML":
        return
    found_encoding = detect_unmarked_utf_16(head)
    if found_encoding is not None and not codecs.lookup(encoding).name.startswith(("utf-16", "utf-32")):
        hint = "Ask the sender for UTF-8, the encoding of JSON." if expected else f"Declare encoding: {found_encoding}"
        _raise_wrong_kind_error(FoundFileKind(f"in {found_encoding}", hint), name)


def detect_unmarked_utf_16(data: bytes) -> str | None:
    """Return the form of UTF-16 in which every other byte of *data* is zero, or None."""
    zeros = [data[start::2].count(0) * 4 > len(data) for start in (0, 1)]
    return _UTF_16[zeros.index(True)] if any(zeros) != all(zeros) else None


def raise_if_edi_interchange(text: bytes, *, name: str) -> None:
    """Refuse a table whose first record begins an EDI interchange: its segments are not rows of one table."""
    start = text[:HEAD].decode(errors="replace")
    if (found := next((kind for pattern, kind in _MESSAGES if pattern.match(start)), None)) is not None:
        _raise_wrong_kind_error(found, name)


def raise_if_not_sheet_file(head: bytes, *, name: str) -> None:
    kinds = [*(pair for pair in _BINARY if pair[1].hint != _SHEET and pair[1].what != "a zip archive")]
    found = next((kind for pattern, kind in kinds if pattern.match(head)), None)
    text = head.decode("utf-8-sig", errors="replace")
    found = found or next((kind for pattern, kind in _TEXT if pattern.match(text)), None)
    if found is not None:
        _raise_wrong_kind_error(found, name)
    if head and not head.startswith((b"PK", b"\xd0\xcf\x11\xe0", b"\x09")) and _looks_like_text(text):
        _raise_wrong_kind_error(
            FoundFileKind("text, and no sheet", "Declare format: {kind: delimited}, with its delimiter."), name
        )


def raise_not_parquet_or_arrow_error(head: bytes, *, name: str, expected: str) -> NoReturn:
    """Refuse a file that is not *expected*, a Parquet or an Arrow file, by what its first bytes show instead."""
    found = next((kind for pattern, kind in _NO_COLUMNAR + _BINARY if pattern.match(head)), None)
    text = head.decode("utf-8-sig", errors="replace")
    found = found or next((kind for pattern, kind in _TEXT if pattern.match(text)), None)
    if found is None:
        found = FoundFileKind(f"not {expected}", "Declare the format that it is in, or fetch it again in binary mode.")
    _raise_wrong_kind_error(found, name)


def _looks_like_text(text: str) -> bool:
    return "\ufffd" not in text[:-4] and not re.search("[\x00-\x08\x0e-\x1f]", text)


def _raise_wrong_kind_error(kind: FoundFileKind, name: str) -> NoReturn:
    raise RefusedError(f"the file is {kind.what}", where=name, hint=kind.hint, code="format_wrong")
