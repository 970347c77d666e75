"""Files beside a state and in the user's folder: which state a folder belongs to, and how far the last one was.

Every run takes a higher fence than all before it, and raises a mark while it sends and when it ends. So a state with a
lower fence or mark than a file is a restored backup, also one that was made during the last run. One file is beside the
state. A backup of the whole folder restores it as well, and one under another name has another folder. So the other is
in the user's folder, and is that of all copies of a state: they send to one tenant.

The default folders of states in PostgreSQL are named after the database alone. If two configs in one folder name
databases of one name, on two hosts or in two schemas, the tokens of an account that was connected for one would be used
for the other. SQLite files that share a spool have their tokens apart. But a run of one replaces the fence of the other
in the folder, and with it what shows that the other was restored from a backup; and the key index of a same scope.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from crossdock.errors import RefusedError, StateError
from crossdock.state.db import sql_types_and_statements
from crossdock.state.db.database_opening_and_errors import PinnedTenant, StateUrl, url_without_password
from crossdock.state.db.schema import meta
from crossdock.values.safe_local_files import replace_file_atomically

OWNER_FILE_NAME = "state.json"


def claim_folder_or_raise(folder: Path, url: StateUrl, pin: PinnedTenant) -> None:
    """Remember that *folder* belongs to a state. Raises StateError if it belongs to one elsewhere of another tenant.

    A state that was moved has its tenant still, and a new one in place of another has its address.
    """
    path = folder / OWNER_FILE_NAME
    own = {"address": url_without_password(url), "base_url": pin.base_url, "tenant": pin.tenant}
    found = _read_owner_file(path)
    if found == own:
        return
    is_same_tenant = (found.get("base_url"), found.get("tenant")) == (pin.base_url, pin.tenant)
    if found and found.get("address") != own["address"] and not is_same_tenant:
        raise StateError(
            f"the folder {folder} belongs to the state of tenant {found.get('tenant')!r} of {found.get('base_url')}",
            where=own["address"],
            hint="set 'spool' in one of the two configs to a folder of its own; if the other state does not exist any"
            f" more, remove {path}",
            code="state_of_another_tenant",
        )
    with suppress(OSError):  # it is an extra check
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file_atomically(path, json.dumps(own).encode())


def _read_owner_file(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found = json.loads(path.read_bytes())
        return found if isinstance(found, dict) else {}
    return {}


FENCE_FILE_NAME = "fence.json"
MARK_EVERY_S = 5
_MARK = "sent_mark"


class FenceAndSentMark(NamedTuple):
    """How far a state is. *mark* is 0 for one that sent nothing since marks were introduced."""

    number: int = 0
    mark: int = 0


def sent_mark_of_state(connection: Connection) -> int:
    return int(connection.execute(select(meta.c.value).where(meta.c.name == _MARK)).scalar() or 0)


def increase_mark_of_state(connection: Connection, *, above: int = 0) -> int:
    """Raise the mark of the state, above *above* too, and return it."""
    mark = max(above, sent_mark_of_state(connection)) + 1
    sql_types_and_statements.upsert_rows(connection, meta, [{"name": _MARK, "value": str(mark)}])
    return mark


def fence_file_in_user_folder(identity: str) -> Sequence[Path]:
    """Return the file in the user's folder (XDG Base Directory Specification)."""
    with suppress(RuntimeError):  # there is no home
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        name = hashlib.sha256(identity.encode()).hexdigest()[:32]
        return (folder / "crossdock" / name / FENCE_FILE_NAME,)
    return ()


class FenceFiles:
    """The fence files of one state. A file of another *identity*, which was at the same place before, is ignored."""

    def __init__(self, paths: Sequence[Path], identity: str) -> None:
        self._paths, self._identity = paths, identity

    def highest(self) -> FenceAndSentMark:
        """Return how far the states were that sent something."""
        found = [self._read_fence(path) for path in self._paths]
        return FenceAndSentMark(
            max((each.number for each in found), default=0), max((each.mark for each in found), default=0)
        )

    def _read_fence(self, path: Path) -> FenceAndSentMark:
        try:
            content: Any = json.loads(path.read_bytes())
            is_own = content["state"] == self._identity
            return (
                FenceAndSentMark(int(content["fence"]), int(content.get("mark", 0))) if is_own else FenceAndSentMark()
            )
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return FenceAndSentMark()  # missing or damaged: it is an extra check, and the next run writes it again

    def raise_if_state_outdated(self, state: FenceAndSentMark, where: str) -> None:
        """Raise RefusedError if a *state* that was further has sent something."""
        highest = self.highest()
        if state.number < highest.number or state.mark < highest.mark:
            raise RefusedError(
                "the state is older than the last run here and does not know what was sent since",
                where=where,
                hint="if it was restored from a backup, run 'crossdock state restored'",
                code="state_restored",
            )

    def write(self, fence: FenceAndSentMark) -> None:
        """Store *fence* where a file can be written. A failure must not stop a run."""
        content = {"state": self._identity, "fence": fence.number, "mark": fence.mark}
        for path in self._paths:
            with suppress(OSError):
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                replace_file_atomically(path, json.dumps(content).encode())
