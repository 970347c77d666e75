"""Guesses the layout of mainframe records: text in EBCDIC, with NEL, descriptor words or nothing between records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crossdock.reading.formats.guesses.encoding_guess import EBCDIC, is_ebcdic
from crossdock.reading.formats.guesses.fixed_width_guess import guess_columns, guess_fixed_width
from crossdock.reading.formats.guesses.format_guess_and_file_sample import Guess, Sample, Setting, TextSample

_MOST_LENGTH = 4_000
_ALIKE = 80  # percent
_MOST_RECORDS = 200
_ENCODING = Setting(
    "encoding",
    EBCDIC,
    "most bytes are letters, digits and blanks of EBCDIC",
    notes=("unsure: cp273 is German, cp285 British, cp297 French, cp500 international; signs such as @ and { differ",),
)
_PACKED = (
    "Some bytes are no text: numbers are packed or binary (COMP-3, COMP), and only a copybook or a description says"
    " where. With copybook: {file: RECORD.cpy} it takes the place of length and columns."
)


def guess_mainframe(sample: Sample) -> Guess | None:
    """Return the guess for a file in EBCDIC; None for others."""
    words = _records_after_descriptor_words(sample)
    if words is not None:
        line_end, records = words
        if is_ebcdic(b"".join(records)):
            return _make_guess(
                records, [Setting("line_end", line_end, f"words before {len(records):,} records state lengths")]
            )
    if not is_ebcdic(sample.data):
        return None
    if sample.data.count(0x15) > 1 and b"\x0d" not in sample.data:
        text = sample.data.decode(EBCDIC).replace("\x85", "\n")
        text = text if sample.is_whole else text[: text.rfind("\n") + 1]
        found = guess_fixed_width(TextSample(text, _ENCODING, sample.is_whole))
        if found is not None:
            ends = f"X'15' is there {sample.data.count(0x15):,} times"
            first, *rest = found.settings
            return Guess((first, Setting("line_end", "nel", ends), *rest), found.remarks)
    length, count = _guess_record_length(sample)
    records = [sample.data[start : start + length] for start in range(0, count * length, length)]
    basis = f"bytes {length} apart are most alike"
    no_end = Setting("line_end", "none", "no byte ends lines")
    return _make_guess(
        records, [no_end, Setting("length", length, basis, notes=("unsure: compare it with the sender's",))]
    )


def _make_guess(records: Sequence[bytes], settings: Sequence[Setting]) -> Guess:
    longest = max(map(len, records))
    texts = [record.decode(EBCDIC).ljust(longest) for record in records]
    is_binary = any(not character.isprintable() for text in texts for character in text)
    columns: Mapping[str, Mapping[str, Any]]
    columns, bases = guess_columns(texts)
    if is_binary:
        columns = {"RECORD": {"at": 1, "length": longest, "usage": "hex"}}
        bases = {"RECORD": "bytes, until it is known what they are"}
    kind = Setting("kind", "fixed_width", f"{len(records):,} records of text in EBCDIC")
    short = []
    if len({*map(len, records)}) > 1:
        lengths = f"records have {min(map(len, records))} to {longest} bytes"
        short = [Setting("short_lines", "pad", lengths)]
    named = Setting("columns", columns, "where all records are blank, and where digits and letters meet", bases)
    return Guess((kind, _ENCODING, *settings, *short, named), (_PACKED,) if is_binary else ())


def _records_after_descriptor_words(sample: Sample) -> tuple[str, list[bytes]] | None:
    """Return ``rdw`` or ``bdw`` and the first records, if descriptor words lead from each record to the next."""
    for line_end, skipped in (("bdw", 4), ("rdw", 0)):
        at, records = skipped, list[bytes]()
        while len(records) < _MOST_RECORDS and at + 4 <= len(sample.data):
            size = int.from_bytes(sample.data[at : at + 2], "big")
            if size < 5 or sample.data[at + 2 : at + 4] != b"\0\0":
                break
            if at + size > len(sample.data):
                break
            records.append(sample.data[at + 4 : at + size])
            at += size
        block = int.from_bytes(sample.data[:2], "big") if skipped else 0
        is_end = at == len(sample.data) or len(records) == _MOST_RECORDS or (skipped and at == block)
        if records and (is_end or (not sample.is_whole and len(records) > 1)):
            return line_end, records
    return None


def _guess_record_length(sample: Sample) -> tuple[int, int]:
    """Return the length of records after which kinds of bytes repeat most, and how many records the sample has."""
    data = sample.data[: 1 << 16]
    kinds = bytes(0 if byte == 0x40 else 1 if 0xF0 <= byte <= 0xF9 else 2 if byte > 0x80 else 3 for byte in data)
    possible = [
        length
        for length in range(4, min(_MOST_LENGTH, len(data) // 2) + 1)
        if not sample.is_whole or len(sample.data) % length == 0
    ] or [len(data)]
    found = {length: _likeness_at_distance(kinds, length) for length in possible}
    best = max(found, key=lambda length: found[length])
    # Texts that repeat make a multiple of the length more alike.
    length = min(length for length in found if best % length == 0 and 100 * found[length] >= _ALIKE * found[best])
    return length, min(_MOST_RECORDS, len(sample.data) // length)


def _likeness_at_distance(kinds: bytes, length: int) -> int:
    """Return how many of a million bytes are of the kind of the one *length* after them."""
    pairs = list(zip(kinds, kinds[length:], strict=False))[:8_000]
    return 1_000_000 * sum(one == other for one, other in pairs) // max(1, len(pairs))
