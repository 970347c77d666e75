"""What anybody may read without a credential: the OpenAPI document, its schemas, and a page for people."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from crossdock.sandbox import openapi_document, openapi_schemas
from crossdock.sandbox.access_control import SCOPES
from crossdock.sandbox.coverage import SECTIONS
from crossdock.sandbox.problem_answers import ProblemError

PATHS = ("/openapi.json", "/docs", "/schemas/")

_JSON = "application/json"
_HERE = Path(__file__).parent
_STYLE = (_HERE / "docs.css").read_text(encoding="utf-8")
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {  # nothing is loaded from anywhere, and no script runs
    "content-security-policy": f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_ASSUMED = ' <span class="assumed">assumed</span>'

Json = dict[str, Any]


def answer(request: Request) -> Response:
    """Answer at one of `PATHS`."""
    if request.method != "GET":
        raise ProblemError(405, "This path has no such method.", headers={"allow": "GET"})
    path, base_url = request.scope["path"], str(request.base_url).rstrip("/")
    if path == "/openapi.json":
        return Response(json.dumps(openapi_document.document()), media_type=_JSON)
    if path == "/docs":
        return Response(_page().replace("{{base}}", escape(base_url)), headers=_HEADERS, media_type="text/html")
    name = path.removeprefix("/schemas/")
    if path.startswith("/schemas/") and name.endswith(".json"):
        schema = openapi_schemas.of(name.removesuffix(".json"), base_url)
        if schema is not None:
            return Response(json.dumps(schema), media_type="application/schema+json")
    raise ProblemError(404, "There is nothing at this path.")


@cache
def _page() -> str:
    """The page, but for the address that it is read at."""
    parts = {
        "style": _STYLE,
        "scopes": ", ".join(f"<code>{each}</code>" for each in SCOPES),
        "problems": "".join(_problems()),
        "coverage": "\n".join(_coverage()),
        "operations": "\n".join(_operations()),
        "events": "\n".join(_events()),
        "schemas": "\n".join(_schemas()),
    }
    page = (_HERE / "docs.html").read_text(encoding="utf-8")
    for name, text in parts.items():
        page = page.replace(f"{{{{{name}}}}}", text)
    return page


def _problems() -> Iterator[str]:
    for name, told in openapi_document.document()["components"]["responses"].items():
        yield f"<tr><td>{name.removeprefix('Problem')}</td><td>{_prose(told['description'])}</td></tr>"


def _coverage() -> Iterator[str]:
    labels = ("Section", "Documented", "Assumed here", "Tested in", "Part two adds")
    for each in SECTIONS:
        tests = "<br>".join(f"<code>{path.replace('/', '/<wbr>')}</code>" for path in each.tests)
        cells = (escape(each.title), escape(each.documented), escape(each.assumed), tests, escape(each.part_two))
        row = (f'<td data-label="{label}">{cell}</td>' for label, cell in zip(labels, cells, strict=True))
        yield f"<tr>{''.join(row)}</tr>"


def _operations() -> Iterator[str]:
    document, tag = openapi_document.document(), ""
    for path, item in document["paths"].items():
        for method in (each for each in ("post", "get", "patch", "delete") if each in item):
            operation = item[method]
            if operation["tags"] != [tag]:
                (tag,) = operation["tags"]
                yield f"<h3>{escape(tag)}</h3>"
            yield _operation(method, path, operation, item["parameters"])


def _operation(method: str, path: str, operation: Json, shared: list[Json]) -> str:
    (scope,) = operation["security"][0]["bearer"]
    assumed = _ASSUMED if operation.get("x-assumption") else ""
    given = [_resolved(each) for each in (*shared, *operation.get("parameters", ()))]
    rows = "".join(_parameter(each) for each in given)
    answers = " ".join(_answer(status, _resolved(each)) for status, each in operation["responses"].items())
    parts = [f"<p>{_prose(operation.get('description', ''))} Scope <code>{scope}</code>.</p>"]
    if body := operation.get("requestBody"):
        ((media_type, content),) = body["content"].items()
        parts.append(f"<p>Body: {_link(content['schema'])} as <code>{media_type}</code></p>")
        parts.append(_example(content["example"]))
    parts.append(f'<div class="wide"><table><tbody>{rows}</tbody></table></div><p>Answers: {answers}</p>')
    head = f'<span class="verb">{method.upper()}</span> <code>{escape(path)}</code>'
    told = f"{head} <span class='soft'>{escape(operation['summary'])}</span>{assumed}"
    return f'<details id="{operation["operationId"]}"><summary>{told}</summary><div>{"".join(parts)}</div></details>'


def _parameter(parameter: Json) -> str:
    needed = "required" if parameter.get("required") else "optional"
    about = _prose(parameter.get("description", "")) + (_ASSUMED if parameter.get("x-assumption") else "")
    return f"<tr><td><code>{parameter['name']}</code></td><td>{parameter['in']}, {needed}</td><td>{about}</td></tr>"


def _answer(status: str, response: Json) -> str:
    schema = next((each["schema"] for each in response.get("content", {}).values()), None)
    return f"<code>{status}</code>" + (f" {_link(schema)}" if schema and not status.startswith("4") else "")


def _events() -> Iterator[str]:
    for event, item in openapi_document.document()["webhooks"].items():
        content = item["post"]["requestBody"]["content"][_JSON]
        inner = f"<div><p>Body: {_link(content['schema'])}</p>{_example(content['example'])}</div>"
        summary = f"<code>{event}</code> <span class='soft'>{escape(item['post']['summary'])}</span>"
        yield f"<details><summary>{summary}</summary>{inner}</details>"


def _schemas() -> Iterator[str]:
    for name, schema in openapi_schemas.components().items():
        about = _prose(schema.get("description", ""))
        assumed = _ASSUMED if schema.get("x-assumption") else ""
        required = schema.get("required", ())
        members = schema.get("properties", {}).items()
        rows = "".join(_member(each, inner, needed=each in required) for each, inner in members)
        table = f'<div class="wide"><table><tbody>{rows}</tbody></table></div>' if rows else ""
        link = f'<p><a href="/schemas/{name}.json">JSON Schema</a></p>'
        inner = f"<div><p>{about}</p>{table}{_example(schema['examples'][0])}{link}</div>"
        yield f'<details id="schema-{name}"><summary><code>{name}</code>{assumed}</summary>{inner}</details>'


def _member(name: str, schema: Json, *, needed: bool) -> str:
    need = "required" if needed else "optional"
    told = f"<td>{_type(schema)}, {need}</td><td>{_prose(schema.get('description', ''))}</td>"
    return f"<tr><td><code>{name}</code></td>{told}</tr>"


def _type(schema: Json) -> str:
    if "$ref" in schema:
        return _link(schema)
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    kind = schema["type"]
    text = " or ".join(kind) if isinstance(kind, list) else kind
    values = " or ".join(f"<code>{escape(str(each))}</code>" for each in schema.get("enum", ()))
    return values or escape(str(schema.get("format", text)))


def _link(schema: Json) -> str:
    name = schema["$ref"].rpartition("/")[2]
    return f'<a href="#schema-{name}">{name}</a>'


def _prose(text: str) -> str:
    """A description, whose only markup is code between backticks."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(text))


def _example(value: object) -> str:
    return f"<pre><code>{escape(json.dumps(value, indent=2, ensure_ascii=False), quote=False)}</code></pre>"


def _resolved(part: Json) -> Json:
    if "$ref" not in part:
        return part
    _, _, section, name = part["$ref"].split("/")
    found: Json = openapi_document.document()["components"][section][name]
    return found
