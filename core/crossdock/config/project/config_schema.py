"""The JSON Schema of a config file, for completion and checks in editors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic.json_schema import JsonSchemaMode, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from crossdock.config.project.project import ConfigFile
from crossdock.config.stream_configuration import StreamConfig, settings_model_with_streams_key
from crossdock.connector import Settings
from crossdock.mapping.resource_types import WRITABLE_RESOURCE_TYPES, ResourceType
from crossdock.values.config_base_types import IGNORED, ConfigModel
from crossdock.values.schema_descriptions_from_docstrings import (
    SchemaGeneratorWithDescriptions,
    docstrings_by_model_field,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MODE: JsonSchemaMode = "validation"


class _ConfigSchema(SchemaGeneratorWithDescriptions):
    """Adds the ignored keys to each section, what the section is to a key that only selects it, and the allowed and
    required members to a stream.
    """

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        written = super().model_schema(schema)
        if issubclass(schema["cls"], ConfigModel):
            written["patternProperties"] = {f"^{IGNORED}": {}}
            for member in written["properties"].values():
                if "const" in member and "description" in written:
                    member.setdefault("description", written["description"])
        if issubclass(schema["cls"], StreamConfig):
            written["anyOf"] = [{"required": ["resource"]}, {"required": ["to"]}]
            written["allOf"] = [
                rule for name, kind in WRITABLE_RESOURCE_TYPES.items() for rule in _stream_mapping_rules(name, kind)
            ]
        return written

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  a given signature
        """Use no titles: a config author knows the key ``settle_s``, not ``Settle S``."""
        return False


def config_schema(kinds: Mapping[str, type[Settings]]) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a config file. Rules about several sections are left to the loader."""
    kinds = {name: settings_model_with_streams_key(settings) for name, settings in kinds.items()}
    models: Sequence[type[Any]] = [ConfigFile, *dict.fromkeys(kinds.values())]
    places, written = models_json_schema([(model, _MODE) for model in models], schema_generator=_ConfigSchema)
    parts = written["$defs"]
    file = parts.pop(places[ConfigFile, _MODE]["$ref"].removeprefix("#/$defs/"))
    connections = file["properties"]["connections"]
    (name_pattern,) = connections.pop("patternProperties", {"": None})
    connections["propertyNames"] = {"pattern": name_pattern}
    connections["additionalProperties"] = {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"enum": list(kinds)}},
        "allOf": [_rule_when("kind", name, places[model, _MODE]) for name, model in kinds.items()],
    }
    whole = {"$schema": DIALECT, **file, "title": "crossdock config file", "$defs": parts}
    text = json.dumps(whole)
    whole["$defs"] = {name: part for name, part in parts.items() if f'"#/$defs/{name}"' in text}
    return whole


def _stream_mapping_rules(name: str, kind: ResourceType) -> Iterator[dict[str, Any]]:
    """Yield which members a stream of this resource may map, and which it must unless it contributes some to records of
    others.
    """
    texts, fields = docstrings_by_model_field(kind.draft), kind.draft.model_fields.items()
    members = {field.alias or name: {"description": texts[name]} if name in texts else {} for name, field in fields}
    required = [field.alias or name for name, field in fields if field.is_required()]
    yield _rule_when("resource", name, {"properties": {"map": {"properties": members, "additionalProperties": False}}})
    whole = _rule_when("resource", name, {"properties": {"map": {"required": required}}})
    yield whole | {"if": whole["if"] | {"not": {"required": ["contributes"]}}}


def _rule_when(member: str, value: str, then: Mapping[str, Any]) -> dict[str, Any]:
    """Apply *then* where *member* is *value*. Unlike with ``oneOf``, an editor reports the actual error."""
    return {"if": {"properties": {member: {"const": value}}, "required": [member]}, "then": then}
