"""Converts Swagger 2.0 documents to OpenAPI 3.0, as far as lists and records are read from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossdock.platform.openapi_file import METHODS, Json, list_or_empty, mapping_or_empty

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
