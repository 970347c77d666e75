"""A Dagster instance in a folder, its jobs as processes, and what it has stored of their runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.long.orchestrators.environments import process, variables

_TELEMETRY = "\ntelemetry:\n  enabled: false\n"
_STORED = """
import json, sys
from dagster import AssetCheckKey, AssetKey, DagsterInstance
instance = DagsterInstance.get()
found = {}
for key in instance.all_asset_keys():
    events = instance.fetch_materializations(key, limit=100, ascending=True).records
    checks = instance.event_log_storage.get_asset_check_execution_history(AssetCheckKey(key, "nothing_rejected"), 100)
    found["/".join(key.path)] = {
        "materializations": [
            {name: each.value for name, each in event.asset_materialization.metadata.items()} for event in events
        ],
        "checks": [each.status.value for each in reversed(checks)],
    }
runs = []
for run in instance.get_runs():
    entries = instance.all_logs(run.run_id)
    types = [each.dagster_event.event_type_value for each in entries if each.dagster_event]
    log = [each.user_message for each in entries]
    log += [str(each.dagster_event.event_specific_data) for each in entries if each.dagster_event]
    runs.append({"status": run.status.value, "retries": types.count("STEP_UP_FOR_RETRY"), "log": log})
json.dump({"assets": found, "runs": runs}, sys.stdout)
"""


class Dagster(ExitStack):
    """The instance of one test, with the files of the page and others in one folder."""

    def __init__(self, programs: Path, home: Path, config: Path) -> None:
        super().__init__()
        self._programs, self._home = programs, home
        self._environment = variables(DAGSTER_HOME=str(home), CROSSDOCK_CONFIG=str(config))
        settings = home / "dagster.yaml"
        settings.write_text(settings.read_text("utf-8") + _TELEMETRY, "utf-8")

    def start(self, file: str) -> subprocess.Popen[bytes]:
        """Start the job ``nightly_sync`` of *file*."""
        command = [str(self._programs / "dagster"), "job", "execute", "-f", file, "-j", "nightly_sync"]
        return self.enter_context(process(command, self._environment, self._home))

    def stored(self) -> Mapping[str, Any]:
        """What the UI shows: runs, and the materializations and checks of assets, the oldest first."""
        found: dict[str, Any] = json.loads(self.python("-c", _STORED))
        return found

    def python(self, *arguments: str) -> str:
        command = [str(self._programs / "python"), *arguments]
        done = subprocess.run(command, cwd=self._home, env=self._environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()
