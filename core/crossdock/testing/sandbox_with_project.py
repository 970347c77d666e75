"""A sandbox, and a config for processes that sync to it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from decimal import Decimal
from pathlib import Path
from typing import Any, Self
from unittest import mock

from crossdock.config.project import project
from crossdock.connector import Connector
from crossdock.runs.stream_trial import try_stream
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import prerequisite_records, sandbox_effects_comparison
from crossdock.testing.crossdock_process import CrossdockCommands, EndedCommand, write_connector_entry_point
from crossdock.testing.httpx_transport_server import web_origins_in
from crossdock.testing.sandbox_syncs import BURST, RATE, write_private_file
from crossdock.values import config_file, exact_json
from crossdock.values.clock import SystemClock
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.writing.targets.platform_target import PlatformTarget

_OLD_S = 3600  # so old that a file no longer grows
_MOST_RECORDS = 10_000  # whose references are created in the sandbox

Connections = Mapping[str, Any]
"""The section ``connections`` of a config file."""


def read_connections(config: Path) -> Connections:
    """Return the connections of a config file, or raise ConfigError if it cannot be read."""
    connections: Connections = config_file.read_config_with_overrides(config).data["connections"]
    return connections


def connections_section_from_settings(connector: Connector[Any], settings: Mapping[str, Any]) -> Connections:
    """Return a connection with *settings*, and with the addresses that the connector has as their defaults."""
    members: dict[str, Any] = exact_json.loads(json.dumps(dict(settings), default=str))
    fields = connector.settings.model_fields
    addresses = {name: field.default for name, field in fields.items() if web_origins_in(field.default)}
    return {connector.name: {"kind": connector.name, **addresses, **members}}


class SandboxWithProject(AbstractContextManager["SandboxWithProject"]):
    """A sandbox, and a config file in *folder* whose state is initialized, while the context is open.

    The sandbox contains the records that the streams refer or contribute to and do not create.

    Args:
        folder: The folder, which also has the files for relative paths of *connections*.
        connector: The connector, which need not be installed.
        environment: The environment of the commands.
        author: The module of the test.

    Attributes:
        without_records: The streams that yield no record.
    """

    def __init__(
        self,
        folder: Path,
        connections: Connections,
        connector: Connector[Any] | None,
        environment: Mapping[str, str],
        author: str,
    ) -> None:
        self._folder, self._packages, self.state_folder = folder, folder / "packages", folder / "state"
        self.state_folder.mkdir()
        self._config = folder / "crossdock.yaml"
        self._connections = connections
        if connector is not None:
            write_connector_entry_point(connector, self._packages, apart_from=author)
        self._commands = CrossdockCommands(self._config, environment, self._packages)
        self._server = SandboxServer(folder / "sandbox", SandboxSettings(rate_per_min=RATE, burst=BURST))

    def __enter__(self) -> Self:
        self._server.__enter__()
        try:
            self._prepare()
        except BaseException:
            self._server.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.__exit__(*exception)

    def _prepare(self) -> None:
        server = self._server
        key = write_private_file(self._folder / "api-key", server.api_key)
        config = {
            "platform": {
                "base_url": server.base_url,
                "tenant": server.tenant,
                "auth": {"kind": "api_key", "token": key},
                "rate": {"per_minute": RATE, "burst": BURST},
                "retry": {"attempts": 20, "base_s": Decimal("0.05"), "cap_s": Decimal("0.2")},
            },
            "state": f"sqlite:///{self.state_folder / 'state.db'}",
            "connections": self._connections,
        }
        old = time.time() - _OLD_S
        for path in self._folder.rglob("*"):
            if path.is_file() and not path.is_relative_to(self._folder / "sandbox"):
                os.utime(path, (old, old))
        self._config.write_bytes(exact_json.dumps(config))
        with mock.patch.object(sys, "path", [*sys.path, str(self._packages)]):
            self._project = project.load(self._config)
        self._project.create_or_upgrade_state()
        clock = SystemClock()
        names = sorted(self._project.selected_streams([]))
        trials = [
            try_stream(self._project, name, _MOST_RECORDS, clock=clock, progress=SilentProgress()) for name in names
        ]
        self.without_records = [name for name, trial in zip(names, trials, strict=True) if not trial.records]
        absent = prerequisite_records.referenced_records_no_trial_creates(trials)
        prerequisite_records.create_and_bind_prerequisites(
            self._project, absent, self._folder / "bindings.csv", at=clock.now()
        )
        self._given = sandbox_effects_comparison.count_effects_by_body(
            sandbox_effects_comparison.list_effects_of_tenant(self._project.platform)
        )

    def run_command(self, *arguments: str) -> EndedCommand:
        """Run a command to its end."""
        return self._commands.run(*arguments)

    def run_command_and_kill(self, is_time: Callable[[], bool], *arguments: str) -> EndedCommand:
        """Run a command and send it SIGKILL as soon as *is_time*."""
        return self._commands.run_and_kill(is_time, *arguments)

    def count_sync_effects(self) -> Counter[str]:
        """Return what the syncs did; see `sandbox_effects_comparison.count_effects_by_body`."""
        return (
            sandbox_effects_comparison.count_effects_by_body(
                sandbox_effects_comparison.list_effects_of_tenant(self._project.platform)
            )
            - self._given
        )

    def inject_faults(self, faults: Mapping[str, float], seed: int) -> None:
        """Replace the faults that the sandbox injects by these, each with its probability."""
        content = [{"name": name, "probability": probability} for name, probability in faults.items()]
        body = json.dumps({"faults": content, "seed": seed}).encode()
        with closing(PlatformTarget(self._project.platform).client()) as client:
            headers = {"content-type": "application/json"}
            answer = client.send("POST", "/_sandbox/faults", body=body, headers=headers)
        assert answer.status == 200, f"the sandbox does not accept the faults: status {answer.status}"

    def count_injected_faults_by_name(self) -> Counter[str]:
        """Count how often each fault has been injected since `inject_faults`."""
        with closing(PlatformTarget(self._project.platform).client()) as client:
            content = exact_json.loads(client.send("GET", "/_sandbox/faults").body)
        return Counter({fault["name"]: int(fault["struck"]) for fault in content["faults"]})
