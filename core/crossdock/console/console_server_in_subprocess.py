"""Serves the console from a process of its own beside a service, so that its pages take no time from runs.

The process reads what to serve as JSON from its input and writes the address, or why there is none. It ends with its
input, which the service's end closes however it comes, and is started again if it ends before.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from crossdock.console import tenant_configs_and_states, web_server
from crossdock.console.tls_proxy_and_sign_in import Protection
from crossdock.errors import ConfigError, CrossdockError, UnavailableError
from crossdock.values.clock import SystemClock

_ENDS_WITHIN_S = 10.0
_AGAIN_AFTER_S = 1.0
_PATHS = ("certificate", "key", "accounts", "oidc")


class ConsoleOptions(Struct, frozen=True):
    """What is served, and where.

    Attributes:
        files: The config, later files of which override earlier ones; those of a fleet's base with *pattern*.
        pattern: The configs of a fleet's tenants.
    """

    files: Sequence[Path]
    pattern: str | None
    host: str
    port: int
    allowed_hosts: Sequence[str]
    protection: Protection

    def as_json(self) -> str:
        protection = structs.asdict(self.protection)
        return json.dumps({**structs.asdict(self), "protection": protection}, default=str)

    @classmethod
    def from_json(cls, text: str) -> ConsoleOptions:
        given = json.loads(text)
        protected, files = given.pop("protection"), [Path(each) for each in given.pop("files")]
        paths = (None if protected[each] is None else Path(protected[each]) for each in _PATHS)
        protection = Protection(**dict(zip(_PATHS, paths, strict=True)), proxies=tuple(protected["proxies"]))
        return cls(**given, files=files, protection=protection)

    def tenants(self) -> tenant_configs_and_states.Tenants:
        if self.pattern is None:
            return tenant_configs_and_states.single_tenant(self.files)
        return tenant_configs_and_states.fleet_tenants(self.pattern, self.files)


@contextmanager
def serve_in_subprocess(console: ConsoleOptions, warn: Callable[[str], None]) -> Iterator[str]:
    """Serve *console* from its own process during the block, and yield the address.

    Args:
        warn: Is told that the process has ended too early; it may be called from another thread.

    Raises:
        ConfigError: As `crossdock.console.web_server.serve_console_in_thread`.
        UnavailableError: If the process ends at once.
    """
    process, url = _start_process(console)
    keeper = _ProcessRestarter(structs.replace(console, port=int(url.rpartition(":")[2].rstrip("/"))), process, warn)
    keeper.start()
    try:
        yield url
    finally:
        keeper.stop()


class _ProcessRestarter(threading.Thread):
    """Starts the process again whenever it ends, until it is stopped."""

    def __init__(self, console: ConsoleOptions, process: subprocess.Popen[str], warn: Callable[[str], None]) -> None:
        super().__init__(name="console's process", daemon=True)
        self._console, self._process, self._warn = console, process, warn
        self._stopped = threading.Event()

    def run(self) -> None:
        while True:
            code = self._process.wait()
            if self._stopped.is_set():
                return
            self._warn(f"the console's process has ended with {code}; it is started again")
            while not self._stopped.wait(_AGAIN_AFTER_S):
                try:
                    self._process, _ = _start_process(self._console)
                except CrossdockError as error:
                    self._warn(f"the console could not be started again: {error}")
                else:
                    break

    def stop(self) -> None:
        self._stopped.set()
        process = self._process
        _end_process(process)
        self.join()
        if process is not self._process:  # it was just started again
            _end_process(self._process)


def _start_process(console: ConsoleOptions) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-P", "-m", "crossdock.console.console_server_in_subprocess"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603  its own
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(BrokenPipeError):
            process.stdin.write(f"{console.as_json()}\n")
            process.stdin.flush()
        answer: Mapping[str, Any] = json.loads(process.stdout.readline() or "{}")
        if url := answer.get("url"):
            return process, url
    except BaseException:
        _end_process(process)
        raise
    _end_process(process)
    if "message" in answer:
        where, hint, code = answer["where"], answer["hint"], answer["code"]
        raise ConfigError(answer["message"], where=where, hint=hint, code=code)
    raise UnavailableError(f"the console's process has ended with {process.returncode}", code="console_ended")


def _end_process(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
    try:
        process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main() -> None:
    """Serve what the first line of the input says, until the input ends."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(
            each, _ignore_signal
        )  # the service decides; what is ignored by SIG_IGN, started commands would ignore
    console = ConsoleOptions.from_json(sys.stdin.readline())
    try:
        with web_server.serve_console_in_thread(
            console.tenants(),
            SystemClock(),
            console.host,
            console.port,
            allowed_hosts=console.allowed_hosts,
            protection=console.protection,
        ) as url:
            _print_json_answer({"url": url})
            sys.stdin.read()
    except CrossdockError as error:
        _print_json_answer({name: getattr(error, name) for name in ("message", "where", "hint", "code")})


def _print_json_answer(found: Mapping[str, str | None]) -> None:
    sys.stdout.write(f"{json.dumps(found)}\n")
    sys.stdout.flush()


def _ignore_signal(*_: object) -> None:
    pass


if __name__ == "__main__":
    main()
