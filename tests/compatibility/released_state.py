"""A small sync over files whose state has something of everything: delivered, rejected, waiting, in doubt, held."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import yaml
from tests.compatibility.facts import HERE
from tests.e2e.project_folder import in_process
from tests.e2e.warehouse import FORWARD, LOSE, Fate, Front, Seen, ask
from tests.ended_commands import Done

from crossdock.sandbox import SandboxServer
from crossdock.testing import postgres_server
from crossdock.testing.postgres_server import PostgresServer
from crossdock.values.acting_person_and_process import own_process_name

PLATFORM, FOLDER = "http://platform.example", "/srv/project"  # stand for what differs between machines
NIGHT = "2026-11-28"
WRITTEN_AT = 1_780_000_000  # the time of the exports, which the state knows
GONE = 16  # products that the second export no longer lists


def _stream(files: str, key: str, mode: str = "append", **more: Any) -> dict[str, Any]:
    table = {"kind": "delimited", "delimiter": ";"}
    return {"files": files, "key": [key], "mode": mode, "format": table} | more


def _decimal(column: str) -> dict[str, str]:
    return {"from": column, "as": "decimal"}


_PRODUCTS = _stream("PROD_*", "SKU", "snapshot", resource="product", on_gone="delete") | {
    "format": {"kind": "delimited", "delimiter": ";", "trailer": {"prefix": "TRL", "count": 1}},
    "map": {"sku": "SKU", "name": "NAME", "unitPrice": _decimal("PRICE")},
}
_LINE = {"productId": {"ref": "product", "key": "SKU"}, "quantity": _decimal("QTY"), "unitPrice": {"const": 2}}
_INVOICES = _stream("INV_*", "INVNO", group_by=["INVNO"], resource="invoice") | {
    "map": {
        "customerId": {"ref": "customer", "key": "CUSTNO"},
        "currency": {"const": "EUR"},
        "items": {"each": _LINE},
    },
}
_ORDER_FILES = {
    "members": {"sku": {"type": "text"}, "quantity": {"type": "text"}},
    "name": "order_id",
    "folder": "depot",
    "file": "ord_{number:6}.csv",
    "content": {
        "kind": "delimited",
        "rows": [{"columns": {"order_id": "{external_id}", "sku": "{sku}", "quantity": "{quantity}"}}],
    },
}
_CONNECTIONS: dict[str, Any] = {
    "wms": {
        "kind": "folder_warehouse",
        "path": "out",
        "settle_s": 0,
        "streams": {
            "customers": _stream("CUST_*", "CUSTNO", resource="customer", map={"name": "NAME"}),
            "products": _PRODUCTS,
            "invoices": _INVOICES,
        },
    },
    "depot": {
        "kind": "folder_warehouse",
        "path": ".",
        "settle_s": 0,
        "streams": {"orders": _stream("out/ORD_*", "ORDER", to="depot.orders", map={"sku": "SKU", "quantity": "QTY"})},
        "target": {"timezone": "UTC", "resources": {"orders": _ORDER_FILES}},
    },
}


def _products(number: int) -> str:
    rows = "".join(f"P{each};Bolt {each};1.50\n" for each in range(number))
    return f"SKU;NAME;PRICE\n{rows}TRL;{number}\n"


_FIRST = {
    "CUST_1.csv": "CUSTNO;NAME\nC1;Vogel\nC2;Amsel\n",
    "PROD_1.csv": _products(20),
    "INV_1.csv": "INVNO;CUSTNO;SKU;QTY\n1;C1;P1;2\n2;C2;P1;x\n3;C1;P2;100\n4;C9;P1;1\n",
    "ORD_1.csv": "ORDER;SKU;QTY\nO1;P1;1\nO2;P2;2\n",
}
_SECOND = {
    "CUST_2.csv": "CUSTNO;NAME\nC2;Drossel\n",
    "PROD_2.csv": _products(20 - GONE),
    "INV_2.csv": "INVNO;CUSTNO;SKU;QTY\n5;C2;P3;y\n",
}


class Project:
    """The config in *folder*, with its state at the address *state*."""

    def __init__(self, folder: Path, platform: SandboxServer, state: str, base_url: str) -> None:
        self.folder, self.platform, self.state = folder, platform, state
        self.config = folder / "crossdock.yaml"
        for name in ("out", "depot"):
            (folder / name).mkdir(parents=True)
        config = {
            "platform": {
                "base_url": base_url,
                "tenant": platform.tenant,
                "auth": {"kind": "api_key", "token": "env:CROSSDOCK_API_KEY"},
                "idempotency": {"enabled": False},
                "retry": {"attempts": 2, "base_s": 0.01, "give_up_after_s": 0.1},
            },
            "state": state,
            "connections": _CONNECTIONS,
            "jobs": {"nightly": {"streams": ["wms", "depot"], "schedule": {"time_zone": "UTC", "at": "02:00"}}},
        }
        self.config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")

    def export_first(self) -> None:
        self._export(_FIRST)

    def export_second(self) -> None:
        self._export(_SECOND)

    def _export(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / "out" / name
            path.write_text(text, encoding="utf-8")
            os.utime(path, (WRITTEN_AT, WRITTEN_AT))

    def run(self, *arguments: str) -> Done:
        given = {
            "CROSSDOCK_API_KEY": self.platform.api_key,
            "CROSSDOCK_PERSON": "operator",
            "CROSSDOCK_ADDRESS": "command line, host",
        }
        return in_process(self.config, *arguments, environment=given)

    def writes(self) -> int:
        """Return how many requests the platform got that may have changed something."""
        answer = ask(self.platform.base_url.removeprefix("http://"), "GET", "/_sandbox/requests?limit=1000")
        return sum(each["method"] != "GET" for each in json.loads(answer.body)["data"])


def write(version: str) -> None:
    """Write the state that this crossdock makes, for SQLite and for PostgreSQL."""
    with tempfile.TemporaryDirectory() as place:
        replaced = _made(Path(place), "sqlite:///state.db")
        with closing(sqlite3.connect(Path(place) / "project" / "state.db")) as database:
            _keep(f"state_{version}_sqlite.sql", database.iterdump(), replaced)
    with tempfile.TemporaryDirectory() as place, PostgresServer() as server:
        url = server.create_database().replace("+psycopg", "")
        replaced = _made(Path(place), url)
        program = postgres_server._program("pg_dump")
        command = [program, "--no-owner", "--no-privileges", "--inserts", url]
        dumped = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        lines = [line for line in dumped if line and not line.startswith(("--", "SET ", "\\"))]
        _keep(f"state_{version}_postgresql.sql", lines, replaced)


def restore(project: Project, kept: Path) -> None:
    """Load the state that is kept, as if *project* had made it."""
    sql = kept.read_text(encoding="utf-8").replace(PLATFORM, project.platform.base_url)
    sql = sql.replace(FOLDER, str(project.folder))
    if project.state.startswith("sqlite"):
        with closing(sqlite3.connect(project.folder / "state.db")) as database:
            database.executescript(sql)
        return
    with psycopg.connect(project.state, autocommit=True) as connection:
        connection.execute(sql.encode())


def _made(folder: Path, state: str) -> dict[str, str]:
    """Make a state by two runs and two decisions; return what in it depends on this machine, with a replacement."""
    with ExitStack() as opened:
        platform = opened.enter_context(SandboxServer(folder / "sandbox"))
        front = opened.enter_context(Front(platform.base_url, _fate))
        project = Project(folder / "project", platform, state, front.base_url)
        assert project.run("init").exit_code == 0
        project.export_first()
        assert project.run("sync").exit_code == 1
        project.export_second()
        assert project.run("schedule", "--once", NIGHT).exit_code == 4
        assert project.run("records", "drop", "wms.invoices", "5", "--yes").exit_code == 0
        assert project.run("jobs", "pause", "nightly").exit_code == 0
        process = own_process_name()
        return {front.base_url: PLATFORM, str(project.folder): FOLDER, process: "host:1"}


def _fate(seen: Seen) -> Fate:
    return LOSE if b'"quantity":100' in seen.body else FORWARD


def _keep(name: str, lines: Iterable[str], replaced: dict[str, str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    for found, replacement in replaced.items():
        text = text.replace(found, replacement)
    (HERE / name).write_text(text, encoding="utf-8")
