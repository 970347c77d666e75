"""Several YAML files as one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from crossdock.values.config_file import merge_config_contents
from crossdock.values.yaml_reader import Content, Place, parse_yaml_mapping

KEYS = st.sampled_from(["a", "b", "c"])
SECTIONS = st.dictionaries(
    KEYS,
    st.recursive(
        st.integers(-9, 9) | st.text("ab", max_size=2) | st.none() | st.lists(st.integers(0, 9), max_size=2),
        lambda inner: st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=6,
    ),
)


def content(data: dict[str, Any], name: str) -> Content:
    return parse_yaml_mapping(yaml.safe_dump(data) if data else "{}", name, {})


def paths(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    yield place, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from paths(each, (*place, key))


def at(data: Any, place: Place) -> Any:
    for part in place:
        data = data[part]
    return data


@given(SECTIONS, SECTIONS)
def test_every_value_comes_from_the_file_of_its_origin(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Values of the second file replace those of the first, sections are merged, and each origin names its file."""
    files = {"1": first, "2": second}
    before = content(first, "1")
    whole = merge_config_contents(before, content(second, "2"))
    assert before.data == first
    assert whole.places.keys() == {place for place, _ in paths(whole.data)}
    for place, value in paths(whole.data):
        name = whole.places[place][0]
        if not isinstance(value, dict):
            assert at(files[name], place) == value
    for place, value in paths(second):
        if not isinstance(value, dict):
            assert at(whole.data, place) == value
    assert {place for place, value in paths(whole.data) if isinstance(value, int | None)} == whole.plain.keys()


@given(SECTIONS)
def test_a_file_merged_with_itself_is_the_same(data: dict[str, Any]) -> None:
    """Nothing is doubled, lists included."""
    assert merge_config_contents(content(data, "1"), content(data, "1")) == content(data, "1")
