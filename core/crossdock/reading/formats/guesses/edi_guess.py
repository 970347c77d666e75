"""Guesses the layout of EDI files: their sets or messages, and the ready layout of the most frequent one."""

from __future__ import annotations

import re
from collections import Counter

from crossdock.reading.formats.edi_layout import read_ready_layouts
from crossdock.reading.formats.guesses.format_guess_and_file_sample import (
    FormatGuess,
    GuessedSetting,
    TextSample,
    count_of_total_text,
)

_X12 = re.compile(r"\s*ISA([^A-Za-z0-9\s])")
_EDIFACT = re.compile(r"\s*(?:UNA(.)(.).{3}(.)\s*)?UNB(\W)")
_TEST_AT = 15


def guess_edi(sample: TextSample) -> FormatGuess | None:
    """Return the guess for X12 or EDIFACT; None for other text."""
    if found := _X12.match(sample.text):
        return _guess_x12(sample, found[1])
    if found := _EDIFACT.match(sample.text):
        element, end = found[4], found[3] or "'"
        kinds = re.findall(
            rf"(?:^|{re.escape(end)}\s*)UNH{re.escape(element)}[^{re.escape(element)}]*{re.escape(element)}(\w{{6}})",
            sample.text,
        )
        return _make_edi_guess(Counter(kinds), "edifact", "message", is_test=False)
    return None


def _guess_x12(sample: TextSample, element: str) -> FormatGuess:
    header = sample.text.lstrip()[:106].split(element)
    end = sample.text.lstrip()[105:106]
    sets = re.findall(rf"{re.escape(end)}\s*ST{re.escape(element)}(\d{{3}})", sample.text)
    is_test = len(header) > _TEST_AT and header[_TEST_AT] == "T"
    return _make_edi_guess(Counter(sets), "x12", "set", is_test=is_test)


def _make_edi_guess(kinds: Counter[str], kind: str, key: str, *, is_test: bool) -> FormatGuess:
    total = kinds.total()
    what = "message" if kind == "edifact" else "set"
    (most, count), *others = kinds.most_common() or [("", 0)]
    basis = f"{count_of_total_text(count, total, what)} are {most}"
    notes = [
        f"{count_of_total_text(number, total, what)} are {each}: a stream of its own reads them"
        for each, number in others
    ]
    settings = [GuessedSetting("kind", kind, "the file begins with its interchange header")]
    remarks: list[str] = []
    if not most:
        remarks.append(f"No {what} was found: name what is read.")
    if f"{kind}/{most}" in read_ready_layouts():
        settings.append(GuessedSetting("layout", f"{kind}/{most}", basis, notes=notes))
        remarks.append("Compare the ready layout with the sender's guide: crossdock layout show FILE --stream NAME.")
    else:
        tag = "UNH" if kind == "edifact" else "ST"
        settings.append(GuessedSetting(key, most or ("ORDERS" if kind == "edifact" else "850"), basis, notes=notes))
        settings.append(
            GuessedSetting(
                "columns",
                {"control": f"{tag}.{1 if kind == 'edifact' else 2}"},
                "no ready layout: add loops, rows and columns",
            )
        )
    if is_test:
        settings.append(GuessedSetting("test", True, "the interchange says that it is a test"))
    return FormatGuess(settings, remarks)
