"""HTML answers of the sandbox's page: the templates, the stylesheet, and the headers that protect both."""

from __future__ import annotations

from importlib.resources import files

from starlette.responses import HTMLResponse, Response

from crossdock.values.page_templates import PageTemplates

STYLE_PATH = "/page/style.css"

_HEADERS = {
    "cache-control": "no-store",  # a page can show a key, and a browser keeps no copy of it
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none';"
        " frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",  # with no-referrer a browser sends "Origin: null" from the page's own forms
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_STYLE = files("crossdock.sandbox").joinpath("page_templates", "style.css").read_text("utf-8")
_TEMPLATES = PageTemplates("crossdock.sandbox")


def render(template: str, /, **values: object) -> str:
    return _TEMPLATES.render(template, style_path=STYLE_PATH, **values)


def html(text: str, status: int = 200) -> Response:
    return HTMLResponse(text, status, _HEADERS)


def style() -> Response:
    return Response(_STYLE, headers=_HEADERS, media_type="text/css")
