"""Serving a sandbox: in this process until a signal ends it, or in a thread of a program that needs one."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from crossdock.errors import ConfigError
from crossdock.sandbox.app import Sandbox, SandboxSettings
from crossdock.sandbox.fault_injection import BreakableConnection
from crossdock.values import serving
from crossdock.values.safe_local_files import open_or_create_private_file, replace_file_atomically
from crossdock.values.serving import ConnectionLimits, StoppableServer

Facts = dict[str, str | None]


def print_connection_facts(facts: Facts) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def serve(
    data_dir: Path,
    settings: SandboxSettings | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    new_key: bool = False,
    ready: Callable[[Facts], None] = print_connection_facts,
) -> None:
    """Serve until SIGINT or SIGTERM, then answer the requests that have arrived and return.

    Port 0 is the port of the last start, or a free one at the first. *ready* is called once the sandbox listens, with
    ``base_url``, ``tenant`` and ``api_key``. The key is None unless one is created: at the first start, or for
    *new_key*.

    Raises:
        ConfigError: If the port is taken, or the folder cannot be used or is in use.
    """
    with (
        _lock_data_folder(data_dir),
        Sandbox(data_dir, settings) as sandbox,
        _open_listening_socket(data_dir, host, port) as listener,
    ):
        has_key = any(each.tenant == sandbox.tenant for each in sandbox.callers_by_key_id.values())
        key = sandbox.new_key() if new_key or not has_key else None
        facts = {"base_url": _base_url(listener), "tenant": sandbox.tenant, "api_key": key}
        _Server(sandbox, lambda: ready(facts)).run(sockets=[listener])


class SandboxServer:
    """A sandbox served from a thread of this process while the context is open.

    It has a ``base_url``, a ``tenant``, a new ``api_key``, and the ``sandbox`` itself.
    """

    def __init__(self, data_dir: Path, settings: SandboxSettings | None = None, *, port: int = 0) -> None:
        self._data_dir, self._settings, self._port = data_dir, settings, port
        self._opened = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opened:
            opened.enter_context(_lock_data_folder(self._data_dir))
            self.sandbox = opened.enter_context(Sandbox(self._data_dir, self._settings))
            listener = opened.enter_context(_open_listening_socket(self._data_dir, "127.0.0.1", self._port))
            self.base_url, self.tenant = _base_url(listener), self.sandbox.tenant
            self.api_key = self.sandbox.new_key()
            started = threading.Event()
            server = _Server(self.sandbox, started.set)
            thread = threading.Thread(target=server.run, args=([listener],), name="sandbox", daemon=True)
            thread.start()
            opened.callback(thread.join)
            opened.callback(server.stop)
            if not started.wait(30):
                raise RuntimeError("the sandbox did not start within 30 s")
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def make_server_config(app: ASGIApp, limits: ConnectionLimits | None = None) -> uvicorn.Config:
    return serving.make_uvicorn_config(
        app,
        limits or ConnectionLimits(),
        BreakableConnection,
        timeout_keep_alive=75,  # long: closing an idle connection can make the outcome of a request ambiguous
        timeout_graceful_shutdown=5,
    )


class _Server(StoppableServer):
    """uvicorn with a callback when it listens. It returns after a signal, where uvicorn would raise it again."""

    def __init__(self, sandbox: Sandbox, ready: Callable[[], None]) -> None:
        super().__init__(make_server_config(sandbox.app, sandbox.connection_limits))
        self._ready, self._sandbox = ready, sandbox
        self._webhooks: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._webhooks = asyncio.create_task(self._sandbox.webhooks.run())
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._webhooks is not None:
            self._webhooks.cancel()
            await asyncio.gather(self._webhooks, return_exceptions=True)
        await super().shutdown(sockets=sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  the signature is uvicorn's
        self.force_exit |= self.should_exit and sig == signal.SIGINT
        self.stop()


@contextlib.contextmanager
def _lock_data_folder(data_dir: Path) -> Iterator[None]:
    """Lock the folder: two sandboxes on it would not share rate limits and running idempotency keys."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = open_or_create_private_file(data_dir / "lock")
    except OSError as error:
        raise ConfigError(
            f"the sandbox cannot use this folder: {error.strerror}", where=str(data_dir), code="folder_unusable"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "Use that one, or give another folder with --data."
            raise ConfigError(
                "another sandbox is using this folder", where=str(data_dir), hint=hint, code="sandbox_busy"
            ) from None
        yield


def _open_listening_socket(data_dir: Path, host: str, port: int) -> socket.socket:
    remembered = data_dir / "port"
    wanted = port or (int(remembered.read_text() or 0) if remembered.exists() else 0)
    try:
        bound = socket.create_server((host, wanted), backlog=2048)
    except OSError as error:
        where, hint = f"{host}:{wanted}", "Stop the program that uses this port, or give another port."
        raise ConfigError(
            f"the sandbox cannot listen: {error.strerror}", where=where, hint=hint, code="port_unavailable"
        ) from error
    replace_file_atomically(remembered, str(bound.getsockname()[1]).encode())
    # With the protocol named, because asyncio sets TCP_NODELAY only on such sockets.
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=bound.detach())


def _base_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()
    return f"http://{host}:{port}"
