"""The fence of the last run on this machine that sent something, in files outside the database.

Every run takes a higher fence than all before it, so a state with a lower fence than a file is a restored backup. One
file is beside the state. A backup of the whole folder restores it as well, so the other is in the user's folder.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from crossdock.errors import RefusedError
from crossdock.values.safe_local_files import replace_file

NAME = "fence.json"


def path_in_user_folder(identity: str, where: str) -> Sequence[Path]:
    """Return the file in the user's folder (XDG Base Directory Specification). A copy elsewhere is another state."""
    with suppress(RuntimeError):  # there is no home
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        name = hashlib.sha256(f"{identity} {where}".encode()).hexdigest()[:32]
        return (folder / "crossdock" / name / NAME,)
    return ()


class FenceFiles:
    """The fence files of one state. A file of another *identity*, which was at the same place before, is ignored."""

    def __init__(self, paths: Sequence[Path], identity: str) -> None:
        self._paths, self._identity = paths, identity

    @property
    def highest_fence(self) -> int:
        """The fence of the last run that sent something; 0 if there was none."""
        return max(map(self._read_fence, self._paths), default=0)

    def _read_fence(self, path: Path) -> int:
        try:
            content: Any = json.loads(path.read_bytes())
            return int(content["fence"]) if content["state"] == self._identity else 0
        except (OSError, ValueError, TypeError, KeyError):
            return 0  # missing or damaged: it is an extra check, and the next run writes it again

    def refuse_outdated_state(self, fence: int, where: str) -> None:
        """Raise RefusedError if a run with a higher fence than *fence* has sent something."""
        if fence < self.highest_fence:
            raise RefusedError(
                "the state is older than the last run here and does not know what was sent since",
                where=where,
                hint="if it was restored from a backup, run 'crossdock state restored'",
                code="state_restored",
            )

    def write(self, fence: int) -> None:
        """Store *fence* where a file can be written. A failure must not stop a run."""
        for path in self._paths:
            with suppress(OSError):
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                replace_file(path, json.dumps({"state": self._identity, "fence": fence}).encode())
