"""YAML of any kind gives values or one finding with its place."""

from __future__ import annotations

from collections import ChainMap
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.errors import ConfigError
from crossdock.values import yaml_reader
from crossdock.values.yaml_reader import MAX_DEPTH, MAX_KEY, MAX_TEXT, MAX_VALUES, parse_yaml_mapping

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 9)}]}}\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.nightly(
    but=[
        "billion laughs",
        "long text",
        "500 lists",
        "NUL",
        "lone surrogate",
        "5,000 digits",
        "base 60",
        "not a number",
        "no timestamp",
        "billion merges",
        "key twice beside a merge",
        "unset variable",
        "merge of itself",
    ]
)
@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        pytest.param(LAUGHS, "c:1:", "including what aliases repeat", id="billion laughs"),
        pytest.param(f"a: &a {'x' * 100_000}\nb: [{'*a, ' * 100}]", "c:1:4", "including what aliases", id="long text"),
        pytest.param("a: &a [*a]", "c:1:4", "is an alias inside of what it repeats", id="alias in itself"),
        pytest.param("a: &a {k: [*a, *a]}", "c:1:", "is an alias inside", id="alias in itself, twice"),
        pytest.param("a: &a\n  ? *a\n  : 1", "c:1:4", "a key must be text", id="alias in itself as a key"),
        pytest.param("a: " + "[" * 500 + "]" * 500, "c:1:53", "deeper than 50 levels", id="500 lists"),
        pytest.param("a: " + "{b: " * 500, "c:1:", "deeper than 50 levels", id="500 sections"),
        pytest.param("- " * 500, "c:1:101", "deeper than 50 levels", id="500 dashes"),
        pytest.param("a: [" + "x," * MAX_VALUES + "]", "c:1:", "holds more than 100,000", id="many values"),
        pytest.param("x: 1\na: b\0c", "c:2:5", "U+0000 is not allowed", id="NUL"),
        pytest.param("x: 1\r\na: \x07", "c:2:4", "U+0007 is not allowed", id="control character"),
        pytest.param('a: "b\\0c"', "c:1:4", "contains a NUL", id="NUL as an escape"),
        pytest.param('a: {"b\\0c": 1}', "c:1:5", "contains a NUL", id="NUL in a key"),
        pytest.param('a: "\\ud800"', "c:1:4", "surrogate", id="lone surrogate"),
        pytest.param('a: "\\udc80"', "c:1:4", "surrogate", id="lone low surrogate"),
        pytest.param('a: "\\UFFFFFFFF"', "c:1:", "a number is too large", id="no character"),
        pytest.param('a: "\\U00110000"', "c:1:", "a number is too large", id="beyond the last character"),
        pytest.param("%YAML " + "1" * 5_000 + ".1\n---\na: 1", "c:1:", "a number is too large", id="huge version"),
        pytest.param("a: " + "1" * 5_000, "c:1:4", "too long for a number", id="5,000 digits"),
        pytest.param("a: " + "1" * 19, "c:1:4", "at most 18 digits", id="19 digits"),
        pytest.param("? " + "1" * 5_000 + "\n: 1", "c:1:3", "a key has at most", id="5,000 digits as a key"),
        pytest.param("a: 0x" + "f" * 30, "c:1:4", "at most 18 digits", id="hexadecimal"),
        pytest.param("a: 1" + ":1" * 10_000, "c:1:4", "too long for a number", id="base 60"),
        pytest.param("a: 1.0e+999999999", "c:1:4", "at most 18 digits before", id="huge exponent"),
        pytest.param("a: 1.0e-999999999", "c:1:4", "40 after", id="tiny exponent"),
        pytest.param("a: 1.0e+99999999999999999999", "c:1:4", "finite digits", id="exponent of no decimal"),
        pytest.param("x: 1\na: .nan", "c:2:4", "finite digits", id="not a number"),
        pytest.param("a: -.inf", "c:1:4", "finite digits", id="infinity"),
        pytest.param("a: !!int x", "c:1:4", "looks like a date or a number", id="no int"),
        pytest.param("a: !!int ''", "c:1:4", "looks like a date or a number", id="empty int"),
        pytest.param("a: !!bool x", "c:1:4", "looks like a date or a number", id="no bool"),
        pytest.param("a: !!timestamp x", "c:1:4", "looks like a date or a number", id="no timestamp"),
        pytest.param("a: 2026-01-01T00:00:00+99:00", "c:1:4", "looks like a date", id="no offset"),
        pytest.param("a: !!binary AA==", "c:1:4", "tags are not supported", id="bytes"),
        pytest.param("a: !!set {b, c}", "c:1:4", "tags are not supported", id="set"),
        pytest.param("a: !!str [b]", "c:1:4", "tags are not supported", id="tag of another kind"),
        pytest.param("a:\n  <<: b", "c:2:7", "takes a section or a list of sections", id="merge of a text"),
        pytest.param("a:\n  <<: [{b: 1}, 2]", "c:2:16", "takes a section", id="merge of a number"),
        pytest.param("a:\n  <<: {b: 1}\n  <<: {c: 1}", "c:3:3", "'<<' is repeated", id="two merge keys"),
        pytest.param("a:\n  b: 1\n  <<: {c: 1}\n  b: 2", "c:4:3", "'b' is repeated", id="key twice beside a merge"),
        pytest.param("a: &a\n  <<: *a", "c:1:4", "is an alias inside", id="merge of itself"),
        pytest.param("a: &a {<<: [*a, *a]}", "c:1:", "is an alias inside", id="merge of itself, twice"),
        pytest.param(MERGES, "c:1:", "including what aliases repeat", id="billion merges"),
        pytest.param("a: ${NONE}", "c:1:4", "the environment variable NONE is not set", id="unset variable"),
        pytest.param("a:\n- 'x ${'", "c:2:3", "write $$ for a dollar", id="no variable"),
        pytest.param("a: ${BYTES}", "c:1:4", "surrogate", id="variable that is not UTF-8"),
        pytest.param("a:\n" + "- ${LONG}\n" * 50, "c:4", "characters, including", id="long variable, repeated"),
        pytest.param("? [a]\n: b", "c:1:3", "a key must be text", id="list as a key"),
        pytest.param(f"? {'k' * 1_000}\n: b", "c:1:3", f"at most {MAX_KEY} characters", id="long key"),
    ],
)
def test_what_is_no_config_is_refused_at_its_place(text: str, place: str, message: str) -> None:
    """Bombs, broken characters and impossible scalars end in one finding with line and column, in few words."""
    with pytest.raises(ConfigError) as refused:
        parse_yaml_mapping(text, "c", {"BYTES": "\udc80", "LONG": "x" * 100_000})
    assert str(refused.value.where).startswith(place)
    assert message in refused.value.message
    assert len(str(refused.value)) < 300


def test_keys_and_values_are_counted_while_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A config with more of them than the bound ends where it is passed; the case above has the real bound."""
    monkeypatch.setattr(yaml_reader, "MAX_VALUES", 200)
    parse_yaml_mapping("a: [" + "x," * 190 + "]", "c", {})
    with pytest.raises(ConfigError, match="holds more than 200 keys and values"):
        parse_yaml_mapping("a: [" + "x," * 200 + "]", "c", {})


def test_what_people_write_is_read() -> None:
    """Aliases, nesting and exact numbers within the bounds mean what they mean in YAML."""
    text = "a: &a {k: [0.10, 1_000, yes, ~, 2026-01-02]}\nb: *a\nc: " + "[" * (MAX_DEPTH - 2) + "]" * (MAX_DEPTH - 2)
    content = parse_yaml_mapping(text, "c", {})
    assert content.data["a"] == content.data["b"]
    assert content.data["a"]["k"][0] == Decimal("0.10")
    assert content.data["a"]["k"][1:4] == [1_000, True, None]
    assert content.places["b", "k", 0] == ("c", 1, 12)
    assert content.plain["b", "k", 2] == "yes"
    assert len(parse_yaml_mapping(f"a: {'x' * (MAX_TEXT - 10)}", "c", {}).data["a"]) == MAX_TEXT - 10


def test_merge_keys_add_what_a_section_does_not_have() -> None:
    """Own keys win, then earlier sections; an error in a merged section points to where it is written."""
    text = "x-a: &a {k: 1, l: 2}\nx-b: &b\n  l: 3\n  m: 4\nc:\n  <<: [*a, *b]\n  k: 0\nd: {k: 9, <<: *a}"
    content = parse_yaml_mapping(text, "c", {})
    assert content.data["c"] == {"k": 0, "l": 2, "m": 4}
    assert list(content.data["c"]) == ["k", "l", "m"]
    assert content.data["d"] == {"k": 9, "l": 2}
    assert content.places["c", "m"] == ("c", 4, 3)
    assert content.places["c", "k"] == ("c", 7, 3)


_MEMBERS = st.dictionaries(st.sampled_from("klmn"), st.integers(0, 9), max_size=3)


@given(st.lists(st.tuples(_MEMBERS, st.lists(st.integers(0, 9), max_size=3), st.booleans()), min_size=1, max_size=5))
def test_sections_may_merge_sections_that_merge_others(sections: list[tuple[dict[str, int], list[int], bool]]) -> None:
    """Own keys win at each level, wherever the merge key stands. PyYAML 6.0.4 forgets own keys of merged sections."""
    lines, wanted = [], dict[str, dict[str, int]]()
    for number, (members, before, is_first) in enumerate(sections):
        merge = [f"<<: [{', '.join(f'*s{each % number}' for each in before)}]"] if number and before else []
        own = [f"{key}: {value}" for key, value in members.items()]
        parts = [*merge, *own] if is_first else [*own, *merge]
        lines.append(f"s{number}: &s{number} {{{', '.join(parts)}}}")
        merged = [wanted[f"s{each % number}"] for each in before if number]
        wanted[f"s{number}"] = dict(ChainMap(members, *merged))
    assert parse_yaml_mapping("\n".join(lines), "c", {}).data == wanted


def test_texts_may_refer_to_variables() -> None:
    """Keys, numbers and the structure are never made by a variable, and an alias repeats the replaced text."""
    text = "a: &a '${X}'\nb: [*a, \"$$X\"]\n${X}: 1\nc: |\n  ${X}\nd: env:X"
    content = parse_yaml_mapping(text, "c", {"X": "{k: 1}"})
    assert content.data == {"a": "{k: 1}", "b": ["{k: 1}", "$X"], "${X}": 1, "c": "{k: 1}\n", "d": "env:X"}


def test_texts_that_yaml_gives_types_of_their_own() -> None:
    """The key null is text, and so are = and << as values."""
    assert parse_yaml_mapping('a: {null: "NULL", b: =, c: <<}', "c", {}).data == {
        "a": {"null": "NULL", "b": "=", "c": "<<"}
    }


@pytest.mark.parametrize("text", ["a: {b: ${X}}", "a: [https://h:${X}/]", "- [x, ${X}"])
def test_a_variable_in_braces_needs_quotes(text: str) -> None:
    """YAML takes its brace for a section, so the hint says what to write."""
    with pytest.raises(ConfigError, match=r"quote a text with \$\{NAME\} inside of"):
        parse_yaml_mapping(text, "c", {"X": "1"})


@pytest.mark.parametrize("key", ["on", "NO", "null", "~", "0017", "1.50", "2026-01-02", "12:30", "0x1F"])
def test_a_key_is_text_as_it_is_written(key: str) -> None:
    """YAML 1.1 reads such a scalar as something else; as the name of a column or setting it never is."""
    assert parse_yaml_mapping(f"a: {{{key}: 1}}" if ":" not in key else f"a:\n  {key}: 1", "c", {}).data == {
        "a": {key: 1}
    }


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("a:\n\tb: 1\n", "indent with spaces"),
        ("a: *.txt\n", "quote a text that begins with *"),
        ("a: %Y.txt\n", "quote a text that begins with this character"),
        ("a: C: x\n", "quote a text that contains ': ', or correct the indentation"),
    ],
)
def test_what_is_often_wrong_is_advised(text: str, advice: str) -> None:
    """PyYAML's own words say what its scanner expected, and not what to write."""
    with pytest.raises(ConfigError) as refused:
        yaml_reader.parse_yaml_mapping(text, "c.yaml", {})
    assert advice in (refused.value.hint or "")
