"""Consumers of the OpenAPI document, run against a sandbox: schemathesis, and clients from two generators."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from crossdock.sandbox import SandboxServer
from crossdock.sandbox.openapi_examples import INPUTS

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
NPM_PACKAGES = ("openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3")


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


def python_client(server: SandboxServer, folder: Path) -> Path:
    """Generate the Python client ``platform_client`` into *folder*; a warning of the generator is a failure."""
    document = _document(server, folder)
    made = folder / "platform_client"
    generate = (sys.executable, "-m", "openapi_python_client", "generate", "--path", str(document), "--meta", "none")
    run([*generate, "--output-path", str(made), "--fail-on-warning"], folder)
    program = folder / "create_invoice.py"
    program.write_text((HERE / "create_invoice.py").read_text(encoding="utf-8"), encoding="utf-8")
    return program


def typescript_client(server: SandboxServer, folder: Path) -> Path:
    """Install the generator into *folder*, generate the types, and compile the program that uses them."""
    document = _document(server, folder)
    (folder / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
    run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *NPM_PACKAGES], folder)
    run(["npx", "--no-install", "openapi-typescript", str(document), "-o", "platform.d.ts"], folder)
    program = folder / "create_invoice.ts"
    program.write_text((HERE / "create_invoice.ts").read_text(encoding="utf-8"), encoding="utf-8")
    strict = ("--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess")
    target = ("--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext", "--lib", "es2022,dom")
    run(["npx", "--no-install", "tsc", *strict, *target, str(program), "platform.d.ts"], folder)
    return program.with_suffix(".js")


def go_client(server: SandboxServer, folder: Path) -> Path:
    """Generate a Go module whose amounts are decimals, and build the program that uses it."""
    document, made = _document(server, folder), folder / "platform"
    generate = ["openapi-generator-cli", "generate", "-g", "go", "-i", str(document), "-o", str(made)]
    options = ["--package-name", "platform", "--type-mappings", "number=Decimal", "--additional-properties"]
    parts = ["--global-property", "apiTests=false,modelTests=false"]
    run([*generate, *options, "withGoMod=false", *parts], folder)
    (made / "go.mod").write_text("module example.com/platform\n\ngo 1.23\n", encoding="utf-8")
    (made / "program").mkdir()
    for name, place in (("decimal.go", made), ("create_invoice.go", made / "program")):
        (place / name).write_text((HERE / name).read_text(encoding="utf-8"), encoding="utf-8")
    own = {"GOCACHE": str(folder / "cache"), "GOPATH": str(folder / "path"), "GOTOOLCHAIN": "local", "GOPROXY": "off"}
    run(["go", "build", "-o", "create_invoice", "./program"], made, own)
    return made / "create_invoice"


def use(command: list[str], server: SandboxServer, folder: Path) -> dict[str, Any]:
    """Run a generated client's program and return the stored invoice that it prints."""
    ids = parents(server)
    given = {"BASE_URL": server.base_url, "TENANT": server.tenant, "API_KEY": server.api_key}
    output = run(command, folder, {**given, "CUSTOMER": ids["customerId"], "PRODUCT": ids["productId"]})
    invoice: dict[str, Any] = json.loads(output)
    return invoice


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


def _document(server: SandboxServer, folder: Path) -> Path:
    path = folder / "openapi.json"
    path.write_bytes(httpx.get(f"{server.base_url}/openapi.json", trust_env=False).content)
    return path
