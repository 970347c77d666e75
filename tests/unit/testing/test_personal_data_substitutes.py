"""Substitutes: their shape, and which texts they keep equal and different."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.testing.sensitive_data import EMAIL, WORD, Substitutes


def shape(text: str) -> str:
    """The kinds of the characters of *text*; punctuation as it is."""
    kinds = {"u": str.isupper, "l": str.isalpha, "d": str.isdecimal}
    return "".join(next((kind for kind, has in kinds.items() if has(each)), each) for each in text)


WORDS = st.text(st.characters(codec="utf-8", categories=["Lu", "Ll", "Lo", "Nd", "Zs", "Pd", "Po"]), max_size=40)


@given(WORDS)
def test_length_and_kinds_of_characters_stay(text: str) -> None:
    """A text has a substitute of the same length, with letters for letters, digits for digits, and its punctuation."""
    made = Substitutes().replace_words(text)
    assert len(made) == len(text)
    lower, made_lower = text.lower(), made.lower()
    if len(lower) == len(text) and lower.upper().lower() == lower:
        assert shape(made_lower) == shape(lower)
    assert WORD.sub("", made) == WORD.sub("", text)


@given(st.lists(st.from_regex(r"[A-Za-z]{5,12}", fullmatch=True), max_size=50))
def test_other_words_have_other_substitutes(words: list[str]) -> None:
    """Two words have equal substitutes exactly if they are equal but for case, so that joins go on working."""
    substitutes = Substitutes()
    for word in words:
        substitutes.avoid_words(word)
    made = {word: substitutes.replace_words(word) for word in words}
    assert len({each.lower() for each in made.values()}) == len({word.lower() for word in words})
    assert not {each.lower() for each in made.values()} & {word.lower() for word in words}


def test_words_are_replaced_alike_in_any_case_and_place() -> None:
    """A first name has the same substitute in a full name, in a mail address and in capitals."""
    of = Substitutes().replace_words
    first, last = of("Ada"), of("Lovelace")
    assert of("Ada Lovelace") == f"{first} {last}"
    assert of("ADA LOVELACE") == f"{first} {last}".upper()
    assert of("ada.lovelace@example.org").startswith(f"{first}.{last}@".lower())


@pytest.mark.parametrize("address", ["ada@example.org", "a.b+c@mail.example.co.uk"])
def test_a_mail_address_stays_one(address: str) -> None:
    """Its top-level domain stays, and nothing else."""
    made = Substitutes().replace_words(address)
    assert EMAIL.fullmatch(made)
    assert made.rpartition(".")[2] == address.rpartition(".")[2]
    assert made.partition("@")[0] != address.partition("@")[0]


@pytest.mark.parametrize("phone", ["+49 40 1234567", "0049401234567", "491701234567", "(040) 123-45-67"])
def test_a_telephone_number_stays_one(phone: str) -> None:
    """Digits are replaced; a leading zero stays one, and no number gets one."""
    made = Substitutes().replace_words(phone)
    assert re.sub(r"\d", "0", made) == re.sub(r"\d", "0", phone)
    assert made != phone
    assert made.startswith("0") == phone.startswith("0")


def test_a_day_becomes_another_day() -> None:
    """The date of a birth stays a date, whatever its time of day."""
    of_day = Substitutes().replace_day
    assert re.fullmatch(r"19\d\d-(0[1-9]|1[0-2])-([01]\d|2[0-8])T00:00:00Z", of_day("1815-12-10T00:00:00Z"))
    assert of_day("1815-12-10") == of_day("1815-12-10")
    assert re.fullmatch(r"\d\d\.\d\d\.\d{4}", of_day("10.12.1815"))


def test_two_recordings_have_different_substitutes() -> None:
    """The key is random, so a substitute tells nothing about the value."""
    assert Substitutes().replace_words("Lovelace-Byron-1815") != Substitutes().replace_words("Lovelace-Byron-1815")
