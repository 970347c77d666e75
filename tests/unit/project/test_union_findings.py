"""A finding about a value with several forms is told in words of the config, for each such key of every section."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel, Field

from crossdock.config.project import connections_and_bound_streams
from crossdock.config.project.project import ConfigFile
from crossdock.config.stream_configuration import StreamOverrides, settings_model_with_streams_key
from crossdock.errors import FindingsError
from crossdock.values import yaml_reader
from crossdock.values.config_base_types import ConfigModel
from crossdock.values.config_file import Document

Model = type[BaseModel]
WRONG = (
    "17",
    "0.5",
    "true",
    "~",
    '""',
    "odd",
    "[]",
    "[1]",
    "[[a]]",
    "[{b: c}]",
    "{}",
    "{b: c}",
    "{a: {b: [c]}}",
    "{kind: x}",
)
WORDS_OF_PYDANTIC = re.compile(
    r"literal\[|function-|tagged-union|is_instance|dict\[|list\[|tuple\[|nullable|constrained|json-or|Input |pydantic"
)


def models_in(annotation: Any) -> Iterator[Model]:
    """The models of an annotation; those that it names as text are reached by another way."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in annotation if isinstance(annotation, list | tuple) else get_args(annotation):
        yield from models_in(inner)


def every_model() -> dict[str, Model]:
    """Every model of a config file, with the settings of all installed connectors."""
    found: dict[str, Model] = {}
    kinds = [
        settings_model_with_streams_key(connections_and_bound_streams.load_connector(name).settings)
        for name in connections_and_bound_streams.installed_connectors()
    ]
    waiting: list[Model] = [ConfigFile, StreamOverrides, *kinds]
    while waiting:
        model = waiting.pop()
        name = f"{model.__module__}.{model.__name__}"
        if name not in found:
            found[name] = model
            waiting += [inner for field in model.model_fields.values() for inner in models_in(field.annotation)]
    return found


def unions_in(annotation: Any) -> Iterator[tuple[Any, ...]]:
    """The choices of each union in *annotation*; a value that may be left out is none."""
    if get_origin(annotation) in {Union, UnionType}:
        choices = tuple(each for each in get_args(annotation) if each is not type(None))
        if len(choices) > 1:
            yield choices
    for inner in get_args(annotation):
        yield from unions_in(inner)


@pytest.fixture(scope="module")
def models() -> dict[str, Model]:
    return every_model()


def keys_with_forms(models: dict[str, Model]) -> Iterator[tuple[Model, str, list[Model]]]:
    """Each key that takes several forms, with those of them that are sections."""
    for model in models.values():
        for name, field in model.model_fields.items():
            unions = list(unions_in(field.annotation))
            if unions:
                yield model, field.alias or name, list(models_in(unions))


def findings(model: Model, key: str, value: str) -> list[str]:
    """What is wrong with *key*, where only this one is given."""
    content = yaml_reader.parse_yaml_mapping(f"{json.dumps(key)}: {value}\n", "c.yaml", {})
    try:
        Document(Path("c.yaml"), Path("/nowhere"), content).validated_as_model(model, content.data)
    except FindingsError as refused:
        return [each for each in refused.lines if f": {key}" in each]
    return []


def test_a_value_of_no_form_is_refused_in_plain_words(models: dict[str, Model]) -> None:
    """Never with pydantic's names of choices or the names of classes, and once for each place."""
    classes = {each.__name__ for each in models.values()}
    tried = 0
    for model, key, _ in keys_with_forms(models):
        for value in WRONG:
            told = findings(model, key, value)
            tried += len(told)
            assert not [each for each in told if WORDS_OF_PYDANTIC.search(each)]
            assert not [each for each in told if classes & set(re.findall(r"\w+", each))]
            places = [(each.split(": ")[:2], ": the key must" in each) for each in told]
            assert len(places) == len(set(map(str, places))), told
    assert tried > 300


def test_a_misspelt_key_of_a_form_is_told_with_the_right_one(models: dict[str, Model]) -> None:
    """The form that is meant explains it, and no other one."""
    tried = 0
    for model, key, forms in keys_with_forms(models):
        for form in forms:
            own = {field.alias or name: field for name, field in form.model_fields.items()}
            right = next((name for name, field in own.items() if name != "kind" and field.is_required()), None)
            if right is None:
                continue
            tried += 1
            section = {"kind": get_args(own["kind"].annotation)[0]} if "kind" in own else {}
            value = json.dumps({**section, f"{right}q": "x"})
            told = [each for text in (value, f"[{value}]", f"{{a: {value}}}") for each in findings(model, key, text)]
            assert [each for each in told if each.endswith(f"unknown key; did you mean {right!r}?")], (key, right, told)
    assert tried > 50


class Inner(ConfigModel):
    key: Annotated[tuple[str, ...], Field(min_length=1)]
    map: Mapping[str, str]


class Outer(ConfigModel):
    streams: Mapping[str, Inner]


def test_a_key_that_is_written_one_level_too_far_left_is_missing_where_it_belongs() -> None:
    """Although the section around has a key of this name."""
    told = findings(Outer, "streams", "{products: {key: [K]}, map: {key: [K], map: {}}}")
    assert told == ["c.yaml:1:13: streams.products.map: is missing"]


def test_a_text_of_a_form_is_told_by_words(models: dict[str, Model]) -> None:
    """Not by a regular expression."""
    profile, stream = (next(each for each in models.values() if key in each.model_fields) for key in ("tenant", "to"))
    assert findings(profile, "tenant", "my shop")[0].startswith("c.yaml:1:1: tenant: must be 1 to 63 letters ")
    assert findings(stream, "to", "shop") == [
        "c.yaml:1:1: to: must be platform, or CONNECTION.RESOURCE of a target, such as shipbob.orders"
    ]


def test_a_list_of_wrong_items_is_not_too_short_as_well() -> None:
    """Pydantic counts the right ones only."""
    assert findings(Inner, "key", "[[K]]") == ["c.yaml:1:9: key.0: must be text"]
    assert findings(Inner, "key", "[]") == ["c.yaml:1:1: key: name at least one"]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("{token: env:KEY}", "platform.auth: kind is missing; known: 'api_key', 'oauth2_client_credentials'"),
        ("{kind: api_key}", "platform.auth.token: is missing"),
    ],
)
def test_a_missing_key_is_told_with_the_values_that_it_may_have(value: str, told: str) -> None:
    """Only if no others are possible."""
    assert f"c.yaml:1:14: {told}" in findings(ConfigFile, "platform", f"{{auth: {value}}}")
