"""The JSON Schema of a config file."""

from __future__ import annotations

from typing import Any, Literal

import jsonschema_rs
import pytest

from crossdock.config.project.config_schema import DIALECT, config_schema
from crossdock.config.stream_configuration import StreamConfig
from crossdock.connector import Settings

PLATFORM = {"base_url": "https://h", "tenant": "acme", "auth": {"kind": "api_key", "token": "env:KEY"}}


class Declared(Settings):
    """One shop."""

    kind: Literal["declared"]
    page_size: int = 250
    """Records per page."""
    stream: StreamConfig


SCHEMA = config_schema({"declared": Declared})
STREAM = {"mode": "append", "key": ["K"], "resource": "customer", "map": {"name": "NAME"}}


def errors(stream: dict[str, Any], **settings: object) -> list[str]:
    config = {"platform": PLATFORM, "connections": {"w": {"kind": "declared", "stream": stream, **settings}}}
    found = jsonschema_rs.Draft202012Validator(SCHEMA).iter_errors(config)
    return [".".join(map(str, error.instance_path)) for error in found]


def test_it_is_a_schema_without_unused_parts() -> None:
    """A validator accepts it, and every definition is used."""
    jsonschema_rs.meta.validate(SCHEMA)
    assert SCHEMA["$schema"] == DIALECT
    assert all(f"#/$defs/{name}" in str(SCHEMA) for name in SCHEMA["$defs"])


def test_docstrings_become_descriptions() -> None:
    """An editor shows the docstring below a setting, and no generated title."""
    page_size = SCHEMA["$defs"]["Declared"]["properties"]["page_size"]
    assert page_size["description"] == "Records per page."
    assert "title" not in page_size


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({}, None),
        ({"map": {"name": "NAME", "nmae": "X"}}, "connections.w.stream.map"),
        ({"map": {"email": "MAIL"}}, "connections.w.stream.map"),
        ({"resource": "client"}, "connections.w.stream.resource"),
    ],
)
def test_the_map_fits_the_resource(changes: dict[str, Any], place: str | None) -> None:
    """Members that the resource does not have, and missing ones, are errors where they are."""
    found = errors(STREAM | changes)
    assert bool(found) is (place is not None)
    assert all(path.startswith(place or "") for path in found)


EMPTY = {"field": "A", "empty": True}


@pytest.mark.parametrize(
    ("form", "valid"),
    [
        ({"when": EMPTY, "then": True, "otherwise": False}, True),
        ({"when": EMPTY, "then": "A", "otherwise": 1.5}, True),
        ({"when": EMPTY, "then": {"const": "A"}, "otherwise": {"when": EMPTY, "then": 1}}, True),
        ({"when": {"all": [{"not": EMPTY}, {"any": [EMPTY]}]}, "then": {"object": {"city": "A"}}}, True),
        ({"from": "A", "table": {"a": "x", "b": True, "c": 1, "d": 1.5}, "otherwise": 0, "default": "y"}, True),
        ({"from": "A", "as": "decimal", "thousands": "'", "sign": "parentheses", "round": "half_up"}, True),
        ({"when": EMPTY}, False),
        ({"when": EMPTY, "then": {"froom": "A"}}, False),
        ({"when": {"field": "A", "contains": "x"}, "then": "A"}, False),
        ({"when": {"equals": "x"}, "then": "A"}, False),
        ({"when": {"field": "A", "equals": "x", "empty": True}, "then": "A"}, False),
        ({"when": {"not": EMPTY, "any": [EMPTY]}, "then": "A"}, False),
        ({"from": "A", "table": {}}, False),
        ({"from": "A", "sign": "behind"}, False),
    ],
)
def test_an_editor_checks_every_form(form: dict[str, Any], valid: bool) -> None:
    """The schema and the loader agree."""
    stream = STREAM | {"map": {"name": form}}
    assert (errors(stream) == []) is valid


@pytest.mark.parametrize(
    ("order_by", "valid"),
    [(["A"], True), (["A", {"column": "B", "as": "instant"}], True), ([{"as": "instant"}], False), ([], False)],
)
def test_an_editor_checks_order_by(order_by: list[Any], valid: bool) -> None:
    """Names and declared columns."""
    assert (errors(STREAM | {"order_by": order_by}) == []) is valid


def test_only_given_kinds_are_valid() -> None:
    """A connection needs one of the kinds."""
    assert SCHEMA["properties"]["connections"]["additionalProperties"]["properties"]["kind"] == {"enum": ["declared"]}
    assert errors(STREAM, kind="other") == ["connections.w.kind"]


def test_every_section_may_have_ignored_keys() -> None:
    """Keys that begin with x- are valid where the loader ignores them, with any value."""
    assert errors(STREAM | {"x-a": 1}, **{"x-b": {"c": []}}) == []
    assert errors(STREAM | {"y-a": 1}) == ["connections.w.stream"]


@pytest.mark.parametrize(
    ("constant", "is_valid"), [("EUR", True), (True, True), (17, True), (0.5, True), (None, False), ([1], False)]
)
def test_a_constant_has_a_type(constant: object, is_valid: bool) -> None:
    """A constant is text, a boolean or a number."""
    found = errors(STREAM | {"map": {"name": {"const": constant}}})
    assert bool(found) is not is_valid


def test_notify_has_a_schema() -> None:
    """An editor completes and checks who is notified."""
    config = {"platform": PLATFORM, "connections": {}, "notify": {"when": ["never"], "webhook": {"url": "x"}}}
    found = jsonschema_rs.Draft202012Validator(SCHEMA).iter_errors(config)
    places = {".".join(map(str, error.instance_path)) for error in found}
    assert any(place.startswith("notify") for place in places)
