"""A project over a folder of CSV files and a sandbox, run by commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from tests.e2e.project_folder import balance, in_process
from tests.e2e.warehouse import ask
from tests.ended_commands import Done

from crossdock.sandbox import SandboxServer


class FolderProject:
    """A config of connections whose files are in *folder*."""

    def __init__(self, folder: Path, platform: SandboxServer, connections: dict[str, Any]) -> None:
        self.folder, self.platform = folder, platform
        config = {
            "platform": {
                "base_url": platform.base_url,
                "tenant": platform.tenant,
                "auth": {"kind": "api_key", "token": "env:CROSSDOCK_API_KEY"},
                "retry": {"attempts": 2, "base_s": 0.01, "give_up_after_s": 0.1},
            },
            "state": "sqlite:///state.db",
            "connections": connections,
        }
        self.config = folder / "crossdock.yaml"
        self.config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        path = self.folder / "out" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, *arguments: str) -> Done:
        """Run a command to its end, in this process."""
        return in_process(self.config, *arguments, environment={"CROSSDOCK_API_KEY": self.platform.api_key})

    def sync(self, exit_code: int = 0) -> dict[str, Any]:
        """A sync that ends with *exit_code*; its report, after its accounts were added up once more."""
        done = self.run("sync", "--json")
        assert done.exit_code == exit_code, f"{done.stderr}{done.stdout}"
        balance(done.document)
        return done.document

    def plan(self) -> dict[str, Any]:
        done = self.run("plan", "--json")
        assert done.exit_code in {0, 1}, done.stderr
        return done.document

    def effects(self) -> list[dict[str, Any]]:
        """Everything that happened at the platform."""
        netloc = self.platform.base_url.removeprefix("http://")
        found: list[dict[str, Any]] = []
        while page := json.loads(
            ask(netloc, "GET", f"/_sandbox/effects?limit=10000&after={found[-1]['seq'] if found else 0}").body
        )["data"]:
            found += page
        return found


def table(files: str, key: list[str], **more: Any) -> dict[str, Any]:
    """A stream of CSV files with a semicolon."""
    return {"mode": "append", "files": files, "format": {"kind": "delimited", "delimiter": ";"}, "key": key, **more}
