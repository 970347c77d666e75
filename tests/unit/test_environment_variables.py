"""``${NAME}`` in a text is an environment variable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.values.yaml_reader import MAX_SUBSTITUTED, escape_dollars, substitute_variables

ENVIRONMENT = {"HOST": "wms.example.com", "EMPTY": "", "_9": "x", "DOLLAR": "${HOST}"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("https://${HOST}/a", "https://wms.example.com/a"),
        ("${HOST}${_9}", "wms.example.comx"),
        ("${HOST:-other}", "wms.example.com"),
        ("${NONE:-a:-b /c}", "a:-b /c"),
        ("${EMPTY:-other}", "other"),
        ("${NONE:-}", ""),
        ("${EMPTY}", ""),
        ("${DOLLAR}", "${HOST}"),
        ("$${HOST}", "${HOST}"),
        ("$$$${HOST}", "$${HOST}"),
        ("$HOST costs 5$", "$HOST costs 5$"),
        ("$$", "$"),
        ("env:NAME", "env:NAME"),
    ],
)
def test_variables_are_replaced(text: str, value: str) -> None:
    """A default applies to an unset or empty variable, a value is not searched again, and $$ is a dollar."""
    assert substitute_variables(text, ENVIRONMENT) == value


@pytest.mark.parametrize(
    "text", ["${", "${}", "${9A}", "${A B}", "${HOST:?none}", "${HOST-x}", "${A:-${HOST}}", "${HOST"]
)
def test_another_form_is_refused(text: str) -> None:
    """What other programs read differently is not taken literally."""
    with pytest.raises(ValueError, match=r"\$\{NAME:-default\}; write \$\$ for a dollar"):
        substitute_variables(text, ENVIRONMENT)


def test_an_unset_variable_is_named() -> None:
    """The message says what to set."""
    with pytest.raises(ValueError, match="the environment variable NONE is not set"):
        substitute_variables("${NONE}", ENVIRONMENT)


@given(st.text(st.sampled_from("${}:-A\n") | st.characters()))
def test_every_text_can_be_written(text: str) -> None:
    """With each dollar doubled, or only those that need it, any text stays as it is."""
    assert substitute_variables(text.replace("$", "$$"), {}) == text
    assert substitute_variables(escape_dollars(text), {}) == text


@given(st.text(), st.text())
def test_a_value_is_taken_as_it_is(before: str, value: str) -> None:
    """No character of a value has a meaning."""
    plain = before.replace("$", "")
    assert substitute_variables(f"{plain}${{A}}{plain}", {"A": value}) == f"{plain}{value}{plain}"


def test_variables_add_a_bounded_number_of_characters() -> None:
    """A short text with a long variable in it many times does not fill the memory."""
    assert len(substitute_variables("${A}" * 2, {"A": "x" * (MAX_SUBSTITUTED // 2)})) == MAX_SUBSTITUTED
    with pytest.raises(ValueError, match="variables of more than 1,048,576 characters"):
        substitute_variables("${A}" * 1_000_000, {"A": "x" * 100_000})
