"""The endpoints that describe the API to programs, without a credential: the OpenAPI document and its schemas."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from crossdock.sandbox import openapi_document, openapi_schemas
from crossdock.sandbox.problem_errors import ProblemError, method_not_allowed

PREFIXES = ("/openapi.json", "/schemas/")


def answer(request: Request) -> Response:
    if request.method != "GET":
        raise method_not_allowed("GET")
    path, base_url = request.scope["path"], str(request.base_url).rstrip("/")
    if path == "/openapi.json":
        return JSONResponse(openapi_document.document())
    name = path.removeprefix("/schemas/")
    if path.startswith("/schemas/") and name.endswith(".json"):
        schema = openapi_schemas.standalone(name.removesuffix(".json"), base_url)
        if schema is not None:
            return JSONResponse(schema, media_type="application/schema+json")
    raise ProblemError(404, "There is nothing at this path.")
