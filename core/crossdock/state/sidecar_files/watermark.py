"""The fence of the last run on this machine that sent something, in a file beside the state.

Every run takes a higher fence than all before it, so a state with a lower fence than the file is an older copy: a
restored backup. Unless ``crossdock state restored`` declares it, it would send again what it does not remember.
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
        path: Its folder is created with the file.
        identity: Of the state; the file of another state, which was at the same place before, is ignored.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self._path, self._identity = path, identity

    @property
    def fence(self) -> int:
        """The fence of the last run that sent something; 0 without any."""
        try:
            content: Any = json.loads(self._path.read_bytes())
            return int(content["fence"]) if content["state"] == self._identity else 0
        except (OSError, ValueError, TypeError, KeyError):
            return 0  # missing or damaged: it is an extra check, and the next run writes it again

    def check(self, fence: int, where: str) -> None:
        """Refuse a state with this *fence* if a run with a higher one has sent something.

        Raises:
            RefusedError: If so.
        """
        if fence < self.fence:
            raise RefusedError(
                "the state is older than the last run here and does not know what was sent since",
                where=where,
                hint="if it was restored from a backup, run 'crossdock state restored'",
            )

    def write(self, fence: int) -> None:
        """Store *fence* if the file can be written: an extra check must not stop a run."""
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(self._path, json.dumps({"state": self._identity, "fence": fence}).encode())
