"""A warehouse behind SFTP, a sandbox of the platform, and what its effects log says of the runs between them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.waiting import eventually

from crossdock.config.project import project
from crossdock.testing import sandbox_effects_comparison
from crossdock.testing.demo import demo_folder_and_servers
from crossdock.values import exact_json

JOB = """
jobs:
  nightly:
    schedule: {time_zone: Europe/Berlin, at: "00:00"}
"""
STREAMS = ("wms.customers", "wms.items", "wms.bins", "wms.lots", "wms.invoices")


@dataclass(frozen=True, slots=True)
class Night:
    """The first day of the demo, whose exports are there. Nothing has run yet.

    Attributes:
        config: The config file.
        api_key: Of the platform.
    """

    config: Path
    api_key: str
    _platform: httpx.Client

    def effects(self) -> list[dict[str, Any]]:
        """What has happened at the platform, oldest first."""
        found: list[dict[str, Any]] = []
        while page := self._get("effects", after=found[-1]["seq"] if found else 0):
            found += page
        return found

    def delivered(self) -> Counter[str]:
        return sandbox_effects_comparison.count_effects_by_body(self.effects())

    def answer_late(self, *, ms: int) -> None:
        """From now on records are created at once, and the answer comes *ms* later."""
        fault = {"name": "slow", "probability": 1, "route": "POST", "ms": ms}
        self._platform.post("/_sandbox/faults", json={"faults": [fault]}).raise_for_status()

    def wait_until_sending(self) -> None:
        eventually(lambda: bool(self.effects()))

    def damage(self) -> None:
        """Cut the end of an export, which then has no trailer."""
        (export,) = (self.config.parent / "warehouse" / "out").glob("ITEMS_*.txt")
        export.write_bytes(export.read_bytes()[:-20])

    def run(self, *arguments: str) -> int:
        command = [sys.executable, "-m", "crossdock", "-C", str(self.config), *arguments]
        return subprocess.run(command, check=False, capture_output=True).returncode

    def ended_in_order(self) -> bool:
        """Whether the last run has ended, and was not killed."""
        command = [sys.executable, "-m", "crossdock", "-C", str(self.config), "runs", "--json"]
        runs = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        return runs[0]["seconds"] is not None

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Hold the state as a run does."""
        with project.load(self.config).open_state_exclusively():
            yield

    def _get(self, what: str, **query: int) -> list[dict[str, Any]]:
        answer = self._platform.get(f"/_sandbox/{what}", params={"limit": 1000, **query}).raise_for_status()
        listed: list[dict[str, Any]] = exact_json.loads(answer.content)["data"]
        return listed


@contextmanager
def night(folder: Path) -> Iterator[Night]:
    """A new project in *folder*, with a job, whose platform and warehouse are served while the block lasts."""
    with demo_folder_and_servers.create_and_serve_demo(folder):
        demo_folder_and_servers.write_sample_exports_of_day(1, folder / "warehouse" / "out")
        config = folder / demo_folder_and_servers.CONFIG
        text = config.read_text("utf-8")
        config.write_text(text + JOB, "utf-8")
        (base_url,) = (line.split()[1] for line in text.splitlines() if line.startswith("  base_url:"))
        api_key = (folder / "secrets" / "platform.key").read_text("utf-8").strip()
        with httpx.Client(base_url=base_url, headers={"authorization": f"Bearer {api_key}"}, trust_env=False) as client:
            opened = Night(config, api_key, client)
            assert opened.run("init") == 0
            yield opened
