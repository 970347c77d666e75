"""Serving a sandbox: as a process of its own until a signal ends it, or in a thread of a program that needs one."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import uvicorn

from crossdock.errors import ConfigError
from crossdock.sandbox.app import Sandbox
from crossdock.sandbox.settings import SandboxSettings

Ready = Callable[[dict[str, str | None]], None]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_START_S = 30
_GRACE_S = 5
_KEEP_ALIVE_S = 75  # long: each idle connection that a server closes is a chance of an ambiguous answer


def print_ready(facts: dict[str, str | None]) -> None:
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
    ready: Ready = print_ready,
) -> None:
    """Serve until SIGINT or SIGTERM, then answer what has come in and return.

    Args:
        data_dir: Where the sandbox keeps everything.
        settings: Limits and manners.
        host: The address to listen on.
        port: 0 for the port of the last time, or a free one at the first.
        new_key: Make and tell one more API key; the first start does so anyway.
        ready: Called once requests are answered, with ``base_url``, ``tenant`` and ``api_key`` (None unless made now).

    Raises:
        ConfigError: If the port cannot be listened on.
    """
    with Sandbox(data_dir, settings) as sandbox, _listen(sandbox, host, port) as listener:
        key = sandbox.new_key() if new_key or not sandbox.has_keys else None
        facts = {"base_url": _base_url(listener), "tenant": sandbox.tenant, "api_key": key}
        _Server(sandbox, lambda: ready(facts)).run(sockets=[listener])


class SandboxServer:
    """A sandbox served from a thread of this process, as a context manager.

    Attributes:
        base_url: Where it answers.
        tenant: The tenant that it knows.
        api_key: A key made for this server.
        sandbox: What it serves.
    """

    base_url: str
    tenant: str
    api_key: str
    sandbox: Sandbox

    def __init__(self, data_dir: Path, settings: SandboxSettings | None = None, *, port: int = 0) -> None:
        self._data_dir = data_dir
        self._settings = settings
        self._port = port
        self._running = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opened:
            self.sandbox = opened.enter_context(Sandbox(self._data_dir, self._settings))
            listener = opened.enter_context(_listen(self.sandbox, "127.0.0.1", self._port))
            self.base_url = _base_url(listener)
            self.tenant = self.sandbox.tenant
            self.api_key = self.sandbox.new_key()
            opened.callback(self._serve(listener))
            self._running = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _serve(self, listener: socket.socket) -> Callable[[], None]:
        """Start the thread, and return what ends it."""
        started = threading.Event()
        server = _Server(self.sandbox, started.set)
        thread = threading.Thread(target=server.run, args=([listener],), name="sandbox", daemon=True)

        def stop() -> None:
            server.should_exit = True
            thread.join()

        thread.start()
        if not started.wait(_START_S):
            stop()
            raise RuntimeError(f"the sandbox did not start within {_START_S} s")
        return stop


class _Server(uvicorn.Server):
    """uvicorn, telling when it is ready, and ending cleanly where uvicorn would raise the signal once more."""

    def __init__(self, sandbox: Sandbox, ready: Callable[[], None]) -> None:
        config = uvicorn.Config(
            sandbox.app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_GRACE_S,
        )
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: list[Any] = [signal.signal(each, self.handle_exit) for each in _SIGNALS]
        try:
            yield
        finally:
            for each, handler in zip(_SIGNALS, before, strict=True):
                signal.signal(each, handler)


def _listen(sandbox: Sandbox, host: str, port: int) -> socket.socket:
    wanted = port or sandbox.port
    # Named as TCP, since asyncio sends small answers at once (TCP_NODELAY) only on sockets that say so.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, wanted))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        where, hint = f"{host}:{wanted}", "Stop what listens there, or give another port."
        raise ConfigError(f"the sandbox cannot listen: {error.strerror}", where=where, hint=hint) from error
    sandbox.remember_port(listener.getsockname()[1])
    return listener


def _base_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()
    return f"http://{host}:{port}"
