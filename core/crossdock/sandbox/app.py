"""One sandbox: its storage, the platform's API, and the doors behind which it tells what really happened."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from crossdock.errors import ConfigError
from crossdock.sandbox import admission, openapi, operations, reading, storage
from crossdock.sandbox.operations import Call
from crossdock.sandbox.problems import ProblemError
from crossdock.sandbox.resources import COLLECTIONS, Collection

logger = logging.getLogger(__name__)

TENANT = "sandbox"
_DOORS = ("/openapi.json", "/_sandbox/health", "/_sandbox/effects", "/_sandbox/requests", "/_sandbox/keys")
_MEDIA_TYPES = {"POST": ("application/json",), "PATCH": ("application/merge-patch+json", "application/json")}


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """Limits and manners of one sandbox."""

    rate_per_min: int = 10_000  # what a credential's bucket regains, as documented
    burst: int = 2_000  # what a full bucket holds, an assumption
    max_body_bytes: int = 1 << 20  # a longer request body is answered 413
    delay_s: float = 0.0  # by how much each API answer is held back after its effect; meanwhile its key is running

    def __post_init__(self) -> None:
        for name, least in (("rate_per_min", 1), ("burst", 1), ("max_body_bytes", 1), ("delay_s", 0)):
            if getattr(self, name) < least:
                raise ConfigError("is too small", where=f"sandbox {name}", hint=f"Give at least {least}.")


class Sandbox(AbstractContextManager["Sandbox"]):
    """The platform, emulated over one directory, which is made if it is not there.

    It has a ``tenant``, ``keys`` (the credentials in force, by id), and an ASGI application, ``app``. Close it, or use
    it as a context manager. *clock* gives seconds since the epoch, for times, limits and the life of idempotency keys.
    """

    def __init__(
        self, data_dir: Path, settings: SandboxSettings | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.tenant = TENANT
        self._settings, self._clock = settings or SandboxSettings(), clock
        self._path = data_dir / "sandbox.sqlite3"
        self._reader = storage.connect(self._path)
        self._reader.executescript(storage.SCHEMA)
        self._writing = storage.connect(self._path)
        self._writer = storage.Writer(self._writing)
        rows = self._reader.execute("SELECT id, tenant, key_hash FROM credentials")
        self.keys = {row[0]: admission.Credential(*row) for row in rows}
        self._limits = admission.Limits(self._settings.rate_per_min, self._settings.burst)
        self._log = reading.RequestLog()
        self._running: set[tuple[str, str | None]] = set()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._writing.close()
        self._reader.close()

    def new_key(self, tenant: str = TENANT) -> str:
        """Make one more API key; it is told here and never again. Not for the event loop's thread."""
        credential, key = admission.mint(tenant)
        with closing(storage.connect(self._path)) as connection:
            connection.execute("INSERT INTO credentials (id, tenant, key_hash) VALUES (?, ?, ?)", credential)
        self.keys[credential.id] = credential
        return key

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        request = Request(scope, receive)
        try:
            response = await (self._open(request) if scope["path"] in _DOORS else self._call(request))
        except ClientDisconnect:  # half a body: nobody listens, and nothing has happened
            return
        await response(scope, receive, send)

    async def _open(self, request: Request) -> Response:
        """Answer at one of the sandbox's own doors; they need no credential, and all but one are for this machine."""
        path, peer = request.scope["path"], request.client
        try:
            allowed = "POST" if path == "/_sandbox/keys" else "GET"
            if request.method != allowed:
                raise ProblemError(405, "This path has no such method.", headers={"allow": allowed})
            if path == "/openapi.json":
                return Response(json.dumps(openapi.document()), media_type=reading.JSON)
            if peer is None or not ipaddress.ip_address(peer.host).is_loopback:
                raise ProblemError(403, "/_sandbox answers this machine alone.")
            match path:
                case "/_sandbox/effects":
                    return reading.effects(self._reader, request.query_params)
                case "/_sandbox/requests":
                    return self._log.answer(request.query_params)
                case "/_sandbox/keys":
                    key = await asyncio.to_thread(self.new_key)
                    told = json.dumps({"api_key": key, "credential": key.split("_")[1]})
                    return Response(told, 201, media_type=reading.JSON)
            self._reader.execute("SELECT 1 FROM stored")
            return Response('{"status": "ok"}', media_type=reading.JSON)
        except ProblemError as problem:
            return problem.response

    async def _call(self, request: Request) -> Response:
        body = b""
        async for chunk in request.stream():  # to its end even if it is too long, so that the client then listens
            if len(body) <= self._settings.max_body_bytes:
                body += chunk
        path, headers = request.scope["path"], request.headers
        call = Call(request.method, path, headers, body, self._clock(), self._limits.policy)
        noted = {"method": call.method, "path": path, "idempotencyKey": headers.get("idempotency-key")}
        try:
            response = await self._answer(call, request.query_params)
            if self._settings.delay_s:
                await asyncio.sleep(self._settings.delay_s)
        finally:
            self._running.discard((call.caller.id, call.key))
        response.headers.update({**call.limits, "x-request-id": call.id})
        noted |= {"at": call.at, "requestId": call.id, "credential": call.caller.id or None}
        self._log.note(response.status_code, **noted)
        return response

    async def _answer(self, call: Call, query: Mapping[str, str]) -> Response:
        try:
            call.caller = admission.prove(self.keys, call.headers)
            call.limits = self._limits.take(call.caller, call.now)
            collection, target = _route(call)
            if call.method != "GET":
                return await self._change(call, collection, target)
            if not target:
                return reading.page(self._reader, collection, call.caller.tenant, query)
            text, tag = reading.stored(self._reader, collection, call.caller.tenant, target)
            return Response(text, 200, {"etag": tag}, reading.JSON)
        except ProblemError as problem:
            return problem.response
        except Exception:
            logger.exception("request %s failed", call.id)
            return ProblemError(500, "The sandbox itself failed; its log says how.").response

    async def _change(self, call: Call, collection: Collection, target: str) -> Response:
        key = _idempotency_key(call)
        accepted = _MEDIA_TYPES.get(call.method)
        if accepted and call.headers.get("content-type", "").partition(";")[0].strip().lower() not in accepted:
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
        work = partial(operations.execute, call=call, collection=collection, target=target)
        return await self._writer.run(work)


def _route(call: Call) -> tuple[Collection, str]:
    """The collection, and which of it is meant, "" for the collection itself."""
    above, _, target = call.path.rpartition("/")
    collection = COLLECTIONS.get(above) if target else None
    if call.path in COLLECTIONS:
        collection, target = COLLECTIONS[call.path], ""
    if collection is None:
        raise ProblemError(404, "There is nothing at this path.")
    allowed = ("GET", "PATCH", "DELETE") if target else ("GET", "POST")
    if call.method not in allowed:
        raise ProblemError(405, "This path has no such method.", headers={"allow": ", ".join(allowed)})
    return collection, target


def _idempotency_key(call: Call) -> str | None:
    """The key, which may be quoted as a structured field string."""
    header = call.headers.get("idempotency-key")
    key = header[1:-1] if header and re.fullmatch('".*"', header) else header
    if key is not None and not re.fullmatch("[ -~]{1,255}", key):
        raise ProblemError(400, "Idempotency-Key must be 1 to 255 printable ASCII characters.")
    return key
