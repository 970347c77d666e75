"""Guesses the character encoding of a file from its first part."""

from __future__ import annotations

import codecs

from crossdock.reading.formats.file_kind_and_encoding_mismatch import detect_unmarked_utf_16
from crossdock.reading.formats.guesses.format_guess_and_file_sample import (
    FileSample,
    GuessedSetting,
    TextSample,
    count_of_total_text,
)
from crossdock.reading.formats.text_decoding import BYTE_ORDER_MARKS

EBCDIC = "cp037"
_OTHERS = ("cp1252", "cp850", "latin-1")
_EBCDIC_TEXT = frozenset(
    {0x40, 0x4B, 0x60, 0x61, 0x6B, 0x7A, 0x15, 0x25, 0x0D, *range(0xC1, 0xCA), *range(0xD1, 0xDA)}
    | {*range(0xE2, 0xEA), *range(0xF0, 0xFA), *range(0x81, 0x8A), *range(0x91, 0x9A), *range(0xA2, 0xAA)}
)
_EAST_ASIA = 0x3000  # characters from here on
_MOSTLY = 60  # percent
_MOST_BYTES = 1 << 16
_BLANK = 0x40  # of EBCDIC; the @ of ASCII


def is_ebcdic(data: bytes) -> bool:
    """Return whether most bytes are letters, digits and blanks of EBCDIC, and few are those of ASCII."""
    part = data[:_MOST_BYTES]
    text = sum(byte in _EBCDIC_TEXT for byte in part)
    letters = sum(ord("A") <= byte <= ord("z") for byte in part)
    plain = sum(ord(" ") <= byte <= ord("~") for byte in part) - part.count(_BLANK)
    return 100 * text > _MOSTLY * len(part) and text > 2 * letters and 100 * plain < (100 - _MOSTLY) * len(part)


def guess_encoding_and_decode(sample: FileSample) -> TextSample:
    """Decode the whole lines of *sample*."""
    setting = _guess_encoding(sample)
    text = (
        codecs.getincrementaldecoder(setting.value)("replace").decode(sample.data, final=False).removeprefix("\ufeff")
    )
    text = text.replace("\r\n", "\n")
    if not sample.is_whole and "\n" in text:
        text = text[: text.rindex("\n") + 1]
    return TextSample(text, setting, sample.is_whole)


def _guess_encoding(sample: FileSample) -> GuessedSetting:
    data = sample.data
    for mark, (name, _) in BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return GuessedSetting("encoding", name, "the file begins with its byte order mark")
    if (form := detect_unmarked_utf_16(data)) is not None:
        return GuessedSetting("encoding", form, "every other byte is X'00'")
    high = sum(byte >= 0x80 for byte in data)
    if not high:
        return GuessedSetting("encoding", "utf-8", "all bytes are ASCII, which is the same in most encodings")
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(data, final=sample.is_whole)
    except UnicodeDecodeError:
        return _guess_encoding_unless_utf_8(data, high)
    return GuessedSetting("encoding", "utf-8", f"{high:,} bytes beyond ASCII, and all are UTF-8")


def _guess_encoding_unless_utf_8(data: bytes, high: int) -> GuessedSetting:
    if _is_shift_jis(data):
        return GuessedSetting("encoding", "shift_jis", "it is not UTF-8, and reads as kana and kanji")
    found = {name: _count_non_ascii_beside_letters(data, name) for name in _OTHERS}
    best = max(_OTHERS, key=lambda name: found[name])
    basis = (
        f"it is not UTF-8; {count_of_total_text(found[best], high, 'byte')} beyond ASCII would be letters beside "
        "letters"
    )
    others = ", ".join(name for name in _OTHERS if name != best)
    return GuessedSetting("encoding", best, basis, notes=(f"unsure: it may be {others}; look at words with accents",))


def _is_shift_jis(data: bytes) -> bool:
    """Return whether it is Shift-JIS, in which most characters of East Asia stand beside each other."""
    try:
        text = codecs.getincrementaldecoder("shift_jis")("strict").decode(data)
    except UnicodeDecodeError:
        return False
    wide = [ord(character) >= _EAST_ASIA for character in text]
    beside = sum(
        here and (before or after)
        for before, here, after in zip([False, *wide], wide, [*wide[1:], False], strict=False)
    )
    return 100 * beside > _MOSTLY * sum(wide) > 0


def _count_non_ascii_beside_letters(data: bytes, encoding: str) -> int:
    text = data.decode(encoding, "replace")
    return sum(
        character.isalpha() and ord(character) >= 0x80 and (before.isalpha() or after.isalpha())
        for before, character, after in zip(" " + text, text, text[1:] + " ", strict=False)
    )
