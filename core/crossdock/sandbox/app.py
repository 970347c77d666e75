"""The sandbox as an ASGI application: its settings, and the way from a request to its answer."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct, field
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from crossdock.errors import ConfigError
from crossdock.sandbox import (
    access_control,
    api_keys,
    api_routes,
    database,
    effects_log,
    fault_and_clock_controls,
    oauth_clients_and_tokens,
    oauth_endpoints,
    openapi_document,
    openapi_schemas,
    page_routes,
    read_operations,
    strict_json,
    webhook_operations,
    write_operations,
)
from crossdock.sandbox.access_control import Caller
from crossdock.sandbox.api_call import ApiCall
from crossdock.sandbox.api_keys import DEFAULT_TENANT, ApiKeyStore
from crossdock.sandbox.api_routes import find_resource_route
from crossdock.sandbox.fault_and_clock_controls import AdjustableClock, FaultAndClockControls
from crossdock.sandbox.fault_injection import FaultSet, RequestFaults
from crossdock.sandbox.oauth_clients_and_tokens import OAuthClientStore
from crossdock.sandbox.oauth_endpoints import OAuthEndpoints
from crossdock.sandbox.page_routes import SandboxPage
from crossdock.sandbox.problem_errors import ProblemError, convert_problem_to_plain_text, method_not_allowed_error
from crossdock.sandbox.rate_limiter import RateLimiter, RateLimitHeaderDialect
from crossdock.sandbox.request_log import RequestLog
from crossdock.sandbox.rfc3339 import instant_text
from crossdock.sandbox.webhook_dispatcher import WebhookDispatcher
from crossdock.sandbox.webhook_transport import WebhookTransport
from crossdock.values.serving import AllowedHostNames, ConnectionLimits
from crossdock.values.serving.request_body_limits import media_type, read_body_cut_if_longer
from crossdock.values.web_address_checks import is_loopback

PREFIXES = ("/openapi.json", "/schemas/")


def answer_openapi_request(request: Request) -> Response:
    if request.method != "GET":
        raise method_not_allowed_error("GET")
    path, base_url = request.scope["path"], str(request.base_url).rstrip("/")
    if path == "/openapi.json":
        return JSONResponse(openapi_document.build_openapi_document())
    name = path.removeprefix("/schemas/")
    if path.startswith("/schemas/") and name.endswith(".json"):
        schema = openapi_schemas.standalone_schema(name.removesuffix(".json"), base_url)
        if schema is not None:
            return JSONResponse(schema, media_type="application/schema+json")
    raise ProblemError(404, "There is nothing at this path.")


logger = logging.getLogger(__name__)

_OWN_PREFIXES = (*PREFIXES, page_routes.DOCUMENTATION_PATH, page_routes.PREFIX, "/_sandbox/")
_MAX_OWN_BODY_BYTES = 64 << 10
_JSON = "application/json"
_MEDIA_TYPES = {"POST": (_JSON,), "PATCH": ("application/merge-patch+json", _JSON)}

Profile = Literal[
    "full",
    "no-idempotency",  # Idempotency-Key is ignored, and effects have no key
    "bare",  # the same, and no look-up by externalId, rate limit headers, Retry-After or problem documents
]


class SandboxSettings(Struct, frozen=True, kw_only=True):
    rate_per_min: int = 10_000  # tokens that a credential's bucket gains, as documented
    burst: int = 2_000  # tokens in a full bucket, an assumption
    max_body_bytes: int = 1 << 20  # a longer request body is answered 413
    max_items: int = 10_000  # an invoice or order with more lines is answered 422
    delay_s: float = 0.0  # how long each response is held back after its effect; meanwhile its key is running
    rate_headers: RateLimitHeaderDialect = "draft10"
    webhook_timeout_s: float = 15.0  # for an attempt to deliver a webhook
    token_life_s: int = 3_600  # how long an access token is valid, an assumption
    profile: Profile = "full"
    faults: FaultSet = field(default_factory=FaultSet)
    allowed_hosts: tuple[str, ...] = ()  # host names, besides this machine's, for everything but the platform's API
    connection_limits: ConnectionLimits = field(default_factory=ConnectionLimits)

    def __post_init__(self) -> None:
        least_of = {"rate_per_min": 1, "burst": 1, "max_body_bytes": 1, "max_items": 1, "delay_s": 0}
        least_of |= {"token_life_s": 1, "webhook_timeout_s": 1}
        for name, least in least_of.items():
            if getattr(self, name) < least:
                raise ConfigError(
                    "is too small", where=f"sandbox {name}", hint=f"Give at least {least}.", code="option_value_invalid"
                )
        for name, known in (("profile", get_args(Profile)), ("rate_headers", get_args(RateLimitHeaderDialect))):
            if getattr(self, name) not in known:
                raise ConfigError(
                    "is not known",
                    where=f"sandbox {name}",
                    hint=f"Use one of: {', '.join(known)}.",
                    code="option_value_invalid",
                )


class Sandbox(AbstractContextManager["Sandbox"]):
    """The emulated platform on one data directory, which is created if it does not exist.

    Close it, or use it as a context manager. *clock* gives seconds since the epoch, for times, limits and the life of
    idempotency keys.
    """

    def __init__(
        self, data_dir: Path, settings: SandboxSettings | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings or SandboxSettings()
        self._names = AllowedHostNames(self._settings.allowed_hosts, "crossdock sandbox")
        self._keyring = ApiKeyStore(data_dir)
        self.clients = OAuthClientStore(data_dir)
        self.tenant = DEFAULT_TENANT
        self._bare = self._settings.profile == "bare"
        self._reader = database.open_database(data_dir / database.DATABASE_FILE_NAME)
        self._writing = database.open_database(data_dir / database.DATABASE_FILE_NAME)
        self._writer = database.GroupCommitWriter(self._writing)
        clock = AdjustableClock(clock, self._reader)
        self._controls = FaultAndClockControls(self._settings.faults, clock, self._writer)
        self._oauth = OAuthEndpoints(self.clients, self._reader, self._writer, clock, self._settings.token_life_s)
        dialect = "none" if self._bare else self._settings.rate_headers
        self._rate_limiter = RateLimiter(self._settings.rate_per_min, self._settings.burst, dialect)
        self._request_log = RequestLog()
        self._webhook_transport = WebhookTransport(self._settings.webhook_timeout_s)
        self.webhooks = WebhookDispatcher(self._reader, self._writer, self._controls, self._webhook_transport)
        self._page = SandboxPage(self._keyring, self.clients, self._execute_webhook_operation_for_page)
        self._running: set[tuple[str, str | None]] = set()  # credentials and keys of requests that are in progress

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._webhook_transport.close()
        self._writing.close()
        self._reader.close()
        self._keyring.close()
        self.clients.close()

    @property
    def connection_limits(self) -> ConnectionLimits:
        return self._settings.connection_limits

    @property
    def callers_by_key_id(self) -> Mapping[str, Caller]:
        return self._keyring.valid_callers_by_key_id()

    def new_key(self, tenant: str = DEFAULT_TENANT, *scopes: str) -> str:
        """Create an API key, which is not stored. Do not call this in the thread of the event loop."""
        return self._keyring.create_credential(tenant, scopes)[1]

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, path = Request(scope, receive), scope["path"]
        own = path == "/" or path.startswith(_OWN_PREFIXES)
        try:
            if path in oauth_endpoints.PATHS:
                response = await self._answer_oauth(request)
            else:
                response = await (self._answer_page_docs_or_control(request) if own else self._answer_api(request))
        except ClientDisconnect:  # the body is incomplete, and nothing has happened
            return
        await response(scope, receive, send)

    async def _answer_page_docs_or_control(self, request: Request) -> Response:
        """Answer a request to the sandbox itself. Its page and ``/_sandbox`` are answered only to this machine.

        They need no credential, so Host and Origin are checked: pages of other sites in a browser here are refused.
        """
        path, peer = request.scope["path"], request.client
        try:
            if refusal := self._names.refusal_reason(request.scope):
                raise ProblemError(403, refusal)
            if path == page_routes.DOCUMENTATION_PATH:
                return page_routes.answer_documentation(request)
            if path != "/" and not path.startswith((page_routes.PREFIX, "/_sandbox/")):
                return answer_openapi_request(request)
            is_forwarded = any(each.strip(", ") for each in request.headers.getlist("x-forwarded-for"))
            if peer is None or is_forwarded or not is_loopback(peer.host):
                raise ProblemError(403, "The page and /_sandbox answer only requests from this machine.")
            if not path.startswith("/_sandbox/"):
                return await self._page.answer(request)
            return await self._answer_control_request(request)
        except ProblemError as problem:
            return problem.response

    async def _answer_control_request(self, request: Request) -> Response:
        path, body = request.scope["path"], await _read_control_body(request)
        if path == api_keys.PATH or path.startswith(f"{api_keys.PATH}/"):
            return await api_keys.answer_keys_request(self._keyring, request, body)
        if path == oauth_clients_and_tokens.PATH or path.startswith(f"{oauth_clients_and_tokens.PATH}/"):
            return await oauth_clients_and_tokens.answer_clients_request(self.clients, request, body)
        if path in fault_and_clock_controls.PATHS:
            response = await self._controls.answer_request(request, body)
            self.webhooks.wake()
            return response
        return self._answer_log_or_health_request(request)

    def _answer_log_or_health_request(self, request: Request) -> Response:
        if request.method != "GET":
            raise method_not_allowed_error("GET")
        match request.scope["path"]:
            case "/_sandbox/effects":
                return effects_log.list_effects(self._reader, request.query_params)
            case "/_sandbox/requests":
                return self._request_log.answer_query(request.query_params)
            case "/_sandbox/health":
                self._reader.execute("SELECT 1 FROM stored")
                return JSONResponse({"status": "ok"})
        raise ProblemError(404, "There is nothing at this path.")

    async def _answer_oauth(self, request: Request) -> Response:
        response, client = await self._oauth.answer_request(request)
        facts = {"method": request.method, "path": request.scope["path"], "idempotencyKey": None, "credential": client}
        self._request_log.add(response.status_code, **facts, at=instant_text(self._controls.clock()), faults=())
        return response

    async def _answer_api(self, request: Request) -> Response:
        body = await read_body_cut_if_longer(request, self._settings.max_body_bytes)
        path, headers = request.scope["path"], request.headers
        now, policy = self._controls.clock(), self._rate_limiter.policy_headers
        call = ApiCall(request.method, path, headers, body, now, policy, self._settings.max_items)
        faults = self._controls.faults.faults_for_request(call.method, path)
        facts = {"method": call.method, "path": path, "idempotencyKey": headers.get("idempotency-key")}
        try:
            response = faults.response_before_execution() or await self._answer_with_faults(
                call, request.query_params, faults
            )
        finally:
            self._running.discard((call.caller.id, call.key))
        if self._bare:
            convert_problem_to_plain_text(response)
        if "throttle" not in faults.struck:
            response.headers.update({**call.rate_limit_headers, "x-request-id": call.id})
        facts |= {"at": call.at, "requestId": call.id, "credential": call.caller.id or None}
        self._request_log.add(response.status_code, **facts, faults=faults.struck)
        return response

    async def _answer_with_faults(self, call: ApiCall, query: Mapping[str, str], faults: RequestFaults) -> Response:
        response = await self._authenticate_and_execute(call, query)
        if delay_s := self._settings.delay_s + faults.delay_s():
            await asyncio.sleep(delay_s)
        if call.rate_limit_headers and (claimed := faults.draw_false_bucket_level()):
            call.rate_limit_headers = self._rate_limiter.false_headers(call.now, full=claimed == "full")
        return faults.disturb_response(response)

    async def _authenticate_and_execute(self, call: ApiCall, query: Mapping[str, str]) -> Response:
        try:
            find_token = partial(oauth_clients_and_tokens.find_caller_by_token, self._reader, now=call.now)
            call.caller = access_control.authenticate(self.callers_by_key_id, find_token, call.headers)
            call.rate_limit_headers = self._rate_limiter.take_token_or_refuse(call.caller, call.now)
            if call.path.startswith(api_routes.WEBHOOK_PATH_PREFIX):
                return await self._execute_webhook_operation(call, query)
            route = find_resource_route(call.method, call.path)
            access_control.raise_unless_authorized_for_resource(call.caller, route.collection.kind.name, call.method)
            if call.method != "GET":
                without_body = route.operation == "approve" and not call.body
                execute = partial(write_operations.execute_write, call=call, route=route)
                return await self._execute_write(call, execute, without_body=without_body)
            if self._bare and "externalId" in query:
                raise ProblemError(400, "1 unknown query parameter.")
            return read_operations.execute_read(self._reader, route, call.caller, query)
        except ProblemError as problem:
            return problem.response
        except Exception:
            logger.exception("request %s failed", call.id)
            return ProblemError(500, "Internal error of the sandbox; see its log.").response

    async def _execute_webhook_operation(self, call: ApiCall, query: Mapping[str, str]) -> Response:
        route = api_routes.find_webhook_route(call.method, call.path)
        webhook_operations.raise_unless_webhooks_permitted(call)
        if call.method == "GET":
            return webhook_operations.execute_read(self._reader, call, route, query)
        execute = partial(webhook_operations.execute_write, call=call, route=route)
        return await self._execute_write(call, execute, without_body=not route.has_input and not call.body)

    async def _execute_webhook_operation_for_page(
        self, tenant: str, method: str, path: str, query: Mapping[str, str], body: Any
    ) -> Response:
        """Execute an operation on webhooks for the page: without a credential, rate limit, faults and log."""
        content = b"" if body is None else strict_json.write_canonical(body).encode()
        call = ApiCall(
            method, path, {"content-type": _JSON}, content, self._controls.clock(), {}, self._settings.max_items
        )
        call.caller = Caller("page", tenant, b"", "*:write")
        try:
            return await self._execute_webhook_operation(call, query)
        except ProblemError as problem:
            return problem.response

    async def _execute_write(self, call: ApiCall, execute: database.Work[Response], *, without_body: bool) -> Response:
        key = _idempotency_key(call) if self._settings.profile == "full" else None
        accepted = None if without_body else _MEDIA_TYPES.get(call.method)
        if accepted and media_type(call.headers) not in accepted:
            headers = {"accept-patch" if call.method == "PATCH" else "accept": ", ".join(accepted)}
            raise ProblemError(415, f"Content-Type must be {' or '.join(accepted)}.", headers=headers)
        if len(call.body) > self._settings.max_body_bytes:
            raise ProblemError(413, f"The body is longer than {self._settings.max_body_bytes} bytes.")
        if key is not None:
            if (call.caller.id, key) in self._running:
                headers = {"retry-after": "1"}
                raise ProblemError(409, "A request with this Idempotency-Key is in progress.", headers=headers)
            self._running.add((call.caller.id, key))
            call.key = key
        response = await self._writer.run_in_transaction(execute)
        self.webhooks.wake()
        return response


async def _read_control_body(request: Request) -> bytes:
    """Read JSON of at most 64 KiB, or nothing. Browsers send this media type across sites only if the server agrees."""
    body = await read_body_cut_if_longer(request, _MAX_OWN_BODY_BYTES)
    if (body or "content-type" in request.headers) and media_type(request.headers) != _JSON:
        raise ProblemError(415, f"Send the body as Content-Type: {_JSON}.", headers={"accept": _JSON})
    if len(body) > _MAX_OWN_BODY_BYTES:
        raise ProblemError(413, f"The body is longer than {_MAX_OWN_BODY_BYTES} bytes. Send a shorter one.")
    return body


def _idempotency_key(call: ApiCall) -> str | None:
    """Return the key, which may be quoted as a structured field string."""
    header = call.headers.get("idempotency-key")
    if header is not None and not re.fullmatch(openapi_document.KEY_PATTERN, header):
        raise ProblemError(400, "Idempotency-Key must be 1 to 255 printable ASCII characters, quoted or not.")
    return header[1:-1] if header and header.startswith('"') else header
