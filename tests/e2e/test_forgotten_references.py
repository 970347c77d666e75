"""A record is not deleted while one refers to it of which only the platform knows, because the state has forgotten it.

The file that brought the referring record is in an archive, so no stream reads it again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.folder_project import FolderProject, table
from tests.e2e.gone_customers import order_map, snapshot
from tests.e2e.project_folder import in_process
from tests.e2e.test_contributions import agreed
from tests.e2e.warehouse import ask
from tests.ended_commands import Done

from crossdock.sandbox import SandboxServer

_LINES = {key: value for key, value in order_map(None).items() if key != "placedAt"}
_STREAMS: dict[str, Any] = {
    "customers": snapshot("CUST*.csv", "customer", {"name": "NO"}),
    "products": table("PROD*.csv", ["NO"], resource="product", map={"sku": "NO", "name": "NO"}),
    "orders": table("ORD*.csv", ["NO"], resource="order", map=order_map(None), group_by=["NO"]),
    "invoices": table("INV*.csv", ["NO"], resource="invoice", map=_LINES, group_by=["NO"]),
}


class Project(FolderProject):
    """Customers come and go. *referring* is the kind of record that names C2, and that the state forgets."""

    def __init__(self, folder: Path, platform: SandboxServer) -> None:
        folder.mkdir()
        (folder / "out").mkdir()
        wms = {"kind": "folder_warehouse", "path": "out", "settle_s": 0, "streams": _STREAMS}
        super().__init__(folder, platform, {"wms": wms})
        self._nights, self.api_key = 0, platform.api_key
        assert self.run("init").exit_code == 0
        self.write("PROD1.csv", "NO\nP1\n")
        self.customers("C1", "C2")
        self.name("INV", "C1")
        self.name("ORD", "C1")
        self.sync()

    def run(self, *arguments: str) -> Done:
        return in_process(self.config, *arguments, environment={"CROSSDOCK_API_KEY": self.api_key})

    def customers(self, *names: str) -> None:
        self._nights += 1
        rows = [f"{name};{self._nights}" for name in names]
        self.write(f"CUST{self._nights:03d}.csv", "\n".join(["NO;NIGHT", *rows, f"TRL;{len(rows)}", ""]))

    def name(self, prefix: str, customer: str) -> Path:
        """Export an invoice or an order of *customer*."""
        self.write(f"{prefix}{customer}.csv", f"NO;CUST;SKU;QTY\n{prefix}-{customer};{customer};P1;1\n")
        return self.folder / "out" / f"{prefix}{customer}.csv"

    def forget(self, prefix: str) -> None:
        """Let a sync deliver the record that names C2, move its file to an archive, and restore the state before."""
        backup = self.folder / "backup.db"
        shutil.copy2(self.folder / "state.db", backup)
        exported = self.name(prefix, "C2")
        self.sync()
        exported.unlink()
        self.remove_state()
        shutil.copy2(backup, self.folder / "state.db")

    def remove_state(self) -> None:
        for file in self.folder.glob("state.db*"):
            shutil.rmtree(file) if file.is_dir() else file.unlink()

    def has(self, customer: str) -> bool:
        headers = {"authorization": f"Bearer {self.platform.api_key}", "x-tenant-slug": self.platform.tenant}
        netloc = self.platform.base_url.removeprefix("http://")
        return f'"wms:{customer}"' in ask(netloc, "GET", "/api/v1/sales/customers", headers=headers).body.decode()

    def why_kept(self) -> list[str]:
        listed = self.run("records", "list", "--json", "--state", "rejected").stdout
        return [each["why"] for each in json.loads(listed)]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with SandboxServer(tmp_path / "sandbox") as platform:
        yield Project(tmp_path / "project", platform)


@pytest.mark.nightly(but=["ORD-2"])
@pytest.mark.parametrize(("prefix", "nights"), [("INV", 0), ("INV", 2), ("ORD", 2)])
def test_what_a_forgotten_record_names_is_kept(project: Project, prefix: str, nights: int) -> None:
    """It is kept by the sync that compares the restored state, and by those after it, as their plans say."""
    project.forget(prefix)
    assert project.run("state", "restored").exit_code == 0
    for _ in range(nights):
        project.customers("C1", "C2")
        project.sync()
    project.customers("C1")
    if nights:
        agreed(project, 1)
    else:
        project.sync(1)
    (why,) = project.why_kept()
    assert why.startswith("referenced_by")
    assert project.has("C2")
    project.customers("C1", "C2")
    project.sync()
    assert project.why_kept() == []


def test_what_an_order_names_no_more_is_deleted(project: Project) -> None:
    """The forgotten order comes back from its source, and then names another customer."""
    project.forget("ORD")
    assert project.run("state", "restored").exit_code == 0
    project.sync()
    project.write("ORDlater.csv", "NO;CUST;SKU;QTY\nORD-C2;C1;P1;1\n")
    project.customers("C1")
    agreed(project)
    assert not project.has("C2")


@pytest.mark.nightly(but=["INV-declared"])
@pytest.mark.parametrize(("prefix", "way"), [("ORD", "imported"), ("INV", "declared")])
def test_a_new_state_keeps_what_a_record_of_a_lost_one_names(project: Project, prefix: str, way: str) -> None:
    """Its bindings were exported before the first record of that kind was delivered, or were not exported at all."""
    rows = project.run("bindings", "export").stdout.splitlines()
    kept = project.folder / "bindings.csv"
    kept.write_text("\n".join(row for row in rows if "invoice" not in row and "order" not in row) + "\n")
    project.forget(prefix)
    for file in (project.folder / "out").glob("[IO]*.csv"):
        file.unlink()
    project.remove_state()
    assert project.run("init").exit_code == 0
    done = project.run("bindings", "import", str(kept)) if way == "imported" else project.run("state", "restored")
    assert done.exit_code == 0, done.stderr
    for _ in range(4):
        project.customers("C1", "C2")
        project.sync()
    project.customers("C1")
    agreed(project, 1)
    assert project.has("C2")


def test_nothing_is_deleted_while_lists_of_referring_records_cannot_be_read(project: Project) -> None:
    """The credential may not read invoices, so any of them may name the customer; once it may, they are read."""
    project.forget("INV")
    assert project.run("state", "restored").exit_code == 0
    scopes = [f"{name}:{right}" for name in ("customers", "products", "orders") for right in ("read", "write")]
    project.api_key = project.platform.sandbox.new_key(project.platform.tenant, *scopes)
    project.customers("C1")
    project.sync(1)
    (why,) = project.why_kept()
    assert "records of invoice that the state does not know may refer to it: their list could not be read" in why
    assert project.has("C2")
    project.api_key = project.platform.api_key
    assert project.run("state", "restored").exit_code == 0
    project.customers("C1")
    project.sync(1)
    assert project.why_kept()[0].startswith("referenced_by: invoice inv_")
