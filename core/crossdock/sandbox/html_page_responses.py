"""HTML answers of the sandbox's page: the templates, the stylesheet, and the headers that protect both."""

from __future__ import annotations

from importlib.resources import files

from starlette.responses import HTMLResponse, Response

from crossdock.values.html_templates import PageTemplates
from crossdock.values.serving.cross_site_protection import PAGE_HEADERS

STYLE_PATH = "/page/style.css"

_STYLE = files("crossdock.sandbox").joinpath("page_templates", "style.css").read_text("utf-8")
_TEMPLATES = PageTemplates("crossdock.sandbox")


def render(template: str, /, **values: object) -> str:
    return _TEMPLATES.render(template, style_path=STYLE_PATH, **values)


def html_response(text: str, status: int = 200) -> Response:
    return HTMLResponse(text, status, PAGE_HEADERS)


def style_response() -> Response:
    return Response(_STYLE, headers=PAGE_HEADERS, media_type="text/css")
