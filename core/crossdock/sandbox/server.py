"""Serving a sandbox: as a process of its own until a signal ends it, or in a thread of a program that needs one."""

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

from crossdock import serving
from crossdock.errors import ConfigError
from crossdock.sandbox.app import Sandbox, SandboxSettings
from crossdock.sandbox.broken_connections import Connection
from crossdock.serving import ConnectionLimits

Facts = dict[str, str | None]

_BASE_URL = "http://{}:{}"


def print_ready(facts: Facts) -> None:
    """Tell that the sandbox listens: one JSON line on standard output."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def serve(
    data_dir: Path,
    settings: SandboxSettings | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    new_key: bool = False,
    ready: Callable[[Facts], None] = print_ready,
) -> None:
    """Serve until SIGINT or SIGTERM, then answer what has come in and return.

    Port 0 is the port of the last time, or a free one at the first; a taken one is a `ConfigError`. *ready* is called
    once requests are answered, with ``base_url``, ``tenant`` and ``api_key``, which is None unless a key is made now:
    at the first start, or for *new_key*.
    """
    with _alone(data_dir), Sandbox(data_dir, settings) as sandbox, _listen(data_dir, host, port) as listener:
        known = any(each.tenant == sandbox.tenant for each in sandbox.keys.values())
        key = sandbox.new_key() if new_key or not known else None
        facts = {"base_url": _BASE_URL.format(*listener.getsockname()), "tenant": sandbox.tenant, "api_key": key}
        _Server(sandbox, lambda: ready(facts)).run(sockets=[listener])


class SandboxServer:
    """A sandbox served from a thread of this process while the context is open.

    It has a ``base_url``, a ``tenant``, an ``api_key`` that is made for it, and the ``sandbox`` itself.
    """

    def __init__(self, data_dir: Path, settings: SandboxSettings | None = None, *, port: int = 0) -> None:
        self._wanted = data_dir, settings, port
        self._opened = contextlib.ExitStack()

    def __enter__(self) -> Self:
        data_dir, settings, port = self._wanted
        with contextlib.ExitStack() as opened:
            opened.enter_context(_alone(data_dir))
            self.sandbox = opened.enter_context(Sandbox(data_dir, settings))
            listener = opened.enter_context(_listen(data_dir, "127.0.0.1", port))
            self.base_url, self.tenant = _BASE_URL.format(*listener.getsockname()), self.sandbox.tenant
            self.api_key = self.sandbox.new_key()
            started = threading.Event()
            server = _Server(self.sandbox, started.set)
            thread = threading.Thread(target=server.run, args=([listener],), name="sandbox", daemon=True)
            thread.start()
            opened.callback(thread.join)
            opened.callback(setattr, server, "should_exit", True)
            if not started.wait(30):
                raise RuntimeError("the sandbox did not start within 30 s")
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def config(app: ASGIApp, limits: ConnectionLimits | None = None) -> uvicorn.Config:
    """How a sandbox is served; *app* is its own, or one around it."""
    return serving.config(
        app,
        limits or ConnectionLimits(),
        Connection,
        timeout_keep_alive=75,  # long: each idle connection that is closed is a chance of an ambiguous answer
        timeout_graceful_shutdown=5,
    )


class _Server(uvicorn.Server):
    """uvicorn, telling when it is ready, and ending cleanly where uvicorn would raise the signal once more."""

    def __init__(self, sandbox: Sandbox, ready: Callable[[], None]) -> None:
        super().__init__(config(sandbox.app, sandbox.connection_limits))
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready()

    async def main_loop(self) -> None:
        """As uvicorn's own, but an end is noticed at once: tests end hundreds of sandboxes."""
        while not await self.on_tick(0):  # noqa: ASYNC110  uvicorn keeps its end as a flag
            await asyncio.sleep(0.02)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's own, but where nobody is connected there is nobody to wait for."""
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets=sockets)
            return
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  the signature is uvicorn's
        self.force_exit |= self.should_exit and sig == signal.SIGINT
        self.should_exit = True


@contextlib.contextmanager
def _alone(data_dir: Path) -> Iterator[None]:
    """Two sandboxes on one folder would not know each other's limits and running keys."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = (data_dir / "lock").open("w")
    except OSError as error:
        raise ConfigError(f"the sandbox cannot keep its data here: {error.strerror}", where=str(data_dir)) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "Use that one, or give another folder with --data."
            raise ConfigError("another sandbox serves this folder", where=str(data_dir), hint=hint) from None
        yield


def _listen(data_dir: Path, host: str, port: int) -> socket.socket:
    remembered = data_dir / "port"
    wanted = port or (int(remembered.read_text() or 0) if remembered.exists() else 0)
    try:
        bound = socket.create_server((host, wanted), backlog=2048)
    except OSError as error:
        where, hint = f"{host}:{wanted}", "Stop what listens there, or give another port."
        raise ConfigError(f"the sandbox cannot listen: {error.strerror}", where=where, hint=hint) from error
    remembered.write_text(str(bound.getsockname()[1]))
    # Named as TCP, since asyncio sends small answers at once (TCP_NODELAY) only on sockets that say so.
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=bound.detach())
