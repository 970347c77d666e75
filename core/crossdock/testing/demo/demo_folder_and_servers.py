"""The demo's folder with config, secrets and exports, the two servers that run on it, and the check at its end."""

from __future__ import annotations

import os
import re
import secrets
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from shlex import quote
from string import Template

from crossdock.config.project.project import Project
from crossdock.errors import ConfigError, InternalError
from crossdock.runs.run_report import Report
from crossdock.sandbox import SandboxServer, serve
from crossdock.testing.demo.sample_warehouse_exports import sample_exports_of_day
from crossdock.testing.sandbox_effects_comparison import list_effects_of_tenant
from crossdock.testing.sftp_server import SftpServer
from crossdock.values.safe_local_files import replace_file_atomically


def count_effects_or_raise_if_reports_differ(project: Project, reports: list[Report]) -> Counter[str]:
    """Count the effects by operation. There must be exactly one for each delivery in the reports and in the state.

    Raises:
        InternalError: If the effects differ, or a tally does not balance.
    """
    if not all(report.balanced for report in reports):
        raise InternalError("the tally does not balance", code="tally_unbalanced")
    effects = list(list_effects_of_tenant(project.platform))
    with project.read_state() as tx:
        intents = tx.intents.page_with_statuses(("delivered",), limit=len(effects) + 1)
    logged = Counter((effect["idempotencyKey"], effect["operation"], effect["id"]) for effect in effects)
    expected = Counter({(intent.idempotency_key, intent.operation, intent.target_id) for intent in intents})
    delivered = sum(tally.delivered for report in reports for tally in report.tallies.values())
    if logged != expected or delivered != len(effects):
        counts = f"effects log {len(effects)}, runs {delivered}, state {len(expected)}"
        raise InternalError(f"the deliveries do not match the effects log: {counts}", code="demo_differs")
    return Counter(effect["operation"] for effect in effects)


CONFIG = "crossdock.yaml"
_MARK = "# written by 'crossdock demo --serve' at each start"
_PASSWORD, _KEY = "secrets/warehouse.password", "secrets/platform.key"


@contextmanager
def create_and_serve_demo(folder: Path) -> Iterator[SftpServer]:
    """Create a demo folder, run both servers on it, and yield the warehouse's.

    Raises:
        ConfigError: If the folder is not empty, or cannot be created.
    """
    create_empty_demo_folder(folder)
    with (
        SandboxServer(folder / "sandbox", port=free_port_below_ephemeral()) as platform,
        _warehouse_server(folder) as warehouse,
    ):
        _write_secret(folder / _PASSWORD, warehouse.password)
        _write_secret(folder / _KEY, platform.api_key)
        facts = {"base_url": platform.base_url, "tenant": platform.tenant, **_warehouse_port_and_host_key(warehouse)}
        template = Template(files("crossdock.testing.demo").joinpath("config.yaml").read_text("utf-8"))
        (folder / CONFIG).write_text(template.substitute(facts), "utf-8")
        yield warehouse


def write_sample_exports_of_day(day: int, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    earlier = time.time() - 300  # a file that is younger than a few seconds is read again by the next run
    for name, content in sample_exports_of_day(day).items():
        unfinished = folder / f"{name}.tmp"
        unfinished.write_bytes(content)
        os.utime(unfinished, (earlier, earlier))
        unfinished.rename(folder / name)


def serve_existing_demo(folder: Path, ready: Callable[[Mapping[str, str]], None]) -> None:
    """Serve the sandbox and the warehouse of an existing demo folder until SIGINT or SIGTERM.

    The sandbox keeps the address that the state is pinned to; that of the warehouse is new and written to the config.

    Args:
        ready: Called once both servers listen, with ``base_url``, ``host`` and ``port``.

    Raises:
        ConfigError: If this is not a demo folder, or the sandbox's port is taken.
    """
    config = folder / CONFIG
    if not config.is_file() or not (folder / "sandbox").is_dir():
        raise ConfigError(
            "is not a demo folder",
            where=str(folder),
            hint="create one with 'crossdock demo'",
            code="demo_folder_unsuitable",
        )
    with _warehouse_server(folder) as warehouse:
        warehouse.password = (folder / _PASSWORD).read_text().strip()
        text = _config_text_with_warehouse_address(config, warehouse)

        def listening(platform: Mapping[str, str | None]) -> None:
            replace_file_atomically(config, text.encode())
            ready({"base_url": str(platform["base_url"]), "host": warehouse.host, "port": str(warehouse.port)})

        try:
            serve(folder / "sandbox", ready=listening)
        except ConfigError as error:
            hint = "the state is pinned to this address: free it, or create another demo folder"
            raise ConfigError(error.message, where=error.where, hint=hint, code=error.code) from error


def create_empty_demo_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            hint = "name another with --folder; --serve continues an earlier demo in its folder"
            raise ConfigError("the folder is not empty", where=str(folder), hint=hint, code="demo_folder_unsuitable")
    except OSError as error:
        raise ConfigError(f"cannot be created: {error.strerror}", where=str(folder), code="file_unwritable") from error


def write_and_set_environment_variables(folder: Path, variables: Mapping[str, str]) -> None:
    """Write the variables that a config names to ``environment.sh``, and set them for this process."""
    _write_secret(folder / "environment.sh", "".join(f"export {n}={quote(text)}\n" for n, text in variables.items()))
    os.environ.update(variables)


def free_port_below_ephemeral() -> int:
    """Return a free port below the ephemeral range, so that it is probably still free when the demo is served again."""
    for port in secrets.SystemRandom().sample(range(20_000, 32_000), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    return 0


def _warehouse_server(folder: Path) -> SftpServer:
    (folder / "warehouse" / "out").mkdir(parents=True, exist_ok=True)
    return SftpServer(folder / "warehouse")


def _warehouse_port_and_host_key(warehouse: SftpServer) -> dict[str, str]:
    return {"port": str(warehouse.port), "host_key": warehouse.fingerprint}


def _config_text_with_warehouse_address(config: Path, warehouse: SftpServer) -> str:
    """Replace the address of the warehouse in the config by the current one."""
    text = config.read_text("utf-8")
    for name, value in _warehouse_port_and_host_key(warehouse).items():
        marked = re.compile(rf"""^( *{name}: *"?)[^\s"]+(?="? *{_MARK})""", re.MULTILINE)
        text, found = marked.subn(rf"\g<1>{value}", text)
        if found != 1:
            wrong, hint = f"no line for the warehouse's {name}", f"keep one line '{name}: ...  {_MARK}'"
            raise ConfigError(wrong, where=str(config), hint=hint, code="demo_folder_unsuitable")
    return text


def _write_secret(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text, "utf-8")
