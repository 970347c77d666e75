"""JSON in and out, exact."""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.values import exact_json

exact = st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**15), max_value=10**15)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | exact | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_what_is_written_is_read_back_equal(value: Any) -> None:
    """Any JSON value comes back equal, whichever way it is read, and its bytes are the same the second time."""
    body = exact_json.dumps(value)
    assert exact_json.loads(body) == value
    assert repr(exact_json.loads_trusted_canonical(body.decode())) == repr(exact_json.loads(body))
    assert exact_json.dumps(exact_json.loads(body)) == body


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(Decimal("6.0"), "6", id="no trailing zeros"),
        pytest.param(Decimal("6E0"), "6", id="no exponent"),
        pytest.param(Decimal("1E+3"), "1000", id="exponent spelled out"),
        pytest.param(Decimal("-0.00"), "0", id="no minus zero"),
        pytest.param(Decimal("0.10"), "0.1", id="fraction"),
        pytest.param(Decimal("123456789012345.6789"), "123456789012345.6789", id="all digits"),
    ],
)
def test_one_number_has_one_text(value: Decimal, text: str) -> None:
    """Equal decimals have equal bytes, so they have equal fingerprints."""
    assert exact_json.dumps(value).decode() == text


def test_keys_are_sorted_and_nothing_is_escaped_in_vain() -> None:
    """One object has one text."""
    assert exact_json.dumps({"b": 1, "a": "é\u2028"}) == '{"a":"é\u2028","b":1}'.encode()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"a":1,"a":2}', id="member twice"),
        pytest.param(b"[NaN]", id="NaN"),
        pytest.param(b"[-Infinity]", id="infinity"),
        pytest.param(b"\xff", id="no UTF-8"),
        pytest.param(b'"\\ud800"', id="half a character"),
        pytest.param(b"[" * 100_000, id="too deep"),
        pytest.param(b"[1e99999999999999999999]", id="exponent beyond all"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    """Whatever another parser might let pass is a ValueError."""
    with pytest.raises(ValueError):
        exact_json.loads(body)


@pytest.mark.parametrize("value", [1.5, {1, 2}, object(), Decimal("NaN"), datetime(2026, 1, 1)])  # noqa: DTZ001
def test_what_has_no_exact_form_is_not_written(value: object) -> None:
    """A float can never slip onto the wire."""
    with pytest.raises((TypeError, ValueError)):
        exact_json.dumps(value)


def test_times_are_utc_and_days_are_plain() -> None:
    """An instant is written in UTC whatever zone it came in."""
    east = datetime(2026, 3, 29, 3, 0, tzinfo=timezone(timedelta(hours=2)))
    assert exact_json.dumps([east, date(2026, 3, 29), datetime(2026, 1, 1, tzinfo=UTC)]) == (
        b'["2026-03-29T01:00:00Z","2026-03-29","2026-01-01T00:00:00Z"]'
    )


PIECES = (
    *"{}[],:",
    "{",
    "}",
    ",",
    ":",
    '"a"',
    '"b"',
    '"a":1',
    '{"a":',
    '"\\\\"',
    '"\\""',
    r'"\u0061"',
    r'"\u0022"',
    '"é"',
    r'"\ud83d\ude00"',
    r'"\ud800"',
    "1",
    "-0",
    "0.50",
    "1E2",
    "1e1001",
    "9" * 19,
    "9" * 1002,
    "1." + "0" * 1001,
    "01",
    "NaN",
    "true",
    "null",
    " ",
    "\t",
    "\r",
    "\x0c",
    "\x7f",
    "[" * 40,
    "]" * 40,
    '"[{,',
)
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
documents = texts | values.map(lambda value: exact_json.dumps(value).decode())


@given(st.lists(st.tuples(texts, documents), max_size=4))
def test_a_document_is_read_alike_by_all_readers(members: list[tuple[str, str]]) -> None:
    """The quick readers give what the slow one gives; where it refuses a document, so do they."""
    texts = ["{" + ",".join(f'"k{len(name)}":{value}' for name, value in members) + "}", *(text for text, _ in members)]
    for text in texts:
        slow = finding(lambda text=text: exact_json._READER.decode(text))
        quick = finding(lambda text=text: exact_json.loads(text))
        if quick is not None:
            assert repr(quick) == repr(slow)
        elif slow is not None:  # limits that the slow reader has beside it
            assert "\\u" in text or text.count("[") > exact_json.MAX_DEPTH
        together = exact_json.canonicalize_json_object_lines([text.encode(), text.encode() + b"\r"])
        if together is not None:
            assert together == [exact_json.dumps(quick).decode()] * 2


def finding(read: Any) -> Any:
    try:
        return read()
    except (ValueError, ArithmeticError, RecursionError):
        return None


@pytest.mark.parametrize(
    "line",
    [
        '{"a":1,"a":2}',
        '{"a":{"b":1,"\\u0062":{"c":[]}}}',
        '{"a":"\\\\","a":"\\""}',
        '{"a":1}{"b":2}',
        '[{"a":1}]',
        '{"a":NaN}',
        '{"a":"\\ud800"}',
        '{"a":1e1001}',
        f'{{"a":{"9" * 1002}}}',
        f'{{"a":{"[" * 64}{"]" * 64}}}',
        "1",
        "",
        " ",
        '{"a":',
    ],
)
def test_lines_that_are_no_objects_are_left_to_the_slow_reader(line: str) -> None:
    """One of them leaves all to it, and what it accepts is then read by it."""
    assert exact_json.canonicalize_json_object_lines([b'{"a":1}', line.encode()]) is None
    assert exact_json.canonicalize_json_object_lines([b'{"b":1.50,"a":"\\u00e9\\""}']) == ['{"a":"é\\"","b":1.5}']


@pytest.mark.parametrize("name", [1, None, b"a", 1.5])
def test_a_name_is_a_text(name: object) -> None:
    """No other key becomes the name of a member."""
    with pytest.raises(TypeError):
        exact_json.dumps({"a": [{name: 1}]})


class Count(IntEnum):
    ONE = 1


class Price(Decimal):
    __slots__ = ()


class Name(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "another"


def test_subclasses_are_written_as_what_they_are() -> None:
    """A text, a number or an object of a type of its own is written by its value."""
    value = OrderedDict(b=Name("x"), a=[Count.ONE, Price("1.50")])
    assert exact_json.dumps(value | {Name("c"): True}) == b'{"a":[1,1.5],"b":"x","c":true}'


BEYOND = [
    pytest.param("1e1001", id="exponent"),
    pytest.param("1E-1001", id="negative exponent"),
    pytest.param("-1e400000000", id="an exponent of gigabytes"),
    pytest.param("1e-400000000", id="a fraction of gigabytes"),
    pytest.param("0e400000000", id="nothing, with an exponent"),
    pytest.param("1e99999999999999999999", id="an exponent beyond Decimal"),
    pytest.param("1." + "0" * 1001, id="1,002 digits with a point"),
    pytest.param("9" * 1002, id="1,002 digits"),
    pytest.param("-" + "9" * 1002, id="1,002 digits after a minus"),
    pytest.param("9" * 5000, id="more digits than Python takes"),
    pytest.param("9" * 8_000_000, id="digits of a whole answer"),
]


@pytest.mark.parametrize("number", BEYOND)
def test_a_number_beyond_the_bounds_is_one_finding(number: str) -> None:
    """An exponent beyond 1,000 and more than 1,001 digits are refused in the same words, wherever the number stands."""
    with pytest.raises(ValueError, match="^a number has an exponent beyond 1,000 or more than 1,001 digits$"):
        exact_json.loads(f'{{"a":[1,{number}]}}')


@pytest.mark.parametrize("number", ["1e1001", "1e400000000", "-1e-400000000", "1." + "0" * 1001])
def test_our_own_texts_have_the_same_bounds(number: str) -> None:
    """A number of a changed state is refused before it is expanded."""
    with pytest.raises(ValueError, match="a number has an exponent beyond"):
        exact_json.loads_trusted_canonical(number)


@pytest.mark.parametrize(
    "number",
    [
        Decimal("1e400000000"),
        Decimal("-1e-400000000"),
        Decimal("0e400000000"),
        Decimal("1." + "0" * 1001),
        10**1001,
        10**5000,
    ],
    ids=["large", "small", "nothing", "many zeros", "many digits", "more digits than Python converts"],
)
def test_a_number_that_could_not_be_read_is_not_written(number: Decimal | int) -> None:
    """What mapping code makes has the bounds of what is read."""
    with pytest.raises(ValueError, match="a number has an exponent beyond"):
        exact_json.dumps({"a": number})


@pytest.mark.parametrize("number", ["1e1000", "-1E-1000", "9" * 1001, "-" + "9" * 1001, "0." + "9" * 1000])
def test_a_number_at_the_bounds_comes_back(number: str) -> None:
    """An exponent of 1,000 and 1,001 digits are read and written without a change."""
    value = exact_json.loads(number)
    assert value == Decimal(number)
    assert exact_json.loads(exact_json.dumps(value)) == value


def nested(levels: int) -> Any:
    value: Any = 0
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return value


def test_depth_has_one_bound_for_reading_and_writing() -> None:
    """Sixty-four levels come back, one more is refused either way, and so are levels beyond any stack."""
    assert exact_json.loads(exact_json.dumps(nested(64))) == nested(64)
    too_deep = b"[" * 65 + b"]" * 65
    for body in (
        too_deep,
        b'{"a":' * 65 + b"0" + b"}" * 65,
        b'[{"a":' * 50_000,
        b"[0," + b"[" * 200 + b"]" * 200 + b"]",
    ):
        with pytest.raises(ValueError, match="nested more than 64 levels deep|Expecting value"):
            exact_json.loads(body)
    for value in (nested(65), nested(100_000), (nested(64),)):
        with pytest.raises(ValueError, match="nested more than 64 levels deep"):
            exact_json.dumps(value)
    with pytest.raises(ValueError, match="nested more than 64 levels deep"):
        exact_json.loads_trusted_canonical("[" * 100_000)


@pytest.mark.parametrize("bound", [2_000, pytest.param(exact_json.MAX_VALUES, marks=pytest.mark.nightly)])
def test_the_number_of_values_has_one_bound_for_reading_and_writing(
    monkeypatch: pytest.MonkeyPatch, bound: int
) -> None:
    """A million values come back, more are refused either way: they would take a hundred times their text."""
    monkeypatch.setattr(exact_json, "MAX_VALUES", bound)
    most = [0] * (exact_json.MAX_VALUES - 1)
    assert exact_json.loads(exact_json.dumps(most)) == most
    with pytest.raises(ValueError, match="^more than 1,000,000 values$"):
        exact_json.dumps([*most, 0, 0])
    with pytest.raises(ValueError, match="^more than 1,000,000 values$"):
        exact_json.loads(b"[" + b"[]," * (bound // 2 + 1) + b"0]")
    text = {"a": 'a,"[{\\' * exact_json.MAX_VALUES, "b": ["x"] * 9}  # what is in a text is no value
    assert exact_json.loads(exact_json.dumps(text)) == text


def test_brackets_in_a_text_are_no_levels() -> None:
    """Only objects and arrays count."""
    assert exact_json.loads(exact_json.dumps(["[" * 1000, "{" * 1000])) == ["[" * 1000, "{" * 1000]


def test_a_repeated_member_is_found_in_linear_time() -> None:
    """An object of 100,000 members, of which the last is repeated, would take days if each were counted."""
    members = ",".join(f'"{number}":0' for number in range(100_000))
    with pytest.raises(ValueError, match="^an object repeats a member name$"):
        exact_json.loads(f'{{{members},"99999":0}}')


@pytest.mark.parametrize("text", [r"\ud800", r"\uDC00", r"\\\ud83d", r"\ud83d\u0041", r"\ude00\ud83d", r"a\ud83dx"])
def test_half_a_character_is_found(text: str) -> None:
    """An escape that UTF-8 cannot carry is refused, be it behind an escaped backslash."""
    with pytest.raises(ValueError, match="a lone surrogate"):
        exact_json.loads(f'["x","{text}"]')


@pytest.mark.parametrize(
    ("text", "value"), [(r"\ud83d\ude00", "\U0001f600"), (r"\\ud83d", r"\ud83d"), (r"\uD83D\uDE00\n", "\U0001f600\n")]
)
def test_whole_characters_pass(text: str, value: str) -> None:
    """Two halves that belong together, and what only looks like a half, are text."""
    assert exact_json.loads(f'"{text}"') == value


@pytest.mark.parametrize(
    "body", [b'{"canary-1":1,"canary-1":2}', b'{"canary-1":canary}', b'"canary-1', b"canary-1", b'["canary-1",NaN]']
)
def test_no_finding_quotes_the_text(body: bytes) -> None:
    """What is said of broken JSON goes into errors and logs, and holds nothing of it."""
    with pytest.raises(ValueError) as refused:
        exact_json.loads(body)
    assert "canary" not in str(refused.value)
