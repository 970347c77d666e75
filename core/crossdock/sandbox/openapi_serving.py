"""The endpoints that describe the API, without a credential: the OpenAPI document, its schemas, and links to both."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from crossdock.sandbox import openapi_document, openapi_schemas
from crossdock.sandbox.problem_errors import ProblemError, method_not_allowed

PREFIXES = ("/openapi.json", "/docs", "/schemas/")


def answer(request: Request) -> Response:
    """Answer a GET request to ``/``, ``/docs``, ``/openapi.json`` or ``/schemas/NAME.json``."""
    if request.method != "GET":
        raise method_not_allowed("GET")
    path, base_url = request.scope["path"], str(request.base_url).rstrip("/")
    if path == "/openapi.json":
        return JSONResponse(openapi_document.document())
    if path in {"/", "/docs"}:
        return Response(json.dumps(_links(base_url), indent=2) + "\n", media_type="application/json")
    name = path.removeprefix("/schemas/")
    if path.startswith("/schemas/") and name.endswith(".json"):
        schema = openapi_schemas.standalone(name.removesuffix(".json"), base_url)
        if schema is not None:
            return JSONResponse(schema, media_type="application/schema+json")
    raise ProblemError(404, "There is nothing at this path.")


def _links(base_url: str) -> dict[str, str]:
    return {
        "title": "crossdock sandbox: the integration platform, emulated",
        "openapi": f"{base_url}/openapi.json",
        "schemas": f"{base_url}/schemas/{{name}}.json",
        "effects": f"{base_url}/_sandbox/effects",
        "requests": f"{base_url}/_sandbox/requests",
    }
