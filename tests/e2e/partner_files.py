"""Orders in a folder, and a partner in another folder that takes them in files; run by commands in this process."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.project_folder import balance, in_process
from tests.ended_commands import Done
from tests.plan_and_sync import differences

from crossdock.values.clock import SystemClock

COLUMNS = {
    "code": {"from": "operation", "table": {"create": "N", "update": "C", "delete": "X"}},
    "order_no": "{number}",
    "customer": "{customer?}",
    "qty": "{qty?}",
}
ORDERS: dict[str, Any] = {
    "files": "orders_*.csv",
    "mode": "append",
    "to": "wms.orders",
    "key": ["number"],
    "order_by": ["version"],
    "deleted": {"field": "gone", "equals": "yes"},
    "on_gone": "delete",
    "gone": {"at_most": 100, "at_most_percent": 100},
    "map": {"customer": "customer", "qty": {"from": "qty", "as": "integer"}},
}
ACKNOWLEDGEMENTS: dict[str, Any] = {
    "files": "out/ack_*.csv",
    "mode": "append",
    "to": "wms.acknowledgements",
    "key": ["id"],
    "map": {
        "file": {"from": "file", "empty": "null"},
        "number": {"from": "number", "empty": "null"},
        "control": {"from": "set", "empty": "null"},
        "record": {"from": "order_no", "empty": "null"},
        "accepted": {"from": "status", "as": "boolean", "true_text": "OK", "false_text": "NO"},
        "reason": "text",
    },
}
RESOURCE: dict[str, Any] = {
    "name": "number",
    "members": {"customer": {"type": "text", "personal": True}, "qty": "integer"},
    "folder": "in",
    "file": "ord_{number:5}.csv",
    "records_per_file": 3,
    "content": {"kind": "delimited", "rows": [{"columns": COLUMNS}]},
    "acknowledged": {"within": "8h"},
}


class PartnerFiles:
    """A config, the orders, and the partner's folders ``in`` and ``out``."""

    def __init__(
        self,
        folder: Path,
        orders: dict[str, Any] | None = None,
        acknowledgements: dict[str, Any] | None = None,
        **resource: Any,
    ) -> None:
        self._streams = acknowledgements or {"acknowledgements": ACKNOWLEDGEMENTS}
        self._orders = {name: value for name, value in (ORDERS | (orders or {})).items() if value is not None}
        self.folder, self.partner = folder, folder / "partner"
        for name in ("orders", "partner/in", "partner/out", "partner/done"):
            (folder / name).mkdir(parents=True)
        self.config = folder / "crossdock.yaml"
        self.configure(**resource)
        begun = self.run("init")
        assert begun.exit_code == 0, begun.stderr
        self._files = 0

    def configure(self, **resource: Any) -> None:
        """Write the config, with these keys of the resource in place of the usual ones; None leaves one out."""
        changed = {name: value for name, value in (RESOURCE | resource).items() if value is not None}
        target = {"resources": {"orders": changed}, "retry": {"attempts": 2, "base_s": 0.01, "give_up_after_s": 0.1}}
        folders = {"kind": "folder_warehouse", "settle_s": 0}
        document = {
            "platform": {
                "base_url": "http://127.0.0.1:9",
                "tenant": "t",
                "auth": {"kind": "api_key", "token": "env:TOKEN"},
            },
            "state": "sqlite:///state.db",
            "connections": {
                "shop": folders | {"path": "orders", "streams": {"orders": self._orders}},
                "wms": folders | {"path": "partner", "streams": self._streams, "target": target},
            },
        }
        self.config.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")

    def export(self, *rows: str) -> None:
        """Write orders, each ``number,customer,qty`` and perhaps ``,version,gone``."""
        self._files += 1
        full = [",".join([*row.split(","), *[""] * (4 - row.count(","))]) for row in rows]
        text = "\n".join(["number,customer,qty,version,gone", *full]) + "\n"
        (self.folder / "orders" / f"orders_{self._files:04}.csv").write_text(text)

    def acknowledge(self, *rows: str) -> None:
        """Write an acknowledgement, each line ``file,number,set,order_no,status,text``."""
        self._files += 1
        lines = (f"{self._files}-{number},{row}" for number, row in enumerate(rows))
        text = "\n".join(["id,file,number,set,order_no,status,text", *lines]) + "\n"
        (self.partner / "out" / f"ack_{self._files:04}.csv").write_text(text)

    def run(self, *arguments: str) -> Done:
        return in_process(self.config, *arguments, environment={"TOKEN": "t"})

    def sync(self, exit_code: int = 0) -> dict[str, Any]:
        """A sync that ends with *exit_code*, after a plan that agrees with it in every number."""
        planned = self.run("plan", "--json")
        done = self.run("sync", "--json")
        assert done.exit_code == exit_code, f"{done.stderr}{done.stdout}"
        balance(done.document)
        assert not (found := differences(planned.document, done.document)), found
        return done.document

    def records(self, report: dict[str, Any], stream: str = "shop.orders") -> dict[str, int]:
        """The terms of a stream that are not 0."""
        return {name: number for name, number in report["streams"][stream]["records"].items() if number}

    def files(self) -> dict[str, list[str]]:
        """The lines of each file in the partner's inbox, without its header."""
        found = sorted(each for each in (self.partner / "in").iterdir() if each.is_file())
        return {each.name: each.read_text().splitlines()[1:] for each in found}

    def listed(self, state: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.run("records", "list", "--state", state, "--json").stdout)
        return found

    def save(self) -> Path:
        """Copy the state, as a backup."""
        shutil.copy(self.folder / "state.db", self.folder / "backup.db")
        return self.folder / "backup.db"

    def restore(self, backup: Path) -> None:
        shutil.copy(backup, self.folder / "state.db")


def later(patch: pytest.MonkeyPatch, **span: float) -> None:
    """Set the clock of commands forward."""
    now = SystemClock.now
    patch.setattr(SystemClock, "now", lambda clock: now(clock) + timedelta(**span))
