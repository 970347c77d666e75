"""JSON whose numbers keep their digits, in lines that people read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.testing import readable_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(JSON)
def test_the_value_stays(value: object) -> None:
    """What is written in one line or in several is read again as the same value."""
    read = readable_json.loads_keeping_number_texts(json.dumps(value))
    assert json.loads(readable_json.dumps_on_one_line(read)) == value
    assert json.loads(readable_json.dumps_indented(read)) == value


@pytest.mark.parametrize(
    "digits", ["1", "1.50", "-0.0", "1e3", "123456789012345678901234567890", "0.10000000000000001"]
)
def test_numbers_keep_their_digits(digits: str) -> None:
    """A text of the same digits stays a text."""
    text = f'{{"a": {digits}, "b": "{digits}"}}'
    assert readable_json.dumps_on_one_line(readable_json.loads_keeping_number_texts(text)) == text


@pytest.mark.parametrize("text", ["", "{", '{"a": 1, "a": 2}', "NaN", '"\\ud800"', "[" * 100])
def test_other_texts_are_refused(text: str) -> None:
    """With the limits that crossdock has for all JSON."""
    with pytest.raises(ValueError):
        readable_json.loads_keeping_number_texts(text)


def test_short_lists_are_in_one_line() -> None:
    """A parameter takes one line of the file."""
    assert readable_json.dumps_indented({"params": [["limit", "2"]]}) == '{\n  "params": [\n    ["limit", "2"]\n  ]\n}'


def test_an_unchanged_text_stays_as_it_was() -> None:
    """White space is kept, unless the value changes."""
    assert readable_json.apply_change_to_json_text('{"a":1}', lambda value: value) == '{"a":1}'
    assert readable_json.apply_change_to_json_text('{"a":1}', lambda _: ["b"]) == '["b"]'
