"""One sandbox: its storage, its API, and the doors behind which it tells what really happened."""

from __future__ import annotations

import ipaddress
import json
import sqlite3
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from crossdock.sandbox import auth, openapi, reading, storage
from crossdock.sandbox.answers import Answer, ProblemError
from crossdock.sandbox.api import Api
from crossdock.sandbox.requestlog import RequestLog
from crossdock.sandbox.settings import SandboxSettings

Door = Callable[[Request], Awaitable[Answer]]


class Sandbox:
    """The platform, emulated over one directory. Close it, or use it as a context manager.

    Attributes:
        app: The ASGI application.
        tenant: The tenant that a first start makes.

    Args:
        data_dir: Where everything is kept; made if it is not there.
        settings: Limits and manners.
        clock: Seconds since the epoch: feeds times, the rate limit and how long idempotency keys are kept.
    """

    def __init__(
        self, data_dir: Path, settings: SandboxSettings | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.tenant = auth.TENANT
        self._path = data_dir / "sandbox.sqlite3"
        self._reader = storage.connect(self._path)
        storage.prepare(self._reader)
        self._writer = storage.Writer(storage.connect(self._path))
        rows = self._reader.execute("SELECT id, tenant, key_hash FROM credentials")
        self._keys = auth.Keys(auth.Credential(*row) for row in rows)
        self._log = RequestLog()
        api = Api(
            settings=settings or SandboxSettings(),
            keys=self._keys,
            writer=self._writer,
            reader=self._reader,
            log=self._log,
            clock=clock,
        )
        self.app = Starlette(
            routes=[
                _route("/openapi.json", self._openapi),
                _route("/_sandbox/health", _private(self._health)),
                _route("/_sandbox/effects", _private(self._effects)),
                _route("/_sandbox/requests", _private(self._requests)),
                _route("/_sandbox/keys", _private(self._make_key), method="POST"),
                Mount("/", api),
            ]
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._writer.close()
        self._reader.close()

    @property
    def has_keys(self) -> bool:
        return len(self._keys) > 0

    @property
    def port(self) -> int:
        """The port it was served on last; 0 if it never was."""
        row = self._reader.execute("SELECT value FROM settings WHERE name = 'port'").fetchone()
        return int(row[0]) if row else 0

    def remember_port(self, port: int) -> None:
        self._reader.execute("INSERT OR REPLACE INTO settings VALUES ('port', ?)", (str(port),))

    def new_key(self, tenant: str = auth.TENANT) -> str:
        """Make one more API key; it is told here and never again. Not for the event loop's thread."""
        credential, key = auth.mint(tenant)
        connection = storage.connect(self._path)
        try:
            _keep(connection, credential)
        finally:
            connection.close()
        self._keys.add(credential)
        return key

    async def _make_key(self, _: Request) -> Answer:
        credential, key = auth.mint(self.tenant)
        await self._writer.run(partial(_keep, credential=credential))
        self._keys.add(credential)
        return _told({"api_key": key, "credential": credential.id}, status=201)

    async def _health(self, _: Request) -> Answer:
        self._reader.execute("SELECT 1 FROM settings")
        return _told({"status": "ok"})

    async def _effects(self, request: Request) -> Answer:
        return reading.effects(self._reader, request.query_params)

    async def _requests(self, request: Request) -> Answer:
        return self._log.answer(request.query_params)

    @staticmethod
    async def _openapi(_: Request) -> Answer:
        return Answer(200, openapi.document_bytes(), {"content-type": "application/json"})


def _keep(connection: sqlite3.Connection, credential: auth.Credential) -> None:
    row = (credential.id, credential.tenant, credential.key_hash)
    connection.execute("INSERT INTO credentials (id, tenant, key_hash) VALUES (?, ?, ?)", row)


def _told(value: dict[str, str], status: int = 200) -> Answer:
    return Answer(status, json.dumps(value).encode(), {"content-type": "application/json"})


def _route(path: str, door: Door, method: str = "GET") -> Route:
    async def endpoint(request: Request) -> Response:
        try:
            if request.method != method:
                raise ProblemError(405, "This path has no such method.", headers={"allow": method})
            answer = await door(request)
        except ProblemError as problem:
            answer = problem.answer()
        return Response(answer.body, answer.status, answer.headers)

    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]  # so that the 405 is a problem document too
    return Route(path, endpoint, methods=methods)


def _private(door: Door) -> Door:
    """Open *door* for this machine alone: it needs no credential."""

    async def guarded(request: Request) -> Answer:
        if request.client is None or not ipaddress.ip_address(request.client.host).is_loopback:
            raise ProblemError(403, "/_sandbox answers this machine alone.")
        return await door(request)

    return guarded
