"""The demo's folder: config, secrets and exports, and the servers that make it work."""

from __future__ import annotations

import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from string import Template

from crossdock.demo.sample_exports import night
from crossdock.errors import ConfigError
from crossdock.local_files import replace_file
from crossdock.sandbox import SandboxServer, serve
from crossdock.testing.sftp_server import SftpServer

CONFIG = "crossdock.yaml"
MARK = "# written by 'crossdock demo --serve' whenever it starts"
_PASSWORD, _KEY = "secrets/warehouse.password", "secrets/platform.key"


@contextmanager
def opened(folder: Path) -> Iterator[SftpServer]:
    """Make a new demo folder and run both servers over it; the warehouse's is given.

    Raises:
        ConfigError: If the folder holds something, or cannot be made.
    """
    _claim(folder)
    with SandboxServer(folder / "sandbox", port=_own_port()) as platform, _warehouse(folder) as warehouse:
        _secret(folder / _PASSWORD, warehouse.password)
        _secret(folder / _KEY, platform.api_key)
        facts = {"base_url": platform.base_url, "tenant": platform.tenant, **_address(warehouse)}
        template = Template(files("crossdock.demo").joinpath("config.yaml").read_text("utf-8"))
        (folder / CONFIG).write_text(template.substitute(facts), "utf-8")
        yield warehouse


def export(number: int, folder: Path) -> None:
    """Write the files of a night into *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    a_while_ago = time.time() - 300  # so that nobody waits to see whether they still grow
    for name, content in night(number).items():
        (folder / name).write_bytes(content)
        os.utime(folder / name, (a_while_ago, a_while_ago))


def keep_open(folder: Path, ready: Callable[[Mapping[str, str]], None]) -> None:
    """Serve the sandbox and the warehouse of an existing demo folder until SIGINT or SIGTERM.

    The sandbox has the address that the state is pinned to; the warehouse gets a new one, written into the config.

    Args:
        ready: Called once both answer, with ``base_url``, ``host`` and ``port``.

    Raises:
        ConfigError: If this is no demo folder, or the sandbox's port is taken.
    """
    config = folder / CONFIG
    if not config.is_file() or not (folder / "sandbox").is_dir():
        raise ConfigError("is not a folder of the demo", where=str(folder), hint="make one with 'crossdock demo'")
    with _warehouse(folder) as warehouse:
        warehouse.password = (folder / _PASSWORD).read_text().strip()
        text = _readdressed(config, warehouse)

        def listening(platform: Mapping[str, str | None]) -> None:
            replace_file(config, text.encode())
            ready({"base_url": str(platform["base_url"]), "host": warehouse.host, "port": str(warehouse.port)})

        try:
            serve(folder / "sandbox", ready=listening)
        except ConfigError as error:
            hint = "the state is pinned to this address: free it, or make another demo folder"
            raise ConfigError(error.message, where=error.where, hint=hint) from error


def _claim(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            hint = "remove it or name another with --folder; with --serve, an earlier demo goes on in its folder"
            raise ConfigError("the folder is not empty", where=str(folder), hint=hint)
    except OSError as error:
        raise ConfigError(f"cannot be made: {error.strerror}", where=str(folder)) from error


def _own_port() -> int:
    """A free port below those that systems hand out, so that it is still free when the demo goes on another day."""
    for port in secrets.SystemRandom().sample(range(20_000, 32_000), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    return 0


def _warehouse(folder: Path) -> SftpServer:
    served = folder / "warehouse"
    (served / "out").mkdir(parents=True, exist_ok=True)
    return SftpServer(served)


def _address(warehouse: SftpServer) -> dict[str, str]:
    return {"port": str(warehouse.port), "host_key": warehouse.fingerprint}


def _readdressed(config: Path, warehouse: SftpServer) -> str:
    """The config, with where the warehouse is now."""
    text = config.read_text("utf-8")
    for name, value in _address(warehouse).items():
        marked = re.compile(rf"""^( *{name}: *"?)[^\s"]+(?="? *{MARK})""", re.MULTILINE)
        text, found = marked.subn(rf"\g<1>{value}", text)
        if found != 1:
            hint = f"keep one line '{name}: ...  {MARK}'"
            raise ConfigError(
                f"the demo cannot find where to write the warehouse's {name}", where=str(config), hint=hint
            )
    return text


def _secret(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)
