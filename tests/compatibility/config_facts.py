"""The facts of the config file, from its JSON Schema: keys, their values, and their defaults."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.compatibility.facts import LIMIT, LIMITS, REQUIRED, Fact

from crossdock.config.project import connections_and_bound_streams
from crossdock.config.project.config_schema import config_schema


def schema() -> dict[str, Any]:
    return config_schema(
        {
            name: connections_and_bound_streams.load_connector(name).settings
            for name in connections_and_bound_streams.installed_connectors()
        }
    )


def config_facts(schema: Mapping[str, Any]) -> set[Fact]:
    """Return the facts of all sections. A section has the name of its definition in the schema."""
    parts = {"config": schema, **schema["$defs"]}
    return {fact for name, part in parts.items() for fact in _section(name, part)}


def _section(name: str, part: Mapping[str, Any]) -> Iterator[Fact]:
    yield name, "section"
    for key, value in part.get("properties", {}).items():
        yield f"{name}.{key}", "key"
        if key in part.get("required", ()):
            yield f"{name}.{key}", REQUIRED
        if "default" in value and not (isinstance(value["default"], dict) and "$ref" in str(value)):
            # the default of a section has the defaults of its keys, which are told there
            yield f"{name}.{key}", f"default {json.dumps(value['default'])}"
        for accepted in _accepted(value):
            yield f"{name}.{key}", f"accepts {accepted}"
        for limit in _limits(value):
            yield f"{name}.{key}", f"{LIMIT}{limit}"


def _limits(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield each bound and pattern with the type that it limits, such as ``integer minimum 1``."""
    for each in (*value.get("anyOf", ()), *value.get("oneOf", ())):
        yield from _limits(each)
    for name in LIMITS & value.keys():
        yield f"{value.get('type', 'any')} {name} {json.dumps(value[name]).replace('; ', ';')}"
    for name in ("items", "additionalProperties"):
        if isinstance(inner := value.get(name), Mapping):
            yield from (f"{name}-{limit}" for limit in _limits(inner))


def _accepted(value: Mapping[str, Any]) -> Iterator[str]:
    for each in (*value.get("anyOf", ()), *value.get("oneOf", ())):
        yield from _accepted(each)
    if "$ref" in value:
        yield value["$ref"].removeprefix("#/$defs/")
    elif "enum" in value or "const" in value:
        yield from (json.dumps(each) for each in value.get("enum", [value.get("const")]))
    elif value.get("type") == "array":
        items = value.get("prefixItems") or [value.get("items", {})]
        yield from (f"list of {each}" for item in items for each in list(_accepted(item)) or ["anything"])
    elif value.get("type") == "object":
        members = value.get("additionalProperties")
        inner = list(_accepted(members)) if isinstance(members, Mapping) else []
        yield from (f"section of {each}" for each in inner or ("anything",))
        kinds = members.get("properties", {}).get("kind", {}).get("enum", ()) if isinstance(members, Mapping) else ()
        yield from (f"kind {each}" for each in kinds)
    elif "type" in value:
        yield value["type"]
