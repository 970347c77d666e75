"""Which state the folders beside the spool belong to, in a file in one of them.

The default folders of states in PostgreSQL are named after the database alone. If two configs in one folder name
databases of one name, on two hosts or in two schemas, the tokens of an account that was connected for one would be used
for the other. SQLite files that share a spool have their tokens apart. But a run of one replaces the fence of the other
in the folder, and with it what shows that the other was restored from a backup; and the key index of a same scope.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from crossdock.errors import StateError
from crossdock.state.db.database_creation_and_opening import PinnedTenant, StateUrl
from crossdock.state.db.database_errors import url_without_password
from crossdock.values.safe_local_files import replace_file

NAME = "state.json"


def claim_folder(folder: Path, url: StateUrl, pin: PinnedTenant) -> None:
    """Remember that *folder* belongs to a state. Raises StateError if it belongs to one elsewhere of another tenant.

    A state that was moved has its tenant still, and a new one in place of another has its address.
    """
    path = folder / NAME
    own = {"address": url_without_password(url), "base_url": pin.base_url, "tenant": pin.tenant}
    found = _read_owner(path)
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
        replace_file(path, json.dumps(own).encode())


def _read_owner(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found = json.loads(path.read_bytes())
        return found if isinstance(found, dict) else {}
    return {}
