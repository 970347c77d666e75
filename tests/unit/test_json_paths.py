"""Members of JSON values: by pointer, by path as text, and lists as rows."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.errors import RecordError
from crossdock.values import exact_json
from crossdock.values.exact_json import BEYOND
from crossdock.values.json_paths import (
    MISSING,
    copy_with_value_at_path,
    explode_list_with_pointers,
    json_value_as_column_text,
    parse_exact_number,
    require_json_type,
    value_at_path_or_missing,
    value_at_pointer_refusing_wrong_containers,
)

NAMES = st.sampled_from(["a", "b", "a.b", "0", "01", "~", "/", "", "~1", "é"])
NUMBERS = st.integers(-(10**15), 10**15) | st.decimals(-(10**15), 10**15, allow_nan=False, places=4)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(st.characters(codec="utf-8"), max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=12
)
KINDS = (str, bool, int, Decimal, list, dict)


def refusal(read: Callable[[], object]) -> RecordError | None:
    """What *read* raises."""
    try:
        read()
    except RecordError as error:
        return error
    return None


def everything_in(value: Any, pointer: str = "") -> list[tuple[str, Any]]:
    """Each value in *value* with its pointer, written without the code that is tested."""
    found = [(pointer, value)]
    if isinstance(value, dict):
        inner = [(name.replace("~", "~0").replace("/", "~1"), each) for name, each in value.items()]
    else:
        inner = [(str(index), each) for index, each in enumerate(value)] if isinstance(value, list) else []
    for name, each in inner:
        found += everything_in(each, f"{pointer}/{name}")
    return found


@given(VALUES)
def test_a_pointer_finds_every_value(document: Any) -> None:
    """Whatever the names of members contain."""
    for pointer, value in everything_in(document):
        assert value_at_pointer_refusing_wrong_containers(document, pointer) is value


@given(document=VALUES, pointer=st.lists(NAMES, max_size=4))
def test_a_pointer_finds_a_value_or_says_where_there_is_none(document: Any, pointer: list[str]) -> None:
    """There is no other exception, and the place of the error is a part of the pointer."""
    text = "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in pointer)
    error = refusal(lambda: value_at_pointer_refusing_wrong_containers(document, text))
    assert error is None or (error.code == "bad_value" and text.startswith(error.pointer or ""))


@given(value=VALUES, kind=st.sampled_from(KINDS))
def test_a_value_is_of_its_type_or_refused(value: Any, kind: type[Any]) -> None:
    """Nothing is converted but whole numbers to decimals; an error never quotes the value."""
    expected = type(value) is kind or (kind is Decimal and type(value) is int)
    if expected:
        made = require_json_type(value, kind, "/x")
        assert made == value
        assert type(made) is kind
    else:
        with pytest.raises(RecordError) as refused:
            require_json_type(value, kind, "/x")
        assert (refused.value.code, refused.value.pointer) == ("bad_value", "/x")
        if isinstance(value, str) and value.isdigit():
            assert value not in refused.value.message


@pytest.mark.parametrize(
    ("document", "pointer", "message"),
    [
        ({"a": "x"}, "/a/b", "/a: is text, and should be an object"),
        ({"a": [1]}, "/a/b", "/a: is a list, and should be an object"),
        ({"a": True}, "/a/0", "/a: is true or false, and should be a list"),
    ],
)
def test_a_value_without_members_is_no_missing_value(document: Any, pointer: str, message: str) -> None:
    """A default must not hide that a source has changed its form."""
    with pytest.raises(RecordError, match=f"^{message}$"):
        value_at_pointer_refusing_wrong_containers(document, pointer)


@pytest.mark.parametrize("pointer", ["a", "a/b", "/a~2", "/~"])
def test_a_wrong_pointer_is_a_defect_of_the_mapping(pointer: str) -> None:
    """It is no record's fault."""
    with pytest.raises(ValueError, match="is not a JSON pointer"):
        value_at_pointer_refusing_wrong_containers({}, pointer)


def test_a_wrong_type_is_a_defect_of_the_mapping() -> None:
    """Money is never a float."""
    with pytest.raises(TypeError, match="instead of float"):
        require_json_type(1, float, "/a")


# ---- numbers

CENTS = st.integers(-(10**17), 10**17)


@given(CENTS)
def test_a_number_is_the_same_however_it_is_written(cents: int) -> None:
    """As text, as a JSON number, and in minor units, to the last digit."""
    exact = Decimal(cents).scaleb(-2)
    written = [
        parse_exact_number(exact, "", 0),
        parse_exact_number(f"{exact:.2f}", "", 0),
        parse_exact_number(f" {exact:+.2f} ", "", 0),
    ]
    written += [parse_exact_number(cents, "", 2), parse_exact_number(str(cents), "", 2)]
    assert {exact_json.decimal_text(each) for each in written} == {exact_json.decimal_text(exact)}
    assert len({str(each) for each in written}) == 1


@given(st.text())
def test_a_text_is_a_number_or_refused(text: str) -> None:
    """Nothing else is raised, and the text is not quoted."""
    error = refusal(lambda: parse_exact_number(text, "/x", 0))
    assert error is None or error.message in {"is text that is not a number", BEYOND}


@pytest.mark.parametrize(
    "value", ["", "1e3", "NaN", "Infinity", "1,50", "1_000", "٣", "0x1", True, None, [], {}, MISSING]
)
def test_what_is_no_number_is_refused(value: Any) -> None:
    """No mark or notation is guessed."""
    with pytest.raises(RecordError):
        parse_exact_number(value, "/x", 0)


@pytest.mark.parametrize("value", ["19.90", "19.00", Decimal("19.9")])
def test_a_decimal_point_in_minor_units_is_refused(value: Any) -> None:
    """It would be wrong by a factor of a hundred."""
    with pytest.raises(RecordError, match="has a decimal point"):
        parse_exact_number(value, "/x", 2)


def test_a_number_beyond_the_bounds_is_refused() -> None:
    """It has no exact form."""
    with pytest.raises(RecordError, match="more than 1,001 digits"):
        parse_exact_number("9" * 1_002, "/x", 0)


# ---- paths


@given(VALUES)
def test_a_path_finds_every_value_that_it_can_name(document: Any) -> None:
    """Names with a dot are found only as a whole, at the top; a path with a slash first is a JSON pointer."""
    for pointer, value in everything_in(document):
        names = [name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:]]
        path = ".".join(names)
        is_hidden = isinstance(document, dict) and path in document and len(names) > 1
        if names and not any("." in name for name in names) and not is_hidden and not path.startswith("/"):
            assert value_at_path_or_missing(document, path) is value


@given(document=VALUES, path=st.text("ab.0", max_size=6))
def test_any_path_gives_a_text_or_null(document: Any, path: str) -> None:
    """A record of another form is never an exception; text is as it is, other values are JSON of the same value."""
    value = value_at_path_or_missing(document, path)
    text = json_value_as_column_text(value)
    if value is MISSING or value is None:
        assert text is None
    elif isinstance(value, str):
        assert text == value
    else:
        assert exact_json.loads(text or "") == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (MISSING, None),
        ("", ""),
        ("0017", "0017"),
        (17, "17"),
        (Decimal("1.50"), "1.5"),
        (Decimal("17.0"), "17"),
        (Decimal("1E+3"), "1000"),
        (True, "true"),
        (False, "false"),
        ({"b": 1, "a": [Decimal("0.10")]}, '{"a":[0.1],"b":1}'),
    ],
)
def test_each_value_has_one_text(value: Any, text: str | None) -> None:
    """Another notation of the same number is no change of a record."""
    assert json_value_as_column_text(value) == text


# ---- lists as rows


@given(item=VALUES, path=st.text("ab.0", min_size=1, max_size=4))
def test_a_list_becomes_its_elements_and_nothing_else_is_lost(item: Any, path: str) -> None:
    """Each row is the object with one element at the place of the list; the object itself does not change."""
    before, elements = exact_json.dumps(item), value_at_path_or_missing(item, path)
    rows = list(explode_list_with_pointers(item, path))
    assert exact_json.dumps(item) == before
    if elements is None:
        assert not rows
    elif not isinstance(elements, list):
        assert rows == [(item, None)]
    else:
        assert [value_at_pointer_refusing_wrong_containers(item, pointer or "?") for _, pointer in rows] == elements
        assert [value_at_path_or_missing(row, path) for row, _ in rows] == elements


def test_an_empty_list_that_is_cut_is_no_empty_list() -> None:
    """The record stays, without a key of an element, so that it is rejected."""
    item = {"id": 1, "lines": {"nodes": [], "totalCount": 2}}
    assert list(explode_list_with_pointers(item, "lines.nodes")) == [(item, None)]


def test_a_row_has_what_surrounds_its_list() -> None:
    """Also where the list is deep inside, and in another list."""
    item = {"id": 1, "parts": [{"x": 2, "lines": [{"sku": "a"}, {"sku": "b"}]}, 3]}
    assert list(explode_list_with_pointers(item, "parts.0.lines")) == [
        ({"id": 1, "parts": [{"x": 2, "lines": {"sku": "a"}}, 3]}, "/parts/0/lines/0"),
        ({"id": 1, "parts": [{"x": 2, "lines": {"sku": "b"}}, 3]}, "/parts/0/lines/1"),
    ]


@pytest.mark.parametrize(
    ("document", "path", "expected"),
    [
        ({}, "page.after.skip", {"page": {"after": {"skip": 1}}}),
        (None, "skip", {"skip": 1}),
        ({"page": None}, "page.skip", {"page": {"skip": 1}}),
        ({"page.skip": 0, "page": {}}, "page.skip", {"page.skip": 1, "page": {}}),
        ({"args": [0, {"a": 2}]}, "/args/1/b~1c", {"args": [0, {"a": 2, "b/c": 1}]}),
    ],
)
def test_a_value_is_put_at_a_path(document: Any, path: str, expected: Any) -> None:
    """Objects around it are made if they are missing, and what is there is kept."""
    before = exact_json.dumps(document)
    assert copy_with_value_at_path(document, path, 1) == expected
    assert exact_json.dumps(document) == before


@pytest.mark.parametrize(("document", "path"), [({"a": "text"}, "a.b"), ([], "/0"), ({"a": [1]}, "a.1.b"), (5, "a")])
def test_a_value_is_not_put_where_nothing_has_members(document: Any, path: str) -> None:
    """A text, a number and a list without that element have no place for it."""
    with pytest.raises(ValueError, match="without"):
        copy_with_value_at_path(document, path, 1)
