"""Descriptions in JSON Schemas are the docstrings below fields."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from crossdock.config.project import connections_and_bound_streams
from crossdock.config.project.config_schema import config_schema
from crossdock.values.schema_descriptions_from_docstrings import (
    SchemaGeneratorWithDescriptions,
    docstrings_by_model_field,
)


class Mixin:
    shared: int = 1
    """Of a plain class."""


class Base(BaseModel):
    name: str
    """Of a base."""


class Model(Base, Mixin):
    size: Annotated[int, Field(alias="howMany")] = 0
    """Over
    two lines."""
    own: Annotated[int, Field(description="Its own.")] = 0
    """Not used."""
    bare: int = 0


def test_fields_have_their_docstrings() -> None:
    """Those of bases and of plain classes included; a description in the field wins."""
    expected = {"shared": "Of a plain class.", "name": "Of a base.", "size": "Over\ntwo lines.", "own": "Not used."}
    assert docstrings_by_model_field(Model) == expected
    written = Model.model_json_schema(schema_generator=SchemaGeneratorWithDescriptions)["properties"]
    assert {name: member.get("description") for name, member in written.items()} == {
        "shared": "Of a plain class.",
        "name": "Of a base.",
        "howMany": "Over\ntwo lines.",
        "own": "Its own.",
        "bare": None,
    }


def test_every_config_key_has_a_description() -> None:
    """Editors show it, and so does the reference."""
    schema = config_schema(
        {
            name: connections_and_bound_streams.load_connector(name).settings
            for name in connections_and_bound_streams.installed_connectors()
        }
    )
    parts = {"": schema, **schema["$defs"]}
    assert [
        f"{part}.{key}"
        for part, definition in parts.items()
        for key, member in definition["properties"].items()
        if not member.get("description")
    ] == []
