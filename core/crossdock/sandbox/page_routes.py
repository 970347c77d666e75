"""The sandbox's page for people: API keys at ``/``, webhooks, and the documentation of the API at ``/docs``.

It needs no script. Forms carry CSRF tokens, and every answer a strict Content-Security-Policy.
"""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from crossdock.sandbox import page_documentation, page_keys, page_webhooks
from crossdock.sandbox.api_keys import Keyring
from crossdock.sandbox.page_forms import FormError, FormTokens, Session
from crossdock.sandbox.page_responses import STYLE_PATH, html, render, style
from crossdock.sandbox.page_webhooks import Operate, WebhooksPage
from crossdock.sandbox.problem_errors import method_not_allowed

DOCUMENTATION_PATH = "/docs"
PREFIX = "/page/"


class Page:
    """The page of one running sandbox. The caller checks Host, Origin and where a request comes from."""

    def __init__(self, keyring: Keyring, operate: Operate) -> None:
        self._keyring, self._tokens = keyring, FormTokens()
        self._webhooks = WebhooksPage(operate, self._tenants)

    async def answer(self, request: Request) -> Response:
        if request.method not in {"GET", "POST"}:
            raise method_not_allowed("GET, POST")
        if request.scope["path"] == STYLE_PATH:
            return style()
        session = Session(self._tokens, request)
        try:
            response = await self._shown(session, request)
        except FormError as error:
            response = self._refused(session, request, error)
        return session.keep(response)

    def _refused(self, session: Session, request: Request, error: FormError) -> Response:
        of_webhooks = request.scope["path"].startswith(page_webhooks.PATH)
        if error.status in {403, 409} and not of_webhooks:
            return page_keys.refused(self._keyring, session, request, error)
        heading, back = HTTPStatus(error.status).phrase, page_webhooks.PATH if of_webhooks else "/"
        text = render("message.html", here="", heading=heading, message=error.message, back=back)
        return html(text, error.status)

    async def _shown(self, session: Session, request: Request) -> Response:
        path = request.scope["path"]
        if path == page_webhooks.PATH or path.startswith(f"{page_webhooks.PATH}/"):
            return await self._webhooks.answer(session, request)
        return await page_keys.answer(self._keyring, session, request)

    def _tenants(self) -> set[str]:
        return {each.tenant for each in self._keyring.current().values()}


def answer_documentation(request: Request) -> Response:
    """Answer a request to ``/docs``, which shows nothing secret."""
    if request.method != "GET":
        raise method_not_allowed("GET")
    return html(page_documentation.text())
