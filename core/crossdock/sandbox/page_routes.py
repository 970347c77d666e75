"""The sandbox's page: API keys at ``/``, OAuth clients, webhooks, and documentation at ``/docs``. It has no script."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from crossdock.sandbox import documentation_page
from crossdock.sandbox.api_keys import ApiKeyStore
from crossdock.sandbox.credentials_page import CredentialsPage
from crossdock.sandbox.html_page_responses import STYLE_PATH, html_response, render, style_response
from crossdock.sandbox.oauth_clients_and_tokens import OAuthClientStore
from crossdock.sandbox.problem_errors import method_not_allowed_error
from crossdock.sandbox.webhooks_page import Operate, WebhooksPage
from crossdock.values.serving.cross_site_protection import CsrfTokens, FormError, Session

DOCUMENTATION_PATH = "/docs"
PREFIX = "/page/"
_CLIENTS = "/page/clients"
_COOKIE = "crossdock_sandbox_session"


class SandboxPage:
    def __init__(self, keyring: ApiKeyStore, clients: OAuthClientStore, operate: Operate) -> None:
        self._keyring, self._tokens = keyring, CsrfTokens()
        self._keys = CredentialsPage(keyring, "key", "key", "API keys", "/page/keys", "/")
        self._clients = CredentialsPage(clients, "client", "secret", "OAuth clients", _CLIENTS, _CLIENTS)
        self._webhooks = WebhooksPage(operate, self._tenants_that_have_keys)

    async def answer(self, request: Request) -> Response:
        if request.method not in {"GET", "POST"}:
            raise method_not_allowed_error("GET, POST")
        if request.scope["path"] == STYLE_PATH:
            return style_response()
        session = Session(self._tokens, request, _COOKIE)
        try:
            response = await self._section_for_path(request.scope["path"]).answer(session, request)
        except FormError as error:
            response = self._refusal_response(session, request, error)
        return session.set_cookie_if_missing(response)

    def _refusal_response(self, session: Session, request: Request, error: FormError) -> Response:
        section = self._section_for_path(request.scope["path"])
        if error.status in {403, 409} and isinstance(section, CredentialsPage):
            return section.show_refusal(session, request, error)
        heading = HTTPStatus(error.status).phrase
        text = render("message.html", here="", heading=heading, message=error.message, back=section.home)
        return html_response(text, error.status)

    def _section_for_path(self, path: str) -> CredentialsPage | WebhooksPage:
        for section in (self._clients, self._webhooks):
            if path == section.path or path.startswith(f"{section.path}/"):
                return section
        return self._keys

    def _tenants_that_have_keys(self) -> set[str]:
        return {each.tenant for each in self._keyring.valid_callers_by_key_id().values()}


def answer_documentation(request: Request) -> Response:
    if request.method != "GET":
        raise method_not_allowed_error("GET")
    return html_response(documentation_page.documentation_html())
