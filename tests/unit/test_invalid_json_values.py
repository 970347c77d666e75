"""Texts of others that have half of a character are marked, and are never another text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.values import exact_json
from crossdock.values.exact_json import is_cell_of_invalid_value, loads_replacing_invalid_values
from crossdock.values.json_paths import json_value_as_column_text, pointer_and_fault_of_invalid_value

HALVES = st.text(st.characters(categories=("Cs", "L", "P")) | st.sampled_from('\\ud83dx"\x1d'))
DOCUMENTS = st.recursive(
    HALVES | st.none() | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["a", "b/c", "d~"]), inner),
)


def is_whole(text: str) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in text)


@given(HALVES, HALVES)
def test_two_texts_are_never_one_cell(one: str, other: str) -> None:
    """Neither are two halves equal, nor is one equal to the text that shows its escape."""
    cells = [
        json_value_as_column_text(loads_replacing_invalid_values(json.dumps(each).encode())) for each in (one, other)
    ]
    assert (cells[0] == cells[1]) is (json.loads(json.dumps(one)) == json.loads(json.dumps(other)))
    assert is_cell_of_invalid_value(cells[0]) is not is_whole(json.loads(json.dumps(one)))


@given(DOCUMENTS)
def test_a_mark_is_found_where_the_text_was(document: object) -> None:
    """Documents without one are read as they are, and what was read is exact JSON."""
    body = json.dumps(document).encode()
    read = exact_json.dumps(loads_replacing_invalid_values(body)).decode()
    try:
        whole = exact_json.loads(body)
    except ValueError:
        assert pointer_and_fault_of_invalid_value(read) is not None
    else:
        assert exact_json.loads(read) == whole
        assert pointer_and_fault_of_invalid_value(read) is None


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (r'"\ud83d"', ""),
        (r'{"a": [1, {"b/c": "x\udc00"}]}', "/a/1/b~1c"),
        (r'{"a": "\ud83d\ude00", "b": "\ude00\ud83d"}', "/b"),
        (r'{"a": "{\"\u001dhalf_character\":\"\""}', None),
    ],
)
def test_the_member_is_named(body: str, pointer: str | None) -> None:
    """By a JSON pointer; a text that only looks like the mark is none."""
    found = pointer_and_fault_of_invalid_value(exact_json.dumps(loads_replacing_invalid_values(body.encode())).decode())
    assert (found and found[0]) == pointer


@pytest.mark.parametrize(
    ("body", "pointer", "fault"),
    [
        (b'[{"a": NaN}]', "/0/a", "is no exact JSON: NaN is not JSON"),
        (b'[{"a": [-Infinity]}, "\\ud83d"]', "/0/a/0", "-Infinity is not JSON"),
        (b'{"a": 1e9999}', "/a", "a number has an exponent beyond"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "/a", "a number has an exponent beyond"),
        (b'{"b": {"a": 1, "a": 2}}', "/b/a", "an object repeats a member name"),
        (b'{"a": 1, "a": true}', "/a", "an object repeats a member name"),
    ],
)
def test_a_value_that_is_no_exact_json_is_replaced(body: bytes, pointer: str, fault: str) -> None:
    """Its place and the reason are found in the record; the others are read."""
    found = pointer_and_fault_of_invalid_value(exact_json.dumps(loads_replacing_invalid_values(body)).decode())
    assert found is not None
    assert found[0] == pointer
    assert fault in found[1]


def test_what_can_be_read_in_one_way_only_is_read() -> None:
    """A line break in a text that nobody has escaped, and a member twice with the same value."""
    assert loads_replacing_invalid_values(b'{"a": "one\ntwo\t", "b": 1, "b": 1}') == {"a": "one\ntwo\t", "b": 1}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (rb'{"a\ud83d": 1}', "the name of a member has a lone surrogate"),
        (b'{"a": "x\0"}', "NUL"),
        (b"[" * 64 + rb'"\ud83d"' + b"]" * 64, "nested more than 64 levels deep"),
        (b"[" + rb'"\ud83d",' * 600_000 + b"1]", "more than 1,000,000 values"),
        (b'["\xed\xa0\xbd"]', "can't decode byte"),
    ],
)
def test_other_faults_refuse_the_document(body: bytes, message: str) -> None:
    """What else is no exact JSON stays so, and the marks keep the limits of its size."""
    with pytest.raises(ValueError, match=message):
        loads_replacing_invalid_values(body)
