"""Guesses how the values of a column are written: dates, numbers and truth values, each as a form of a map."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from msgspec import Struct

from crossdock.reading.formats.guesses.format_guess_and_file_sample import count_of_total_text

_LONGEST = 64  # characters of a date or number
_LIKELY = 90  # percent
_DATES: Sequence[tuple[str, str | None]] = (
    (r"\d{4}-\d\d-\d\d", None),
    (r"\d{8}", "%Y%m%d"),
    (r"\d{1,2}\.\d{1,2}\.\d{4}", "%d.%m.%Y"),
    (r"\d{1,2}/\d{1,2}/\d{4}", "%d/%m/%Y"),
    (r"\d{1,2}/\d{1,2}/\d{4}", "%m/%d/%Y"),
    (r"\d{4}/\d{1,2}/\d{1,2}", "%Y/%m/%d"),
    (r"\d{1,2}-\d{1,2}-\d{4}", "%d-%m-%Y"),
    (r"\d{1,2}\.\d{1,2}\.\d\d", "%d.%m.%y"),
    (r"\d{1,2}/\d{1,2}/\d\d", "%d/%m/%y"),
    (r"\d{1,2}/\d{1,2}/\d\d", "%m/%d/%y"),
    (r"\d{14}", "%Y%m%d%H%M%S"),
    (r"\d{1,2}\.\d{1,2}\.\d{4} \d{1,2}:\d\d", "%d.%m.%Y %H:%M"),
    (r"\d{1,2}\.\d{1,2}\.\d{4} \d{1,2}:\d\d:\d\d", "%d.%m.%Y %H:%M:%S"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "%Y-%m-%d %H:%M:%S"),
)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?")
_FIRST_YEAR, _LAST_YEAR = 1900, 2100
_TRUTH = (("true", "false"), ("TRUE", "FALSE"), ("True", "False"), ("Y", "N"), ("J", "N"), ("yes", "no"))
_NUMBERS: Sequence[tuple[str, Mapping[str, str]]] = (
    (r"\d+", {}),
    (r"\d*\.\d+|\d+\.?", {}),
    (r"\d*,\d+|\d+", {"decimal_mark": ","}),
    (r"\d{1,3}(?:,\d{3})*(?:\.\d+)?|\d+(?:\.\d+)?", {"thousands": ","}),
    (r"\d{1,3}(?:\.\d{3})*(?:,\d+)?|\d+(?:,\d+)?", {"decimal_mark": ",", "thousands": "."}),
    (r"\d{1,3}(?:[ \u00a0\u202f]\d{3})*(?:,\d+)?|\d+(?:,\d+)?", {"decimal_mark": ",", "thousands": " "}),
    (r"\d{1,3}(?:['\u2019]\d{3})*(?:\.\d+)?|\d+(?:\.\d+)?", {"thousands": "'"}),
)
_SIGNS = (("leading", "[+-]?({})"), ("trailing", "({})[+-]?"), ("parentheses", r"\(?({})\)?"))


class ValueForm(Struct, frozen=True):
    """How a column may be mapped: the keys of a form beside ``from``, what they rest on, and other ways to read it."""

    keys: Mapping[str, Any]
    basis: str
    unsure: str = ""


def guess_value_form(cells: Sequence[str]) -> ValueForm:
    """Return the form of the values in *cells*; texts have no keys."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    if not filled:
        return ValueForm({}, f"empty in {count_of_total_text(len(cells), len(cells), 'row')}")
    if max(map(len, filled)) > _LONGEST:
        return _form_of_unrecognized_texts(cells, filled)
    return (
        _boolean_form(filled)
        or _date_form(filled)
        or _instant_form(filled)
        or _number_form(filled)
        or _form_of_unrecognized_texts(cells, filled)
    )


def _form_of_unrecognized_texts(cells: Sequence[str], filled: Sequence[str]) -> ValueForm:
    different = len(set(filled))
    empty = len(cells) - len(filled)
    told = "the same text" if different == 1 else f"{different:,} different texts"
    told += f", empty in {count_of_total_text(empty, len(cells), 'row')}" if empty else ""
    return ValueForm({}, told)


def _boolean_form(filled: Sequence[str]) -> ValueForm | None:
    for true, false in _TRUTH:
        if set(filled) == {true, false}:
            keys: dict[str, Any] = {"as": "boolean"}
            keys |= {} if true == "true" else {"true_text": true, "false_text": false}
            return ValueForm(keys, count_of_total_text(len(filled), len(filled), "value"))
    return None


def _date_form(filled: Sequence[str]) -> ValueForm | None:
    found = []
    for pattern, form in _DATES:
        matched = [value for value in filled if re.fullmatch(pattern, value) and _is_date(value, form)]
        if 100 * len(matched) >= _LIKELY * len(filled):
            found.append((len(matched), form))
    if not found:
        return None
    count, form = max(found, key=lambda each: each[0])
    others = [each for number, each in found if number == count and each != form]
    has_time = form is not None and "%H" in form
    keys: dict[str, Any] = {"as": "instant" if has_time else "date"}
    keys |= {} if form is None else {"format": form}
    keys |= {"timezone": "UTC"} if has_time else {}
    unsure = f"it may be {', '.join(map(str, others))}: no day is after the 12th" if others else ""
    if count < len(filled):
        unsure = unsure or "the others are no dates: empty: [TEXT] reads a text as no value"
    return ValueForm(
        keys, count_of_total_text(count, len(filled), "value"), unsure or ("in which zone?" if has_time else "")
    )


def _is_date(value: str, form: str | None) -> bool:
    with suppress(ValueError):
        found = datetime.strptime(value, form or "%Y-%m-%d")  # noqa: DTZ007  only whether it is one
        return _FIRST_YEAR <= found.year <= _LAST_YEAR
    return False


def _instant_form(filled: Sequence[str]) -> ValueForm | None:
    matched = [found for value in filled if (found := _INSTANT.fullmatch(value))]
    if 100 * len(matched) < _LIKELY * len(filled):
        return None
    zoned = sum(found[1] is not None for found in matched)
    basis = f"{count_of_total_text(len(matched), len(filled), 'value')}, {zoned:,} with an offset"
    if zoned == len(matched):
        return ValueForm({"as": "instant"}, basis)
    return ValueForm({"as": "instant", "timezone": "UTC"}, basis, "in which zone?")


def _number_form(filled: Sequence[str]) -> ValueForm | None:
    if any(re.fullmatch(r"0\d+", value) for value in filled):
        return None  # an identifier
    for sign, around in _SIGNS:
        fitting = [
            (count, keys)
            for pattern, keys in _NUMBERS
            if 100 * (count := _count_matching(around.format(pattern), filled)) >= _LIKELY * len(filled)
        ]
        if fitting:
            count, keys = max(fitting, key=lambda each: each[0])
            return _make_number_form(filled, count, keys, sign, fitting)
    return None


def _count_matching(pattern: str, values: Sequence[str]) -> int:
    compiled = re.compile(pattern)
    return sum(compiled.fullmatch(value) is not None for value in values)


def _make_number_form(
    filled: Sequence[str],
    count: int,
    keys: Mapping[str, str],
    sign: str,
    fitting: Sequence[tuple[int, Mapping[str, str]]],
) -> ValueForm:
    is_whole = not any(mark in value for value in filled for mark in ".,")
    form: dict[str, Any] = {"as": "integer" if is_whole and sign == "leading" else "decimal", **keys}
    form |= {} if sign == "leading" else {"sign": sign}
    unsure = ""
    others = [each for number, each in fitting if number == count and each != keys]
    marked = [value for value in filled if re.search(r"[.,]", value)]
    if marked and others and all(re.search(r"^\D*\d{1,3}[.,]\d{3}\D*$", value) for value in marked):
        unsure = "the mark may be one of thousands: the digits after it are always three"
    if count < len(filled):
        unsure = "the others are no numbers: empty: [TEXT] reads a text as no value"
    return ValueForm(form, count_of_total_text(count, len(filled), "value"), unsure)
