"""The documentation of the API as one HTML page, rendered from the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from crossdock.sandbox import openapi_document
from crossdock.sandbox.html_page_responses import render

Json = Mapping[str, Any]

_METHODS = ("get", "post", "put", "patch", "delete")
_SCHEMAS = "#/components/schemas/"
_MAX_LISTED = 8  # values of a closed list; of a longer one only the number is shown
_LIMITS = {
    "minLength": "shortest length {}",
    "maxLength": "longest length {}",
    "minItems": "fewest items {}",
    "maxItems": "most items {}",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "greater than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "format": "format {}",
    "default": "default {}",
    "const": "always {}",
}


@cache
def documentation_html() -> str:
    document = openapi_document.build_openapi_document()
    return render(
        "documentation.html",
        here="/docs",
        info=document["info"],
        schemes=document["components"]["securitySchemes"],
        groups=_operations_by_tag(document),
        webhooks=[_described_operation(document, "post", name, item) for name, item in document["webhooks"].items()],
        schemas=[_described_schema(name, schema) for name, schema in document["components"]["schemas"].items()],
    )


def _operations_by_tag(document: Json) -> Json:
    groups: dict[str, list[Json]] = {tag["name"]: [] for tag in document["tags"]}
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                groups.setdefault(item[method].get("tags", ["Other"])[0], []).append(
                    _described_operation(document, method, path, item)
                )
    return groups


def _described_operation(document: Json, method: str, path: str, item: Json) -> Json:
    operation = item[method]
    parameters = [
        _resolved_reference(document, each) for each in (*item.get("parameters", ()), *operation.get("parameters", ()))
    ]
    responses = {status: _resolved_reference(document, each) for status, each in operation["responses"].items()}
    scopes = [scope for each in operation.get("security", ()) for names in each.values() for scope in names]
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": operation["summary"].rstrip("."),
        "description": operation.get("description", ""),
        "assumed": operation.get("x-assumption", False),
        "scopes": list(dict.fromkeys(scopes)),
        "parameters": [_described_parameter(each) for each in parameters],
        "bodies": list(_described_bodies(_resolved_reference(document, operation.get("requestBody", {})))),
        "responses": [
            {"status": status, "description": each["description"], "bodies": list(_described_bodies(each))}
            for status, each in responses.items()
        ],
    }


def _described_parameter(parameter: Json) -> Json:
    return {
        "name": parameter["name"],
        "in": parameter["in"],
        "required": parameter.get("required", False),
        "description": parameter.get("description", ""),
        "type": _described_type(parameter["schema"]),
        "rules": _described_value_limits(parameter["schema"]),
    }


def _described_bodies(holder: Json) -> Iterator[Json]:
    for media_type, content in holder.get("content", {}).items():
        example = content.get("example")
        shown = "" if example is None else json.dumps(example, indent=2, ensure_ascii=False)
        yield {"media_type": media_type, "type": _described_type(content.get("schema", {})), "example": shown}


def _described_schema(name: str, schema: Json) -> Json:
    required = schema.get("required", ())
    members = [
        {
            "name": member,
            "required": member in required,
            "type": _described_type(inner),
            "description": inner.get("description", ""),
            "rules": _described_value_limits(inner),
        }
        for member, inner in schema.get("properties", {}).items()
    ]
    return {
        "name": name,
        "assumed": schema.get("x-assumption", False),
        "description": schema.get("description", ""),
        "type": _described_type(schema),
        "members": members,
        "rules": _described_value_limits(schema),
    }


def _described_type(schema: Json) -> Json:
    """Describe the type: the text ``before`` a ``link``, which is the name of a schema, and the text ``after`` it."""
    if "$ref" in schema:
        return {"before": "", "link": schema["$ref"].removeprefix(_SCHEMAS), "after": ""}
    if "anyOf" in schema or "oneOf" in schema:
        kinds = [_described_type(each) for each in schema.get("anyOf", schema.get("oneOf", ()))]
        linked = next((each for each in kinds if each["link"]), {"before": "", "link": "", "after": ""})
        others = [each["before"] for each in kinds if each is not linked]
        return {**linked, "after": linked["after"] + "".join(f" or {each}" for each in others)}
    kind = schema.get("type", "any value")
    names = [kind] if isinstance(kind, str) else list(kind)
    if "array" in names and isinstance(schema.get("items"), dict):
        inner = _described_type(schema["items"])
        rest = "".join(f" or {each}" for each in names if each != "array")
        return {**inner, "before": f"list of {inner['before']}", "after": inner["after"] + rest}
    return {"before": " or ".join(names), "link": "", "after": ""}


def _described_value_limits(schema: Json) -> Json:
    words = [sentence.format(_value_text(schema[name])) for name, sentence in _LIMITS.items() if name in schema]
    values = schema.get("enum", ())
    if len(values) > _MAX_LISTED:
        words.append(f"one of {len(values)} values, for example {_value_text(values[0])}")
        values = ()
    return {"words": words, "values": [_value_text(each) for each in values], "pattern": schema.get("pattern", "")}


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _resolved_reference(document: Json, part: Json) -> Json:
    found: Any = part
    while "$ref" in found:
        names = found["$ref"].removeprefix("#/").split("/")
        found = document
        for name in names:
            found = found[name]
    return dict(found)
