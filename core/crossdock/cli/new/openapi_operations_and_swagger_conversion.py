"""What an OpenAPI document says of its operations and of members of JSON values; Swagger 2.0 is converted before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from msgspec import Struct

from crossdock.platform.openapi_file import (
    METHODS,
    Json,
    OpenApiDocument,
    list_or_empty,
    mapping_or_empty,
    schema_types,
)
from crossdock.values.json_paths import escaped_pointer_part

_SCHEMA_MEMBERS = ("type", "format", "items", "enum", "default", "minimum", "maximum", "example")


def convert_to_openapi_3(data: Json) -> Json:
    """Return *data* with servers, responses, bodies and credentials where OpenAPI 3.0 has them."""
    scheme = "https" if "https" in list_or_empty(data.get("schemes")) or not data.get("schemes") else "http"
    host, base = data.get("host"), data.get("basePath")
    url = (f"{scheme}://{host}" if isinstance(host, str) else "") + (base if isinstance(base, str) else "")
    return {
        **data,
        "openapi": "3.0.0",
        "servers": [{"url": url.rstrip("/")}] if url else [],
        "paths": {
            path: _path_item(mapping_or_empty(item)) for path, item in mapping_or_empty(data.get("paths")).items()
        },
        "parameters": {
            name: _parameter(mapping_or_empty(each)) for name, each in mapping_or_empty(data.get("parameters")).items()
        },
        "responses": {
            name: _response(mapping_or_empty(each)) for name, each in mapping_or_empty(data.get("responses")).items()
        },
        "components": {
            "securitySchemes": {
                name: _security_scheme(mapping_or_empty(each))
                for name, each in mapping_or_empty(data.get("securityDefinitions")).items()
            }
        },
    }


def _path_item(item: Json) -> Json:
    found = {
        **item,
        "parameters": [_parameter(mapping_or_empty(each)) for each in list_or_empty(item.get("parameters"))],
    }
    return found | {method: _operation(mapping_or_empty(item[method])) for method in METHODS if method in item}


def _operation(operation: Json) -> Json:
    parameters = [mapping_or_empty(each) for each in list_or_empty(operation.get("parameters"))]
    body = next((each for each in parameters if each.get("in") == "body"), None)
    found = {
        **operation,
        "parameters": [_parameter(each) for each in parameters if each is not body],
        "responses": {
            code: _response(mapping_or_empty(each))
            for code, each in mapping_or_empty(operation.get("responses")).items()
        },
    }
    return found if body is None else {**found, "requestBody": _json_media_content(body.get("schema"))}


def _parameter(parameter: Json) -> Json:
    if "schema" in parameter or "$ref" in parameter:
        return parameter
    return {**parameter, "schema": {name: parameter[name] for name in _SCHEMA_MEMBERS if name in parameter}}


def _response(response: Json) -> Json:
    if "schema" not in response:
        return response
    examples = mapping_or_empty(response.get("examples"))
    example = next((value for media, value in examples.items() if "json" in str(media)), None)
    return {**response, **_json_media_content(response["schema"], example)}


def _json_media_content(schema: object, example: Any = None) -> Json:
    media = {"schema": schema} | ({} if example is None else {"example": example})
    return {"content": {"application/json": media}}


def _security_scheme(scheme: Json) -> Json:
    if scheme.get("type") == "basic":
        return {"type": "http", "scheme": "basic"}
    if scheme.get("type") != "oauth2":
        return scheme
    flows: Mapping[str, str] = {"application": "clientCredentials", "accessCode": "authorizationCode"}
    flow = str(scheme.get("flow"))
    return {"type": "oauth2", "flows": {flows.get(flow, flow): {"tokenUrl": scheme.get("tokenUrl")}}}


_DEPTH = 3  # of the objects that may be around a list or a cursor
_MOST_MEMBERS = 400  # of one answer that are looked at
_OK = ("200", "201", "202", "2XX", "default")
_SAFE = re.compile(r"[^\"'\\{}$`\x00-\x1f\x7f]{1,60}")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

Pointer = tuple[str, ...]


class Operation(Struct, frozen=True):
    """One method of one path. *place* is the file and the JSON pointer."""

    method: str
    path: str
    data: Json
    parameters: Sequence[Json]
    place: str

    @property
    def method_and_path(self) -> str:
        return f"{self.method} {self.path}"

    def query_parameters(self) -> Iterator[tuple[str, Json]]:
        """Yield the names of the parameters in the query, and the parameters."""
        for each in self.parameters:
            if each.get("in") == "query" and isinstance(each.get("name"), str):
                yield each["name"], each


def operations_of_path(document: OpenApiDocument, path: str, item: Json) -> Iterator[Operation]:
    """Yield the operations of a path. Raises ConfigError if a reference leads nowhere."""
    item = document.resolved(item)
    for method in METHODS:
        if isinstance(data := item.get(method), Mapping):
            both = [*list_or_empty(item.get("parameters")), *list_or_empty(data.get("parameters"))]
            place = f"{document.name}#/paths/{escaped_pointer_part(path)}/{method}"
            yield Operation(
                method.upper(), path, data, [document.resolved(mapping_or_empty(each)) for each in both], place
            )


def success_response(document: OpenApiDocument, operation: Operation) -> Json:
    """Return the answer to a request that succeeds; empty if there is none."""
    responses = mapping_or_empty(operation.data.get("responses"))
    return next((document.resolved(mapping_or_empty(responses[code])) for code in _OK if code in responses), {})


def json_schema_and_example(document: OpenApiDocument, holder: Json) -> tuple[Json, Any]:
    """Return the schema of the JSON in an answer or a request, and an example; an empty schema if there is none."""
    for media, value in mapping_or_empty(holder.get("content")).items():
        if "json" in str(media) or media == "*/*":
            content = mapping_or_empty(value)
            examples = mapping_or_empty(content.get("examples")).values()
            named = (mapping_or_empty(document.resolved(mapping_or_empty(each))) for each in examples)
            example = content.get("example", next((each["value"] for each in named if "value" in each), None))
            return document.merged_schema(content.get("schema")), yaml_value_as_json(example)
    return {}, None


def members(document: OpenApiDocument, schema: Json) -> Mapping[str, Json]:
    """Return the members of an object with their schemas, apart from those whose names cannot be written safely."""
    properties = mapping_or_empty(schema.get("properties"))
    return {name: document.merged_schema(each) for name, each in properties.items() if _SAFE.fullmatch(str(name))}


def nested_members(document: OpenApiDocument, schema: Json) -> Iterator[tuple[Pointer, Json]]:
    """Yield the members of an object, and those of objects in it; not those of lists."""
    left: list[tuple[Pointer, Json]] = [((), schema)]
    count = 0
    while left:
        place, outer = left.pop(0)
        for name, inner in members(document, outer).items():
            count += 1
            if count > _MOST_MEMBERS:
                return
            yield (*place, name), inner
            if json_type_instant_or_day(inner) == "object" and len(place) < _DEPTH - 1:
                left.append(((*place, name), inner))


def json_type_instant_or_day(schema: Json) -> str:
    """Return the one JSON type of a schema; ``instant`` or ``day`` for times; empty if it is open."""
    found = schema_types(schema) - {"null"}
    if found == {"integer", "number"}:
        return "number"
    if len(found) != 1:
        return ""
    (name,) = found
    form = schema.get("format")
    if name == "string" and isinstance(form, str):
        return {"date-time": "instant", "date": "day"}.get(form, name)
    return name


def words_of_name(name: str) -> list[str]:
    """Return the words of a name in lower case: of ``createdAt`` and ``created_at`` the same."""
    return [each.lower() for each in _WORDS.findall(name)]


def normalized_name(name: str) -> str:
    return "".join(words_of_name(name))


def needs_no_escaping(text: str) -> bool:
    """Return whether *text* can be a part of code, paths and pointers without being escaped."""
    return _SAFE.fullmatch(text) is not None


def json_pointer(place: Sequence[str]) -> str:
    return "".join(f"/{escaped_pointer_part(each)}" for each in place)


def yaml_value_as_json(value: Any) -> Any:
    """Return an example as JSON: YAML reads some texts as times."""
    match value:
        case dict():
            return {str(name): yaml_value_as_json(each) for name, each in value.items()}
        case list():
            return [yaml_value_as_json(each) for each in value]
        case datetime() | date():
            return value.isoformat()
    return value
