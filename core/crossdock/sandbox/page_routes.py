"""The sandbox's page for people: API keys at ``/``, and the documentation of the API at ``/docs``.

It needs no script. Forms carry CSRF tokens, and every answer a strict Content-Security-Policy.
"""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from crossdock.sandbox import page_documentation, page_keys
from crossdock.sandbox.api_keys import Keyring
from crossdock.sandbox.page_forms import FormError, FormTokens, Session
from crossdock.sandbox.page_responses import STYLE_PATH, html, render, style
from crossdock.sandbox.problem_errors import method_not_allowed

DOCUMENTATION_PATH = "/docs"
PREFIX = "/page/"


class Page:
    """The page of one running sandbox. The caller checks Host, Origin and where a request comes from."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring, self._tokens = keyring, FormTokens()

    async def answer(self, request: Request) -> Response:
        if request.method not in {"GET", "POST"}:
            raise method_not_allowed("GET, POST")
        if request.scope["path"] == STYLE_PATH:
            return style()
        session = Session(self._tokens, request)
        try:
            response = await page_keys.answer(self._keyring, session, request)
        except FormError as error:
            if error.status in {403, 409}:
                response = page_keys.refused(self._keyring, session, request, error)
            else:
                heading = HTTPStatus(error.status).phrase
                response = html(render("message.html", here="", heading=heading, message=error.message), error.status)
        return session.keep(response)


def answer_documentation(request: Request) -> Response:
    """Answer a request to ``/docs``, which shows nothing secret."""
    if request.method != "GET":
        raise method_not_allowed("GET")
    return html(page_documentation.text())
