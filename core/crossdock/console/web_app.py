"""The console as an ASGI application: from a request to the page, with the checks that protect it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from http import HTTPStatus
from typing import Literal, TypedDict
from urllib.parse import urlencode

from anyio import CapacityLimiter, to_thread
from msgspec import Struct, structs
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crossdock.console import content_hashed_assets
from crossdock.console.page_request_context import Console, Handler, PageError, PageRequest
from crossdock.console.personal_data_access import cross_site_address_without_data
from crossdock.console.visitors_and_roles import NOBODY, Person, Role
from crossdock.errors import CrossdockError, add_code_to_first_line
from crossdock.printable import is_storable
from crossdock.values.serving import ServerNames, is_cross_site_request
from crossdock.values.serving.csrf_protected_forms import FormError, FormTokens, Session
from crossdock.values.serving.page_security_headers import PAGE_HEADERS

COOKIE = "crossdock_console_session"
SIGN_IN = "/sign-in"
_HEADERS = PAGE_HEADERS | {
    "content-security-policy": PAGE_HEADERS["content-security-policy"].replace(
        "style-src 'self'", "style-src 'self'; script-src 'self'; connect-src 'self'"
    )
}
_AT_ONCE = 8  # pages: each takes time from a scheduler in the same process. Who may not sign in keeps out nobody else.
_STATUSES = {2: 400, 3: 503, 4: 409}  # by the exit code that a command would have


class Page(Struct, frozen=True):
    """An address, what its visitors need to be, and what answers. *is_form* is sent with POST.

    Without a *role*, it also answers those who have not signed in.
    """

    path: str
    handler: Handler
    role: Role | None = Role.VIEWER
    is_form: bool = False


WhoIs = Callable[[Request, Session], Person | None]
"""Returns who sent a request; None if nobody has signed in."""


def build_web_app(console: Console, pages: Sequence[Page], names: ServerNames, who_is: WhoIs) -> ASGIApp:
    """Return the application. Without a person, a page is answered by that where one signs in, and a form by 401."""
    endpoints = _PageEndpoints(console, who_is, {page.path for page in pages if not page.is_form})
    routes = [
        Route(page.path, endpoints.make_endpoint(page), methods=["POST" if page.is_form else "GET"]) for page in pages
    ]
    files = [
        Route(f"/{name}", _asset_endpoint(name, kind), methods=["GET"])
        for name, kind in content_hashed_assets.KINDS.items()
    ]
    served = Starlette(routes=[*routes, *files], exception_handlers={HTTPException: endpoints.handle_http_error})
    served.router.redirect_slashes = False
    return _refuse_foreign_requests(served, names)


class _Cookie(TypedDict):
    secure: bool
    same_site: Literal["lax"]


class _PageEndpoints:
    def __init__(self, console: Console, who_is: WhoIs, shown: Container[str]) -> None:
        self._console, self._who_is, self._shown = console, who_is, shown
        self._tokens = FormTokens()
        self._for_people, self._for_anybody = CapacityLimiter(_AT_ONCE), CapacityLimiter(_AT_ONCE)

    def make_endpoint(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            session = self._session(request)
            visit = self._make_page_request(request, session)
            if (harmless := cross_site_address_without_data(visit)) is not None:
                return session.set_cookie_if_missing(visit.redirect(harmless), **_cookie_attributes(request))
            try:
                if page.role is not None and not visit.person.name:
                    return session.set_cookie_if_missing(
                        self._response_asking_to_sign_in(page, request, visit), **_cookie_attributes(request)
                    )
                visit = await self._authorized_request_with_tenant(page, request, visit)
                form = await session.read_form(request) if page.is_form else None
                limiter = self._for_anybody if page.role is None else self._for_people
                response = await to_thread.run_sync(page.handler, structs.replace(visit, form=form), limiter=limiter)
            except PageError as error:
                response = _error_page(visit, error)
            except FormError as error:
                again = ("Open its page again", self._address_to_return_to(page, request))
                response = _error_page(visit, PageError(error.status, error.message), again)
            except ClientDisconnect:
                return Response(status_code=400)  # nobody reads it
            except CrossdockError as error:
                response = _error_page(visit, PageError(_STATUSES.get(error.exit_code, 500), *_message_and_hint(error)))
            return session.set_cookie_if_missing(response, **_cookie_attributes(request))

        return answer

    def _response_asking_to_sign_in(self, page: Page, request: Request, visit: PageRequest) -> Response:
        wanted = self._address_to_return_to(page, request)
        sign_in = f"{SIGN_IN}?{urlencode({'next': wanted})}" if wanted not in {"", "/"} else SIGN_IN
        if page.is_form:
            error = PageError(401, "Nobody has signed in, so nothing was done.", "Sign in, then send the form again.")
            return _error_page(visit, error, ("Sign in", sign_in))
        return visit.redirect(sign_in)

    def _address_to_return_to(self, page: Page, request: Request) -> str:
        """Return the address at which a request finds its page or the page of its form; empty without one."""
        query = request.scope["query_string"].decode("latin-1")
        address: str = request.scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
        return address if page.path in self._shown else ""

    def _session(self, request: Request) -> Session:
        return Session(self._tokens, request, f"__Host-{COOKIE}" if _has_tls(request) else COOKIE)

    async def handle_http_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        visit = self._make_page_request(request, self._session(request))
        if not visit.person.name:
            return PlainTextResponse(HTTPStatus(error.status_code).phrase, error.status_code, error.headers)
        message = "There is no such page." if error.status_code == 404 else HTTPStatus(error.status_code).phrase
        response = _error_page(visit, PageError(error.status_code, message))
        response.headers.update(error.headers or {})
        return response

    async def _authorized_request_with_tenant(self, page: Page, request: Request, visit: PageRequest) -> PageRequest:
        """Return *visit* with its tenant, or raise PageError if the person may not see the page, or there is none."""
        name = request.path_params.get("tenant")
        if not all(map(is_storable, (*visit.query.values(), *visit.path_params.values()))):
            raise PageError(400, "The address has characters that nothing is named with.")
        if page.role is None:
            return visit
        if not visit.person.has_role(page.role, name):
            raise PageError(403, f"{visit.person.name} may not do this: it needs the role {page.role.display_name}.")
        if name is None:
            return visit
        tenant = await to_thread.run_sync(self._console.tenants.get, name, limiter=self._for_people)
        if tenant is None:
            raise PageError(404, f"There is no tenant {name}.")
        return structs.replace(visit, tenant=tenant)

    def _make_page_request(self, request: Request, session: Session) -> PageRequest:
        path_params: Mapping[str, str] = {
            name: str(value) for name, value in request.path_params.items() if name != "tenant"
        }
        return PageRequest(
            console=self._console,
            person=self._who_is(request, session) or NOBODY,
            tenant=None,
            path=request.scope["path"],
            path_params=path_params,
            query=dict(request.query_params),
            form=None,
            session=session,
            token=session.issue_form_token(),
            address=request.client.host if request.client else "",
            by_other_site=is_cross_site_request(request.headers),
            origin=f"{request.url.scheme}://{request.headers.get('host', '')}",
            now=self._console.clock.now(),
        )


def _has_tls(request: Request) -> bool:
    return request.url.scheme == "https"


def _cookie_attributes(request: Request) -> _Cookie:
    # A link in a ticket must not begin a new session in place of the browser's own, as it would with "strict".
    return {"secure": _has_tls(request), "same_site": "lax"}


def _error_page(visit: PageRequest, error: PageError, repair: tuple[str, str] = ("", "")) -> Response:
    """Return the page of *error*, with a link of this text and address if it has an address."""
    heading = HTTPStatus(error.status).phrase
    return visit.render_page(
        "error.html",
        heading,
        http_status=error.status,
        heading=heading,
        message=error.message,
        advice=error.advice,
        repair=repair,
    )


def _message_and_hint(error: CrossdockError) -> tuple[str, str]:
    where = f"{error.where}: " if error.where else ""
    return add_code_to_first_line(f"{where}{error.message}", error.code), error.hint or ""


def _asset_endpoint(name: str, kind: str) -> Callable[[Request], Response]:
    content, version = content_hashed_assets.content(name), content_hashed_assets.content_digest(name)

    def respond(request: Request) -> Response:
        is_this = request.query_params.get("v") == version  # otherwise a page of another version names it
        kept = "max-age=31536000, immutable" if is_this else "no-cache"
        return Response(content, headers={"cache-control": kept}, media_type=kind)

    return respond


def _refuse_foreign_requests(served: ASGIApp, names: ServerNames) -> ASGIApp:
    """Refuse requests for another host or from a page of another site, and protect what is answered."""

    async def protected(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                more = [(n.encode(), v.encode()) for n, v in _HEADERS.items() if n.encode() not in given]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        refusal = names.refusal_reason(scope)
        endpoints = PlainTextResponse(f"{refusal}\n", 403) if refusal else served
        await endpoints(scope, receive, send_with_headers)

    return protected
