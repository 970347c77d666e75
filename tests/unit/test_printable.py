"""What a text of others looks like wherever it is shown, logged or kept."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.errors import ConfigError, CrossdockError, FindingsError, RecordError
from crossdock.printable import is_storable, printable, printable_json, printable_lines

OBEYED = {chr(number) for number in (*range(0x20), *range(0x7F, 0xA0), 0x200E, 0x200F, 0x2028, 0x2029)}
OBEYED |= {chr(number) for number in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x061C)}
ANY = st.text(st.characters() | st.sampled_from(sorted(OBEYED)) | st.characters(categories=["Cs", "Cf"]))


@given(ANY)
def test_any_text_becomes_one_harmless_line(text: str) -> None:
    """No control, bidirectional or half character is left, nothing else is changed, and twice is as good as once."""
    shown = printable(text)
    assert not OBEYED & set(shown)
    assert not any(unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in shown)
    assert printable(shown) == shown
    assert "\\" in text or shown.encode("ascii", "backslashreplace").decode("unicode_escape") == text
    assert is_storable(shown)


@given(ANY)
def test_lines_stay_lines(text: str) -> None:
    """Only line feeds are kept."""
    assert printable_lines(text) == "\n".join(printable(line) for line in text.split("\n"))


@given(st.recursive(ANY | st.none(), lambda inner: st.lists(inner) | st.dictionaries(ANY, inner), max_leaves=8))
def test_json_is_exact(value: object) -> None:
    """JSON stays the JSON of the same value, and shows nothing that a terminal would obey."""
    for indent in (None, 2):
        shown = printable_json(json.dumps(value, ensure_ascii=False, indent=indent))
        assert json.loads(shown) == value
        assert not (OBEYED - {"\n"}) & set(shown)
        shown.encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Größe 東京 👍🏽 a\u200db", "Größe 東京 👍🏽 a\u200db"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("\x9b2J\u202egpj\u2066", r"\x9b2J\u202egpj\u2066"),
        ("\ud800\U000e0041", r"\ud800\U000e0041"),
    ],
)
def test_it_is_spelt_as_python_does(text: str, shown: str) -> None:
    """Letters of all scripts and emoji stay, the rest has its escape."""
    assert printable(text) == shown


@pytest.mark.parametrize(("text", "kept"), [("a\x01\u202eb", True), ("a\0b", False), ("a\ud800b", False)])
def test_what_both_databases_keep(text: str, *, kept: bool) -> None:
    """PostgreSQL takes no NUL, and no database takes half a character."""
    assert is_storable(text) is kept


EVIL = "a\x00\x1b[2J\u202e\ncrossdock: run 1: done"
SHOWN = r"a\x00\x1b[2J\u202e\ncrossdock: run 1: done"


@pytest.mark.parametrize("kind", [CrossdockError, ConfigError])
def test_an_error_quotes_on_one_line(kind: type[CrossdockError]) -> None:
    """Message, place and hint are one line each, whatever they quote."""
    error = kind(EVIL, where=EVIL, hint=EVIL)
    assert str(error) == f"{SHOWN}: {SHOWN}\n  {SHOWN}"
    assert (error.message, error.where, error.hint) == (SHOWN, SHOWN, SHOWN)


def test_a_refused_record_is_told_on_one_line() -> None:
    """What becomes a dead letter fits both databases."""
    error = RecordError("bad_value", EVIL, pointer=EVIL)
    assert (error.message, error.pointer) == (SHOWN, SHOWN)


def test_findings_have_a_line_each() -> None:
    """Several findings in a config are several lines, and no value makes one more."""
    error = FindingsError(["c.yaml:1:1: a", f"c.yaml:2:1: {EVIL}"])
    assert str(error).split("\n") == ["c.yaml:1:1: a", f"c.yaml:2:1: {SHOWN}"]
