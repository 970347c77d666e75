"""The example configs really run: plan and sync of the sample files against a sandbox, judged by its effects log."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest
from tests.e2e.project_folder import in_process

from crossdock.sandbox import SandboxServer
from crossdock.testing.sftp_server import SftpServer

ROOT = Path(__file__).resolve().parents[2]
HOUR_AGO = time.time() - 3600
HOLIDAYS = {date(2026, 12, 25), date(2027, 1, 1)}  # of configs/schedule.yaml


@dataclass(frozen=True)
class Examples:
    """A copy of ``configs/`` whose platform is a sandbox with a free port."""

    folder: Path
    platform: SandboxServer

    def crossdock(self, config: str, *arguments: str, **secrets: str) -> Any:
        """Run a command that must succeed, with no other variables; its JSON document."""
        environment = {"CROSSDOCK_API_KEY": self.platform.api_key, **secrets}
        with mock.patch.dict(os.environ, clear=True):
            done = in_process(self.folder / config, *arguments, "--json", environment=environment)
        assert done.exit_code == 0, done.stderr
        return done.document

    def created(self) -> Counter[str]:
        """What the sandbox created, by resource."""
        answer = httpx.get(f"{self.platform.base_url}/_sandbox/effects", params={"limit": "1000"}, trust_env=False)
        return Counter(effect["resource"] for effect in answer.json()["data"])

    def edit(self, config: str, **values: str) -> None:
        """Replace the values of some keys."""
        text = (self.folder / config).read_text(encoding="utf-8")
        for key, value in values.items():
            text, found = re.subn(rf"^( *{key}: )\S+", rf"\g<1>{value}", text, flags=re.MULTILINE)
            assert found == 1
        (self.folder / config).write_text(text, encoding="utf-8")


@pytest.fixture
def examples(tmp_path: Path) -> Iterator[Examples]:
    shutil.copytree(ROOT / "configs", tmp_path / "configs", ignore=shutil.ignore_patterns("*.db*"))
    for exports in (tmp_path / "configs").rglob("exports"):
        for path in exports.rglob("*.*"):
            os.utime(path, (HOUR_AGO, HOUR_AGO))  # a young file is observed for some seconds before it is read
    with SandboxServer(tmp_path / "sandbox") as platform:
        yield Examples(tmp_path / "configs", platform)


@pytest.mark.nightly
def test_the_folder_example_runs(examples: Examples) -> None:
    """The plan announces what the sync delivers; each record has exactly one effect, and a second sync has none."""
    examples.edit("folder.yaml", base_url=examples.platform.base_url)
    examples.crossdock("folder.yaml", "init")
    planned = examples.crossdock("folder.yaml", "plan")["operations"]
    assert sum(planned.values()) == 15
    report = examples.crossdock("folder.yaml", "sync")
    assert report["streams"]["wms.invoices"]["rows"]["filtered"] == {"cancelled": 1}
    delivered = {"product": 4, "customer": 3, "warehouse_bin": 3, "inventory_lot": 3, "invoice": 2}
    assert examples.created() == delivered
    assert examples.crossdock("folder.yaml", "sync")["requests"] == 0
    assert examples.created() == delivered


def test_the_sftp_example_runs(examples: Examples) -> None:
    """The same sample files come from an SFTP server."""
    with SftpServer(examples.folder / "exports") as server:
        place = {"port": str(server.port), "host_key": f'"{server.fingerprint}"'}
        examples.edit("sftp.yaml", base_url=examples.platform.base_url, **place)
        examples.crossdock("sftp.yaml", "init")
        examples.crossdock("sftp.yaml", "sync", WMS_PASSWORD=server.password)
    assert examples.created() == {"customer": 2, "product": 3}


@pytest.mark.nightly
def test_the_oauth_example_runs(examples: Examples) -> None:
    """A client with the one scope of its comment is sufficient, and no request is refused."""
    _, secret = examples.platform.sandbox.clients.create_credential(scopes=["customers:write"], client_id="crossdock")
    examples.edit("oauth.yaml", base_url=examples.platform.base_url)
    examples.crossdock("oauth.yaml", "init", CROSSDOCK_CLIENT_SECRET=secret)
    examples.crossdock("oauth.yaml", "check", CROSSDOCK_CLIENT_SECRET=secret)
    examples.crossdock("oauth.yaml", "sync", CROSSDOCK_CLIENT_SECRET=secret)
    assert examples.created() == {"customer": 3}
    log = httpx.get(f"{examples.platform.base_url}/_sandbox/requests", trust_env=False).json()
    assert set(log["byStatus"]) <= {"200", "201"}
    assert {each["credential"] for each in log["data"]} == {"crossdock"}


@pytest.mark.nightly
def test_the_schedule_example_runs(examples: Examples) -> None:
    """The jobs have due times, and one of them runs for a business date."""
    examples.edit("schedule.yaml", base_url=examples.platform.base_url)
    examples.crossdock("schedule.yaml", "init")
    rows = examples.crossdock("schedule.yaml", "schedule", "--preview", "40")
    assert {row["job"] for row in rows} == {"stock", "customers", "month_end"}
    day = _business_date()
    (report,) = examples.crossdock("schedule.yaml", "schedule", "--once", day, "--job", "stock")
    assert (report["business_date"], report["status"]) == (day, "done")
    assert examples.created() == {"product": 4}


@pytest.mark.nightly
def test_the_fleet_example_runs(examples: Examples) -> None:
    """The commands of its comment, and a sync of each tenant: each delivers its own records, under its own key."""
    examples.edit("fleet/base.yaml", base_url=examples.platform.base_url)
    keys = {f"{name.upper()}_API_KEY": examples.platform.sandbox.new_key(name) for name in ("acme", "globex")}
    base, tenants = examples.folder / "fleet" / "base.yaml", examples.folder / "fleet" / "tenants"
    created = examples.crossdock("fleet/base.yaml", "init", "--fleet", str(tenants))
    assert [each["tenant"] for each in created] == ["acme", "globex"]
    rows = examples.crossdock("fleet/base.yaml", "schedule", "--fleet", str(tenants), "--preview", "1")
    assert len({(row["tenant"], row["job"]) for row in rows}) == 4
    for config in sorted(tenants.iterdir()):
        examples.crossdock("fleet/base.yaml", "sync", "-C", str(base), "-C", str(config), **keys)
    listed = examples.crossdock("fleet/base.yaml", "runs", "--fleet", str(tenants))
    assert [(each["tenant"], each["status"]) for each in listed] == [("globex", "done"), ("acme", "done")]
    assert examples.created() == {"customer": 3, "product": 3}


def _business_date() -> str:
    """The latest business date of the job ``stock``: the day before a working day that has begun everywhere."""
    day = datetime.now(UTC).date() - timedelta(days=1)
    while day.weekday() > 4 or day in HOLIDAYS:
        day -= timedelta(days=1)
    return (day - timedelta(days=1)).isoformat()
