"""One sandbox: its storage, the platform's API, and the doors behind which it tells what really happened."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from crossdock.addresses import is_loopback
from crossdock.errors import ConfigError
from crossdock.sandbox import (
    access_control,
    api_keys,
    database,
    docs,
    execution,
    openapi_document,
    read_requests,
    request_bodies,
    runtime_controls,
)
from crossdock.sandbox.access_control import Caller
from crossdock.sandbox.api_keys import TENANT, Keyring
from crossdock.sandbox.fault_injection import Encounter, FaultSet
from crossdock.sandbox.problem_answers import ProblemError, make_plain
from crossdock.sandbox.rate_limit_headers import Dialect
from crossdock.sandbox.runtime_controls import Clock, Controls
from crossdock.sandbox.url_routes import Route, find_route
from crossdock.sandbox.write_requests import Call
from crossdock.serving import ConnectionLimits, ServerNames

logger = logging.getLogger(__name__)

_DOORS = (*docs.PATHS, "/_sandbox/")
_MEDIA_TYPES = {"POST": ("application/json",), "PATCH": ("application/merge-patch+json", "application/json")}

Profile = Literal[
    "full",
    "no-idempotency",  # Idempotency-Key means nothing; effects then have no key
    "bare",  # nor is there a look-up by externalId, a rate header, Retry-After, or a problem document
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """Limits and manners of one sandbox."""

    rate_per_min: int = 10_000  # what a credential's bucket regains, as documented
    burst: int = 2_000  # what a full bucket holds, an assumption
    max_body_bytes: int = 1 << 20  # a longer request body is answered 413
    max_items: int = 10_000  # an invoice or order with more lines is answered 422
    delay_s: float = 0.0  # by how much each API answer is held back after its effect; meanwhile its key is running
    rate_headers: Dialect = "draft10"  # how answers tell of the rate limit
    profile: Profile = "full"
    faults: FaultSet = field(default_factory=FaultSet)
    allowed_hosts: tuple[str, ...] = ()  # names besides those of this machine by which its own pages may be asked
    connection_limits: ConnectionLimits = field(default_factory=ConnectionLimits)

    def __post_init__(self) -> None:
        least_of = {"rate_per_min": 1, "burst": 1, "max_body_bytes": 1, "max_items": 1, "delay_s": 0}
        for name, least in least_of.items():
            if getattr(self, name) < least:
                raise ConfigError("is too small", where=f"sandbox {name}", hint=f"Give at least {least}.")
        for name, known in (("profile", get_args(Profile)), ("rate_headers", get_args(Dialect))):
            if getattr(self, name) not in known:
                raise ConfigError("is not known", where=f"sandbox {name}", hint=f"There are: {', '.join(known)}.")


class Sandbox(AbstractContextManager["Sandbox"]):
    """The platform, emulated over one directory, which is made if it is not there.

    It has a ``tenant``, ``keys`` (the credentials in force, by id), and an ASGI application, ``app``. Close it, or use
    it as a context manager. *clock* gives seconds since the epoch, for times, limits and the life of idempotency keys.
    """

    def __init__(
        self, data_dir: Path, settings: SandboxSettings | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings or SandboxSettings()
        self._names = ServerNames(self._settings.allowed_hosts, "crossdock sandbox")
        self._keyring = Keyring(data_dir)
        self.tenant = TENANT
        self._bare = self._settings.profile == "bare"
        self._reader = database.connect(data_dir / database.FILE_NAME)
        self._writing = database.connect(data_dir / database.FILE_NAME)
        self._writer = database.Writer(self._writing)
        self._controls = Controls(self._settings.faults, Clock(clock, self._reader), self._writer)
        dialect = "none" if self._bare else self._settings.rate_headers
        self._limits = access_control.Limits(self._settings.rate_per_min, self._settings.burst, dialect)
        self._log = read_requests.RequestLog()
        self._running: set[tuple[str, str | None]] = set()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._writing.close()
        self._reader.close()
        self._keyring.close()

    @property
    def connection_limits(self) -> ConnectionLimits:
        """For who serves its application."""
        return self._settings.connection_limits

    @property
    def keys(self) -> Mapping[str, Caller]:
        """The credentials in force, by id, whoever made them."""
        return self._keyring.current()

    def new_key(self, tenant: str = TENANT, *scopes: str) -> str:
        """Make one more API key; it is told here and never again. Not for the event loop's thread."""
        return self._keyring.add(tenant, scopes)[1]

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        request = Request(scope, receive)
        try:
            response = await (self._open(request) if scope["path"].startswith(_DOORS) else self._call(request))
        except ClientDisconnect:  # half a body: nobody listens, and nothing has happened
            return
        await response(scope, receive, send)

    async def _open(self, request: Request) -> Response:
        """Answer at a door of the sandbox itself: to anybody, and under ``/_sandbox`` to this machine alone.

        No credential is asked for here, so a page of another site must not get in by the browser of somebody who may.
        The platform's API has credentials, which such a page does not know, and may be asked by any name.
        """
        path, peer = request.scope["path"], request.client
        try:
            if wrong := self._names.refusal(request.scope):
                raise ProblemError(403, wrong)
            if path.startswith(docs.PATHS):
                return docs.answer(request)
            if peer is None or not is_loopback(peer.host):
                raise ProblemError(403, "/_sandbox answers this machine alone.")
            body = await request_bodies.read_at_door(request)
            if path == "/_sandbox/keys" or path.startswith("/_sandbox/keys/"):
                return await api_keys.answer(self._keyring, request, body)
            if path in runtime_controls.PATHS:
                return await self._controls.answer(request, body)
            return self._look(request)
        except ProblemError as problem:
            return problem.response

    def _look(self, request: Request) -> Response:
        """Answer at a door behind which nothing can be changed."""
        if request.method != "GET":
            raise ProblemError(405, "This path has no such method.", headers={"allow": "GET"})
        match request.scope["path"]:
            case "/_sandbox/effects":
                return read_requests.effects(self._reader, request.query_params)
            case "/_sandbox/requests":
                return self._log.answer(request.query_params)
            case "/_sandbox/health":
                self._reader.execute("SELECT 1 FROM stored")
                return Response('{"status": "ok"}', media_type=read_requests.JSON)
        raise ProblemError(404, "There is nothing at this path.")

    async def _call(self, request: Request) -> Response:
        body = await request_bodies.read(request, self._settings.max_body_bytes)
        path, headers = request.scope["path"], request.headers
        now, limits = self._controls.clock(), self._limits.policy
        call = Call(request.method, path, headers, body, now, limits, self._settings.max_items)
        met = self._controls.faults.meet(call.method, path)
        noted = {"method": call.method, "path": path, "idempotencyKey": headers.get("idempotency-key")}
        try:
            response = met.instead() or await self._execute(call, request.query_params, met)
        finally:
            self._running.discard((call.caller.id, call.key))
        if self._bare:
            make_plain(response)
        if "throttle" not in met.struck:
            response.headers.update({**call.limits, "x-request-id": call.id})
        noted |= {"at": call.at, "requestId": call.id, "credential": call.caller.id or None}
        self._log.note(response.status_code, **noted, faults=met.struck)
        return response

    async def _execute(self, call: Call, query: Mapping[str, str], met: Encounter) -> Response:
        response = await self._answer(call, query)
        if delay_s := self._settings.delay_s + met.delay_s():
            await asyncio.sleep(delay_s)
        if call.limits and (plenty := met.lie()) is not None:
            call.limits = self._limits.lie(call.now, plenty=plenty)
        return met.after(response)

    async def _answer(self, call: Call, query: Mapping[str, str]) -> Response:
        try:
            call.caller = access_control.prove(self.keys, call.headers)
            call.limits = self._limits.take(call.caller, call.now)
            route = find_route(call.method, call.path)
            access_control.permit(call.caller, route.collection.kind.name, call.method)
            if call.method != "GET":
                return await self._change(call, route)
            if self._bare and "externalId" in query:
                raise ProblemError(400, "1 unknown query parameter.")
            return read_requests.answer(self._reader, route, call.caller.tenant, query)
        except ProblemError as problem:
            return problem.response
        except Exception:
            logger.exception("request %s failed", call.id)
            return ProblemError(500, "The sandbox itself failed; its log says how.").response

    async def _change(self, call: Call, route: Route) -> Response:
        key = _idempotency_key(call) if self._settings.profile == "full" else None
        bodiless = route.operation == "approve" and not call.body
        accepted = None if bodiless else _MEDIA_TYPES.get(call.method)
        if accepted and request_bodies.media_type(call.headers) not in accepted:
            headers = {"accept-patch" if call.method == "PATCH" else "accept": ", ".join(accepted)}
            raise ProblemError(415, f"Content-Type must be {' or '.join(accepted)}.", headers=headers)
        if len(call.body) > self._settings.max_body_bytes:
            raise ProblemError(413, "The body is too long.")
        if key is not None:
            if (call.caller.id, key) in self._running:
                headers = {"retry-after": "1"}
                raise ProblemError(409, "A request under this Idempotency-Key is still running.", headers=headers)
            self._running.add((call.caller.id, key))
            call.key = key
        work = partial(execution.execute, call=call, route=route)
        return await self._writer.run(work)


def _idempotency_key(call: Call) -> str | None:
    """The key, which may be quoted as a structured field string."""
    header = call.headers.get("idempotency-key")
    if header is not None and not re.fullmatch(openapi_document.KEY_PATTERN, header):
        raise ProblemError(400, "Idempotency-Key must be 1 to 255 printable ASCII characters, quoted or not.")
    return header[1:-1] if header and header.startswith('"') else header
