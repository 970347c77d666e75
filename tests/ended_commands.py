"""What a command of crossdock has written, and how it ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        assert self.stdout, self.stderr
        document: dict[str, Any] = json.loads(self.stdout)
        return document
