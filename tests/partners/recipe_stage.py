"""A recipe of ``configs/`` for tests: its connections as they are, and the platform as a sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from tests.partners.stage import Project

from crossdock.sandbox import SandboxServer
from crossdock.values.clock import Clock

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


class Recipe(Project):
    """A recipe whose variables, such as the vendor's address, are in the environment.

    Args:
        name: Of the file, without its ending.
        more: Further connections.
    """

    def __init__(
        self, folder: Path, sandbox: SandboxServer, name: str, clock: Clock, more: Mapping[str, Any] | None = None
    ) -> None:
        document = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text(encoding="utf-8"))
        super().__init__(folder, sandbox, {**document["connections"], **(more or {})}, clock)

    def stored(self, resource: str) -> dict[str, dict[str, Any]]:
        """The records of the platform by their external ids, but for the products of charges."""
        return {key: each for key, each in super().stored(resource).items() if not key.startswith("charges:")}
