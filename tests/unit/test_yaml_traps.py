"""Plain scalars that YAML 1.1 does not read as people mean them."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from crossdock.values.yaml_reader import ambiguous_boolean_problem, ambiguous_number_problem, not_text_message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0017", 'is an octal number in YAML: quote it if it is text, as in "0017"'),
        ("-01", "octal"),
        ("0_1", "octal"),
        ("0x1F", "hexadecimal"),
        ("0b11", "binary"),
        ("007.5", "without its leading zeros"),
        ("12:30", "base 60"),
        ("1:30.5", "base 60"),
        ("-12:30:45", "base 60"),
    ],
)  # fmt: skip
def test_a_number_that_is_none_for_people(text: str, message: str) -> None:
    """The message says which quoting is needed."""
    assert message in (ambiguous_number_problem(text) or "")


@pytest.mark.parametrize(
    "text",
    ["0", "-0", "17", "1_000", "0.5", "1.50", "2026-01-02", "2026-01-02 12:30:00", "true", "NO", "~", "", "on"],
)
def test_a_number_as_people_write_it(text: str) -> None:
    """Other plain scalars are left alone."""
    assert ambiguous_number_problem(text) is None


@given(st.from_regex(r"[-+]?[0-9_.xb]{1,8}(:[0-9]{1,2}){0,2}", fullmatch=True))
def test_no_number_has_another_value_than_its_digits(text: str) -> None:
    """Whatever YAML reads as a whole number is decimal, or is refused."""
    if getattr(yaml.compose(text), "tag", None) == "tag:yaml.org,2002:int" and ambiguous_number_problem(text) is None:
        assert yaml.safe_load(text) == int(text.replace("_", ""))


@pytest.mark.parametrize(
    ("text", "meant"), [("NO", "false"), ("off", "false"), ("Yes", "true"), ("on", "true"), ("true", None), ("", None)]
)
def test_a_word_that_is_a_boolean(text: str, meant: str | None) -> None:
    """NO may be Norway: the message shows both ways to write it."""
    found = ambiguous_boolean_problem(text)
    assert found == (meant and f'{text} is the boolean {meant} in YAML: quote it for text, "{text}", or write {meant}')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NO", 'NO is a boolean in YAML; quote it, "NO"'),
        ("true", 'quote it, "true"'),
        ("NULL", 'NULL means no value in YAML; quote it, "NULL"'),
        ("~", 'quote it, "~"'),
        ("", "is empty"),
        ("17", "quote numbers"),
        ("2026-01-02", "dates"),
        (None, "must be text"),
    ],
)
def test_a_value_that_is_no_text(text: str | None, message: str) -> None:
    """Words are repeated in the message; a number, which may be a secret, is not."""
    said = not_text_message(text)
    assert message in said
    assert "17" not in said
