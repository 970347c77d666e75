"""Guesses the layout of fixed-width lines and of mainframe records: columns from where blanks, digits and letters meet.

Mainframe records are text in EBCDIC, with NEL, descriptor words or nothing between them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from crossdock.reading.formats.guesses.encoding_guess import EBCDIC, is_ebcdic
from crossdock.reading.formats.guesses.format_guess_and_file_sample import (
    FileSample,
    FormatGuess,
    GuessedSetting,
    TextSample,
    count_of_total_text,
)

_MOST_LINES = 5_000
_MOST_TYPES, _LONGEST_CODE = 12, 4
_SHORTEST = 4
_FEW = 2
_PREFIX = 3  # letters before the digits of an identifier
_BLANK, _DIGIT, _OTHER = " ", "9", "A"
_REMARK = (
    "Columns without a blank between them cannot be told apart: compare positions with the sender's description."
    " decimals: 2 makes a column a number."
)
_SIGNED = re.compile(r"\d+[{}A-R]")
_TRAILING = re.compile(r"\s*\d+[+ -]")


def guess_fixed_width(sample: TextSample) -> FormatGuess | None:
    """Return the guess for lines that have the same length, or one for each code at their beginning."""
    lines = [line for line in sample.lines if line][:_MOST_LINES]
    if len(lines) < 2 or max(map(len, lines)) < _SHORTEST:
        return None
    lengths = Counter(map(len, lines))
    length, usual = lengths.most_common(1)[0]
    typed = _lines_by_type_code(lines)
    if typed is not None:
        return _make_guess_with_record_types(sample, lines, typed)
    if usual == len(lines):
        return _make_fixed_width_guess(
            sample,
            lines,
            length,
            f"{count_of_total_text(usual, len(lines), 'line')} have {length} characters",
            is_short=False,
        )
    longest = max(lengths)
    padded = [line.ljust(longest) for line in lines]
    if _count_blank_positions([line[: min(lengths)] for line in lines]) and len(lines) > _FEW:
        basis = f"the longest of {len(lines):,} lines has {longest} characters"
        return _make_fixed_width_guess(sample, padded, longest, basis, is_short=True)
    return None


def guess_fixed_width_columns(lines: Sequence[str], start: int = 0) -> tuple[dict[str, dict[str, int]], dict[str, str]]:
    """Return columns by name with their positions, and what each rests on; *lines* have the same length."""
    kinds = [_common_character_kind({line[position] for line in lines}) for position in range(len(lines[0]))]
    begins = [
        position
        for position in range(start, len(kinds))
        if kinds[position] != _BLANK
        and (position == start or kinds[position - 1] == _BLANK or kinds[position] != kinds[position - 1])
    ]
    begins = _drop_column_starts_inside_texts(begins, lines, kinds)
    columns, bases = dict[str, dict[str, int]](), dict[str, str]()
    for number, begin in enumerate(begins, 1):
        end = begins[number] if number < len(begins) else len(kinds)
        name = f"COLUMN_{number}"
        columns[name] = {"at": begin + 1, "length": end - begin}
        bases[name] = _describe_cells([line[begin:end] for line in lines])
    return columns, bases


def _common_character_kind(characters: set[str]) -> str:
    if characters <= {" "}:
        return _BLANK
    return (
        _DIGIT if all(c.isdigit() or c == " " for c in characters) and any(c.isdigit() for c in characters) else _OTHER
    )


def _drop_column_starts_inside_texts(begins: Sequence[int], lines: Sequence[str], kinds: Sequence[str]) -> list[int]:
    """Leave out begins inside of texts: where a word of some line goes on across them, or a number with its sign."""
    kept: list[int] = []
    for begin in begins:
        before, here = kinds[begin - 1] if begin else _BLANK, kinds[begin]
        crossing = sum(line[begin - 1] != " " and line[begin] != " " for line in lines) if begin else 0
        is_inside = bool(kept) and before != _BLANK and here == _DIGIT and crossing < len(lines)
        is_end_of_text = (
            bool(kept) and before == _DIGIT and here == _OTHER and _belongs_to_number_before(lines, kept[-1], begin)
        )
        is_prefix = (
            bool(kept) and here == _DIGIT and begin - kept[-1] <= _PREFIX and _has_no_blank(lines, kept[-1], begin)
        )
        if not (is_inside or is_end_of_text or is_prefix):
            kept.append(begin)
    return kept


def _has_no_blank(lines: Sequence[str], start: int, end: int) -> bool:
    return all(" " not in line[start:end] for line in lines)


def _belongs_to_number_before(lines: Sequence[str], start: int, at: int) -> bool:
    """Return whether the character at *at* is the sign, point or overpunched digit of the number before it."""
    return all(line[at] in "+- .,{}ABCDEFGHIJKLMNOPQR" and line[start:at].strip().isdigit() for line in lines) and all(
        line[at + 1 : at + 2] in {"", " "} or line[at + 1].isdigit() for line in lines
    )


def _describe_cells(cells: Sequence[str]) -> str:
    filled = [cell for cell in cells if cell.strip()]
    if not filled:
        return "always blank"
    digits = sum(cell.strip().isdigit() for cell in filled)
    text = (
        f"digits in {count_of_total_text(digits, len(filled), 'line')}"
        if digits
        else f"texts in {count_of_total_text(len(filled), len(cells), 'line')}"
    )
    if all(_SIGNED.fullmatch(cell) for cell in filled) and digits < len(filled):
        return "its last character may be a digit with a sign: decimals: 2, sign: overpunch"
    if all(_TRAILING.fullmatch(cell) for cell in filled) and any(cell.endswith(("-", "+")) for cell in filled):
        return "its last character may be a sign: decimals: 2, sign: trailing"
    return text


def _make_fixed_width_guess(
    sample: TextSample, lines: Sequence[str], length: int, basis: str, *, is_short: bool
) -> FormatGuess:
    columns, bases = guess_fixed_width_columns(lines)
    settings = [
        GuessedSetting("kind", "fixed_width", basis),
        sample.encoding,
        GuessedSetting("length", length, basis),
        GuessedSetting("columns", columns, "where all lines are blank, and where digits and letters meet", bases),
    ]
    if is_short:
        settings.insert(3, GuessedSetting("short_lines", "pad", "lines are shorter, without blanks at their ends"))
    return FormatGuess(settings, (_REMARK,))


def _count_blank_positions(lines: Sequence[str]) -> int:
    return sum(all(line[position] == " " for line in lines) for position in range(len(lines[0])))


def _lines_by_type_code(lines: Sequence[str]) -> tuple[int, Mapping[str, Sequence[str]]] | None:
    """Return the length of codes at the beginning of lines, and the lines of each; None if there are none."""
    found = None
    for size in range(1, min(_LONGEST_CODE, min(map(len, lines)) - 1) + 1):
        by_code: dict[str, list[str]] = {}
        for line in lines:
            by_code.setdefault(line[:size], []).append(line)
        lengths = [{len(line) for line in each} for each in by_code.values()]
        is_regular = all(len(each) == 1 for each in lengths) and len({next(iter(each)) for each in lengths}) > 1
        are_codes = all(re.fullmatch("[A-Z0-9]+", code) for code in by_code)
        are_alike = len({code[-1].isdigit() for code in by_code}) == 1
        if not are_codes or (found and (len(by_code) > len(found[1]) or not are_alike)):
            break
        if 1 < len(by_code) <= min(_MOST_TYPES, len(lines) - 1) and is_regular:
            found = size, by_code
    return found


def _make_guess_with_record_types(
    sample: TextSample, lines: Sequence[str], typed: tuple[int, Mapping[str, Sequence[str]]]
) -> FormatGuess:
    size, by_code = typed
    types: dict[str, Any] = {}
    for code, own in by_code.items():
        columns, _ = guess_fixed_width_columns(own, size)
        named = {f"{code}_{number}": place for number, place in enumerate(columns.values(), 1)}
        types[code] = {"columns": named or {f"{code}_1": {"at": 1, "length": size}}, "length": len(own[0])}
        if len(own) == 1 and lines[0] == own[0]:
            types[code]["once"] = "first"
        elif len(own) == 1 and lines[-1] == own[0] and sample.is_whole:
            types[code]["once"] = "last"
    bases = {
        code: f"{count_of_total_text(len(own), len(lines), 'line')}, of {len(own[0])} characters"
        for code, own in by_code.items()
    }
    most = max(by_code, key=lambda code: (len(by_code[code]), len(by_code[code][0])))
    basis = f"the first {size} characters are one of {len(by_code)} codes, each with its own length"
    note = "parent: TYPE in a type repeats the columns of the last record of that type; counts states control totals"
    return FormatGuess(
        (
            GuessedSetting("kind", "fixed_width", basis),
            sample.encoding,
            GuessedSetting("record_type", {"length": size}, basis),
            GuessedSetting("record_types", types, basis, bases, (note,)),
            GuessedSetting("records", most, "it is there most often"),
        )
    )


_MOST_LENGTH = 4_000
_ALIKE = 80  # percent
_MOST_RECORDS = 200
_ENCODING = GuessedSetting(
    "encoding",
    EBCDIC,
    "most bytes are letters, digits and blanks of EBCDIC",
    notes=("unsure: cp273 is German, cp285 British, cp297 French, cp500 international; signs such as @ and { differ",),
)
_PACKED = (
    "Some bytes are no text: numbers are packed or binary (COMP-3, COMP), and only a copybook or a description says"
    " where. With copybook: {file: RECORD.cpy} it takes the place of length and columns."
)


def guess_mainframe(sample: FileSample) -> FormatGuess | None:
    """Return the guess for a file in EBCDIC; None for others."""
    words = _records_after_descriptor_words(sample)
    if words is not None:
        line_end, records = words
        if is_ebcdic(b"".join(records)):
            return _make_mainframe_guess(
                records, [GuessedSetting("line_end", line_end, f"words before {len(records):,} records state lengths")]
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
            return FormatGuess((first, GuessedSetting("line_end", "nel", ends), *rest), found.remarks)
    length, count = _guess_record_length(sample)
    records = [sample.data[start : start + length] for start in range(0, count * length, length)]
    basis = f"bytes {length} apart are most alike"
    no_end = GuessedSetting("line_end", "none", "no byte ends lines")
    return _make_mainframe_guess(
        records, [no_end, GuessedSetting("length", length, basis, notes=("unsure: compare it with the sender's",))]
    )


def _make_mainframe_guess(records: Sequence[bytes], settings: Sequence[GuessedSetting]) -> FormatGuess:
    longest = max(map(len, records))
    texts = [record.decode(EBCDIC).ljust(longest) for record in records]
    is_binary = any(not character.isprintable() for text in texts for character in text)
    columns: Mapping[str, Mapping[str, Any]]
    columns, bases = guess_fixed_width_columns(texts)
    if is_binary:
        columns = {"RECORD": {"at": 1, "length": longest, "usage": "hex"}}
        bases = {"RECORD": "bytes, until it is known what they are"}
    kind = GuessedSetting("kind", "fixed_width", f"{len(records):,} records of text in EBCDIC")
    short = []
    if len({*map(len, records)}) > 1:
        lengths = f"records have {min(map(len, records))} to {longest} bytes"
        short = [GuessedSetting("short_lines", "pad", lengths)]
    named = GuessedSetting("columns", columns, "where all records are blank, and where digits and letters meet", bases)
    return FormatGuess((kind, _ENCODING, *settings, *short, named), (_PACKED,) if is_binary else ())


def _records_after_descriptor_words(sample: FileSample) -> tuple[str, list[bytes]] | None:
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


def _guess_record_length(sample: FileSample) -> tuple[int, int]:
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
