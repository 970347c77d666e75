"""Consumers of the OpenAPI document, run against a sandbox: schemathesis, and programs with generated clients."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx

from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.sandbox.openapi_schemas import INPUTS

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
THROTTLING = SandboxSettings(rate_per_min=1, burst=40)
CHANGES = 60  # of a price, by each program: more than the burst


def headers(server: SandboxServer) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.api_key}", "x-tenant-slug": server.tenant}


def parents(server: SandboxServer) -> dict[str, str]:
    """Create one resource of each type that others refer to; return the ids by the name of the referring member."""
    made = {}
    with httpx.Client(base_url=server.base_url, headers=headers(server), trust_env=False) as client:
        for member, path, name in (
            ("customerId", "/api/v1/sales/customers", "Customer"),
            ("productId", "/api/v1/catalog/products", "Product"),
            ("binId", "/api/v1/warehouse/bins", "WarehouseBin"),
            ("toBinId", "/api/v1/warehouse/bins", "WarehouseBin"),
            ("parentId", "/api/v1/finance/ledger-accounts", "LedgerAccount"),
        ):
            body = {**INPUTS[name], "externalId": f"parent:{member}"}
            made[member] = str(client.post(path, json=body).raise_for_status().json()["id"])
    return made


def schemathesis(server: SandboxServer, folder: Path, *options: str) -> str:
    """Run all checks over the whole API and return the output; AssertionError if one fails."""
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml")),
        *("run", f"{server.base_url}/openapi.json", "--checks", "all"),
        # Its warnings are about coverage, and its health checks about slow generation.
        *("--warnings", "off", "--suppress-health-check", "all", "--max-failures", "20", "--continue-on-failure"),
        *options,
    ]
    known = {"KEY": server.api_key, "TENANT": server.tenant, "PARENTS": json.dumps(parents(server))}
    given = {f"CONSUMERS_{name}": value for name, value in known.items()}
    return run(command, folder, {**given, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"})


def check_program(command: list[str], server: SandboxServer, folder: Path, first_price: Decimal) -> None:
    """Run a program with a generated client against a sandbox with the settings `THROTTLING`.

    It creates an invoice, lists it, approves it and prints it, and changes the price of a product `CHANGES` times: from
    *first_price* on, by 1 each. The sandbox's logs tell whether it did all of it once, and whether it waited as long as
    it was told when it was throttled.
    """
    ids = parents(server)
    given = {"BASE_URL": server.base_url, "TENANT": server.tenant, "API_KEY": server.api_key}
    output = run(command, folder, {**given, "CUSTOMER": ids["customerId"], "PRODUCT": ids["productId"]})
    invoice = json.loads(output)
    assert (invoice["status"], invoice["total"]) == ("approved", 75)

    effects, requests = _logged(server, "effects"), _logged(server, "requests")
    done = [(each["resource"], each["operation"]) for each in effects]
    assert (done.count(("invoice", "create")), done.count(("invoice", "approve"))) == (1, 1)
    assert ("GET", 200) in {(each["method"], each["status"]) for each in requests}
    created, *updated = [each["body"] for each in effects if each["resource"] == "product"]
    assert [each["unitPrice"] for each in updated] == [first_price + number for number in range(CHANGES)]
    changed = {name for each in updated for name in created | each if each.get(name) != created.get(name)}
    assert changed == {"unitPrice", "updatedAt"}

    updates = [(each["idempotencyKey"], each["status"]) for each in requests if each["method"] == "PATCH"]
    throttled = [place for place, (_, status) in enumerate(updates) if status == 429]
    assert len(throttled) > CHANGES - THROTTLING.burst
    assert all(updates[place + 1] == (updates[place][0], 200) for place in throttled), updates


def run(command: list[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command in *folder* and return its standard output; AssertionError with its output if it fails."""
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**clean, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command[:6])} ...\n{done.stdout[-8000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def _logged(server: SandboxServer, log: str) -> list[dict[str, Any]]:
    """A log of the sandbox, its numbers exact."""
    answer = httpx.get(f"{server.base_url}/_sandbox/{log}", trust_env=False).raise_for_status()
    found: list[dict[str, Any]] = json.loads(answer.text, parse_int=Decimal, parse_float=Decimal)["data"]
    return found
