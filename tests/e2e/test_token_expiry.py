"""A sync of many records with access tokens that live for two seconds."""

from __future__ import annotations

import os
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.e2e.project_folder import ROOT, UNPACED, SandboxProcess, balance

from crossdock.platform.credentials import RENEWED_AT

LIFE_S = 2
SENDERS = 50
ANSWER_MS = 350  # with 50 senders, 600 records take at least 4.2 s


def write_project(folder: Path, sandbox: SandboxProcess, records: int) -> Path:
    """The project of ``configs/oauth.yaml``, with so many customers and a client of *sandbox*."""
    config: dict[str, Any] = yaml.safe_load((ROOT / "configs" / "oauth.yaml").read_text())
    rate = {"per_minute": UNPACED.per_minute, "burst": UNPACED.burst}
    own = {"base_url": sandbox.base_url, "tenant": sandbox.tenant, "in_flight": SENDERS, "rate": rate}
    config["platform"] |= own
    (folder / "exports" / "out").mkdir(parents=True)
    rows = (f"{number:05};Customer {number}" for number in range(records))
    (folder / "exports" / "out" / "CUSTOMERS_1.csv").write_text("\n".join(("CUSTNO;NAME", *rows, "")))
    path = folder / "oauth.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def sync(config: Path, secret: str) -> dict[str, Any]:
    """The report of a sync in a process of its own."""
    environment = {**os.environ, "CROSSDOCK_CLIENT_SECRET": secret}
    command = [*CROSSDOCK, "-C", str(config)]
    started = processes.finish([*command, "init"], environment)
    assert started.exit_code == 0, started.stderr
    done = processes.finish([*command, "sync", "--json"], environment)
    assert done.exit_code == 0, f"{done.stderr}{done.stdout}"
    balance(done.document)
    return done.document


def renewed_once_per_expiry(tmp_path: Path, *, records: int, expiries: int) -> None:
    """Fails unless a sync renews its token once per expiry.

    Args:
        expiries: At least so many; otherwise the run was too short to show anything.
    """
    with SandboxProcess(tmp_path / "sandbox", UNPACED, "--token-life", str(LIFE_S)) as sandbox:
        client = sandbox.control("clients", {"id": "crossdock", "scopes": ["customers:write"]})
        slow = {"name": "slow", "probability": 1.0, "route": "POST customer", "ms": ANSWER_MS}
        sandbox.control("faults", {"faults": [slow]})
        report = sync(write_project(tmp_path, sandbox, records), client["client_secret"])
        requests, effects = sandbox.request_log(0), sandbox.effects()

    renewals = [datetime.fromisoformat(each["at"]) for each in requests if each["path"] == "/oauth/token"]
    lasted_s = (renewals[-1] - renewals[0]).total_seconds()
    assert lasted_s > expiries * LIFE_S
    # One more than fits, because the first request may have been longer on its way than the last.
    assert len(renewals) - 1 <= lasted_s / (RENEWED_AT * LIFE_S) + 1
    assert Counter(each["status"] for each in requests) == {200: len(renewals), 201: records}

    assert report["streams"]["wms.customers"]["records"]["created"] == records
    created = Counter((each["operation"], each["body"]["externalId"]) for each in effects)
    assert created == Counter(("create", f"wms:{number:05}") for number in range(records))


@pytest.mark.nightly
def test_a_sync_renews_its_token_once_per_expiry(tmp_path: Path) -> None:
    """Fifty senders share one renewal per expiry, no request is refused, and every record is created once."""
    renewed_once_per_expiry(tmp_path, records=600, expiries=1)
