"""Commands of crossdock as processes, with a connector that need not be installed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from crossdock.connector import Connector

_WITHIN_S = 120.0
_POLL_S = 0.002
_SHOWN = 1_000  # characters of what a killed command has said


def absolute_import_paths() -> list[str]:
    return [str(Path(path).absolute()) for path in sys.path]


class EndedCommand(NamedTuple):
    """An ended command. *exit_code* is -9 after SIGKILL."""

    exit_code: int
    output: str
    errors: str


class CrossdockCommands:
    """Runs commands with one config.

    Args:
        environment: Variables in addition to those of this process.
        packages: A folder with the entry point of a connector; see `write_connector_entry_point`.
    """

    def __init__(self, config: Path, environment: Mapping[str, str], packages: Path) -> None:
        self._command = [sys.executable, "-m", "crossdock", "-C", str(config)]
        self._folder = config.parent
        path = os.pathsep.join([*absolute_import_paths(), str(packages)])
        self._environment = {**os.environ, **environment, "PYTHONPATH": path}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603
            [*self._command, *arguments],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> EndedCommand:
        """Run a command to its end. It is killed after two minutes.

        Raises:
            TimeoutError: If it was killed.
        """
        with self.start(*arguments) as process:
            try:
                output, errors = process.communicate(timeout=_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                _, errors = process.communicate()
                raise TimeoutError(_timeout_message(arguments, errors)) from None
            finally:
                process.kill()
        return EndedCommand(process.returncode, output, errors)

    def run_and_kill(self, is_time: Callable[[], bool], *arguments: str) -> EndedCommand:
        """Run a command and send it SIGKILL as soon as *is_time* returns True. It may end earlier.

        Raises:
            TimeoutError: If neither happens within two minutes.
        """
        with self.start(*arguments) as process:
            try:
                deadline = time.monotonic() + _WITHIN_S
                while process.poll() is None and not is_time():
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"'crossdock {' '.join(arguments)}' was not to be killed within two minutes")
                    time.sleep(_POLL_S)
            finally:
                process.kill()
            output, errors = process.communicate()
        return EndedCommand(process.returncode, output, errors)


def _timeout_message(arguments: tuple[str, ...], errors: str) -> str:
    last = f"; its last lines: {errors[-_SHOWN:].strip()}" if errors.strip() else ""
    advice = "look for a loop or a wait in the connector"
    return f"'crossdock {' '.join(arguments)}' did not end within two minutes and was killed; {advice}{last}"


def write_connector_entry_point(connector: Connector[Any], folder: Path, *, apart_from: str) -> None:
    """Write the files into *folder* that pip writes for the entry point of an installed connector.

    Args:
        apart_from: A module that may import the connector but does not define it.

    Raises:
        LookupError: If no module has the connector as a constant.
    """
    module, name = find_connector_module_and_constant(connector, least_preferred_module=apart_from)
    write_connector_entry_points(folder, {connector.name: f"{module}:{name}"})


def find_connector_module_and_constant(connector: Connector[Any], *, least_preferred_module: str) -> tuple[str, str]:
    """Return the module with *connector* as a constant, and the constant's name. Arguments and errors are as in
    `write_connector_entry_point`.
    """
    found = {
        (module, name)
        for module, content in list(sys.modules.items())
        if module != "__main__" and content is not None
        for name, value in list(vars(content).items())
        if value is connector and _can_be_imported(module)
    }
    if not found:
        raise LookupError(f"no module has the connector {connector.name!r} as a constant, such as CONNECTOR")
    package = connector.settings.__module__.partition(".")[0]  # a test of the connector is in another one
    return min(
        found,
        key=lambda place: (
            place[0] == least_preferred_module,
            place[0].partition(".")[0] != package,
            len(place[0]),
            place,
        ),
    )


def write_connector_entry_points(folder: Path, places: Mapping[str, str]) -> None:
    """Do the same as `write_connector_entry_point` for several connectors: ``MODULE:CONSTANT`` by name."""
    facts = folder / "connector_under_test-1.dist-info"
    facts.mkdir(parents=True)
    metadata = "Metadata-Version: 2.1\nName: connector-under-test\nVersion: 1\n"
    (facts / "METADATA").write_text(metadata, encoding="utf-8")
    lines = [f"[{Connector.group}]", *(f"{name} = {place}" for name, place in places.items()), ""]
    (facts / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")


def _can_be_imported(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:  # it was made by hand
        return False
