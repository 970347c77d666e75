"""The console as an ASGI application: all addresses, the checks that protect them, and its server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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

from crossdock.console import (
    action_and_started_command_pages,
    audit_log_page,
    connections_page,
    error_code_page,
    imported_files_page,
    job_calendar_page,
    migration_pages,
    month_summary_page,
    open_records_pages,
    page_rendering,
    pending_approvals_page,
    record_page,
    run_pages,
    settings_and_schedule_pages,
    sign_in_pages,
    start_page_and_remedies,
)
from crossdock.console.page_request_context import Console, Handler, PageError, PageRequest
from crossdock.console.personal_data_access import address_without_personal_data_if_cross_site
from crossdock.console.sign_in.openid_provider import ANSWER_PATH
from crossdock.console.tenant_configs_and_states import Tenants
from crossdock.console.tenant_overviews import TenantOverviewCache
from crossdock.console.tls_proxy_and_sign_in import Protection
from crossdock.console.visitors_and_roles import NOBODY, Person, Role, local_user_as_administrator
from crossdock.errors import ConfigError, CrossdockError, add_code_to_first_line
from crossdock.printable import is_storable
from crossdock.values.clock import Clock
from crossdock.values.serving import (
    AllowedHostNames,
    ConnectionLimits,
    ServerLimits,
    is_cross_site_request,
    serve_in_thread,
)
from crossdock.values.serving.cross_site_protection import PAGE_HEADERS, CsrfTokens, FormError, Session

COOKIE = "crossdock_console_session"
SIGN_IN = "/sign-in"
_HEADERS = PAGE_HEADERS | {
    "content-security-policy": PAGE_HEADERS["content-security-policy"].replace(
        "style-src 'self'", "style-src 'self'; script-src 'self'; connect-src 'self'"
    )
}
_AT_ONCE = 8  # pages: each takes time from a scheduler in the same process. Who may not sign in keeps out nobody else.
_STATUSES = {2: 400, 3: 503, 4: 409}  # by the exit code that a command would have


class PageRoute(Struct, frozen=True):
    """An address, what its visitors need to be, and what answers. *is_form* is sent with POST.

    Without a *role*, it also answers those who have not signed in.
    """

    path: str
    handler: Handler
    role: Role | None = Role.VIEWER
    is_form: bool = False


IdentifyPerson = Callable[[Request, Session], Person | None]
"""Returns who sent a request; None if nobody has signed in."""


def build_web_app(
    console: Console, pages: Sequence[PageRoute], names: AllowedHostNames, who_is: IdentifyPerson
) -> ASGIApp:
    """Return the application. Without a person, a page is answered by that where one signs in, and a form by 401."""
    endpoints = _PageEndpoints(console, who_is, {page.path for page in pages if not page.is_form})
    routes = [
        Route(page.path, endpoints.make_endpoint(page), methods=["POST" if page.is_form else "GET"]) for page in pages
    ]
    files = [
        Route(f"/{name}", _asset_endpoint(name, kind), methods=["GET"])
        for name, kind in page_rendering.ASSET_MEDIA_TYPES.items()
    ]
    served = Starlette(routes=[*routes, *files], exception_handlers={HTTPException: endpoints.handle_http_error})
    served.router.redirect_slashes = False
    return _refuse_foreign_requests(served, names)


class _Cookie(TypedDict):
    secure: bool
    same_site: Literal["lax"]


class _PageEndpoints:
    def __init__(self, console: Console, who_is: IdentifyPerson, shown: Container[str]) -> None:
        self._console, self._who_is, self._shown = console, who_is, shown
        self._tokens = CsrfTokens()
        self._for_people, self._for_anybody = CapacityLimiter(_AT_ONCE), CapacityLimiter(_AT_ONCE)

    def make_endpoint(self, page: PageRoute) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            session = self._session(request)
            visit = self._make_page_request(request, session)
            if (harmless := address_without_personal_data_if_cross_site(visit)) is not None:
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

    def _response_asking_to_sign_in(self, page: PageRoute, request: Request, visit: PageRequest) -> Response:
        wanted = self._address_to_return_to(page, request)
        sign_in = f"{SIGN_IN}?{urlencode({'next': wanted})}" if wanted not in {"", "/"} else SIGN_IN
        if page.is_form:
            error = PageError(401, "Nobody has signed in, so nothing was done.", "Sign in, then send the form again.")
            return _error_page(visit, error, ("Sign in", sign_in))
        return visit.redirect(sign_in)

    def _address_to_return_to(self, page: PageRoute, request: Request) -> str:
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

    async def _authorized_request_with_tenant(
        self, page: PageRoute, request: Request, visit: PageRequest
    ) -> PageRequest:
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
    content, version = page_rendering.asset_content(name), page_rendering.asset_content_digest(name)

    def respond(request: Request) -> Response:
        is_this = request.query_params.get("v") == version  # otherwise a page of another version names it
        kept = "max-age=31536000, immutable" if is_this else "no-cache"
        return Response(content, headers={"cache-control": kept}, media_type=kind)

    return respond


def _refuse_foreign_requests(served: ASGIApp, names: AllowedHostNames) -> ASGIApp:
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


PAGE_ROUTES = (
    PageRoute(SIGN_IN, sign_in_pages.show_sign_in, role=None),
    PageRoute(SIGN_IN, sign_in_pages.sign_in_with_password, role=None, is_form=True),
    PageRoute("/sign-out", sign_in_pages.sign_out, Role.VIEWER, is_form=True),
    PageRoute("/sign-in/openid", sign_in_pages.redirect_to_provider, role=None),
    PageRoute(ANSWER_PATH, sign_in_pages.finish_provider_sign_in, role=None),
    PageRoute("/", start_page_and_remedies.show_all_tenants),
    PageRoute("/t/{tenant}", start_page_and_remedies.show_tenant),
    PageRoute("/t/{tenant}/runs", run_pages.show_runs),
    PageRoute("/t/{tenant}/runs/calendar", job_calendar_page.show_calendar),
    PageRoute("/t/{tenant}/runs/{run}", run_pages.show_run),
    PageRoute("/t/{tenant}/runs/{run}/delivered", run_pages.show_delivered_records),
    PageRoute("/t/{tenant}/month/{month}", month_summary_page.show_month),
    PageRoute("/t/{tenant}/do/{action}", action_and_started_command_pages.show_preview, Role.OPERATOR),
    PageRoute("/t/{tenant}/do/{action}", action_and_started_command_pages.start_action, Role.OPERATOR, is_form=True),
    PageRoute("/t/{tenant}/commands", action_and_started_command_pages.show_started_commands, Role.OPERATOR),
    PageRoute("/t/{tenant}/commands/{command}", action_and_started_command_pages.show_started_command, Role.OPERATOR),
    PageRoute("/t/{tenant}/connections", connections_page.show_connections),
    PageRoute("/t/{tenant}/connections/check", connections_page.check_connections, Role.OPERATOR, is_form=True),
    PageRoute(
        "/t/{tenant}/connections/subscriptions", connections_page.list_subscriptions, Role.OPERATOR, is_form=True
    ),
    PageRoute("/t/{tenant}/migration", migration_pages.show_migration),
    PageRoute("/t/{tenant}/migration/sign-off", migration_pages.show_sign_off_requirements),
    PageRoute("/t/{tenant}/settings", settings_and_schedule_pages.show_settings),
    PageRoute("/t/{tenant}/settings/schedule", settings_and_schedule_pages.show_schedule),
    PageRoute("/t/{tenant}/records", open_records_pages.show_counts_or_search),
    PageRoute("/t/{tenant}/records/{state}", open_records_pages.show_records_in_state),
    PageRoute("/t/{tenant}/record", record_page.show_record),
    PageRoute("/t/{tenant}/record", record_page.show_record_fetched_live, Role.OPERATOR, is_form=True),
    PageRoute("/t/{tenant}/approvals", pending_approvals_page.show_approvals),
    PageRoute("/t/{tenant}/codes/{code}", error_code_page.show_error_code),
    PageRoute("/t/{tenant}/files", imported_files_page.show_imported_files),
    PageRoute("/t/{tenant}/audit", audit_log_page.show_audit_log),
)

_CLIENTS = ConnectionLimits(header_s=10.0, body_s=20.0, answer_s=30.0, connections=64)
_THIS_MACHINE = Protection()
_LIMITS = ServerLimits(clients=_CLIENTS, accepted_at_once=16, queued=128, stops_within_s=2)


@contextmanager
def serve_console_in_thread(
    tenants: Tenants,
    clock: Clock,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    allowed_hosts: Iterable[str] = (),
    protection: Protection = _THIS_MACHINE,
) -> Iterator[str]:
    """Serve the pages and yield the base address. *allowed_hosts* are as in `AllowedHostNames`.

    Raises ConfigError if the console would be reachable beyond this machine without TLS or sign-in.
    """

    def refused(error: OSError) -> ConfigError:
        hint = "Stop the process that listens there, or use another port."
        return ConfigError(
            f"cannot serve the console: {error.strerror}", where=f"{host}:{port}", hint=hint, code="port_unavailable"
        )

    protection.raise_if_unprotected(host)
    sign_in, user = protection.make_sign_in(clock), local_user_as_administrator()
    console = Console(tenants, TenantOverviewCache(tenants, clock), clock, sign_in=sign_in)
    names = AllowedHostNames(allowed_hosts, "crossdock console")
    served = build_web_app(console, PAGE_ROUTES, names, sign_in.person_of_session if sign_in else lambda _, __: user)
    guarded, tls = protection.wrap_app_with_proxy_checks(served), protection.self_renewing_tls_context()
    try:
        with serve_in_thread(guarded, _LIMITS, host, port, name="console", address_error=refused, tls=tls) as base_url:
            yield base_url
    finally:
        console.overviews.stop_background_reading()
        console.background_readings.wait_for_reads_in_progress()
        tenants.close_open_states()
