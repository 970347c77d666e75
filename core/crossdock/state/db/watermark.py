"""The fence of the last run on this machine that sent something, in a file beside the state.

Every run takes a higher fence than all before it, so a state whose fence is lower than the file's is an older copy: a
backup that was restored. Without the declaration ``crossdock state restored`` it sends again what it has forgotten.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from crossdock.errors import RefusedError
from crossdock.local_files import replace_file


class Watermark:
    """The file of one state.

    Args:
        path: Its folder is made when the file is written first.
        identity: Of the state; a file of another one, which was at the same place before, says nothing about it.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self._path, self._identity = path, identity

    @property
    def fence(self) -> int:
        """The fence of the last run that sent something; 0 without any."""
        try:
            noted: Any = json.loads(self._path.read_bytes())
            return int(noted["fence"]) if noted["state"] == self._identity else 0
        except (OSError, ValueError, TypeError, KeyError):
            return 0  # missing or damaged: it is a second line of defence, and written anew by the next run

    def check(self, fence: int, where: str) -> None:
        """Refuse a state that is at *fence* now.

        Raises:
            RefusedError: If a run with a higher one has sent something.
        """
        if fence < self.fence:
            raise RefusedError(
                "the state is older than the last run here, so it does not know what was sent since",
                where=where,
                hint="if it was restored from a backup, run 'crossdock state restored'",
            )

    def note(self, fence: int) -> None:
        """Keep *fence*, if the file can be written: a second line of defence must not stop a run."""
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(self._path, json.dumps({"state": self._identity, "fence": fence}).encode())
