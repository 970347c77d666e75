"""The facts of what programs read: the members of JSON output, and the metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from tests.compatibility.facts import Fact

from crossdock.cli.main import cli
from crossdock.sandbox import SandboxServer
from crossdock.services.observability import health_and_metrics
from crossdock.testing.sandbox_syncs import write_private_file

COMMANDS = ("init", "check", "plan", "sync", "runs", "show", "trace 1", "records list", "jobs list")
_VARYING = {"slowest_steps"}  # there is one for what took time
_TYPES = {bool: "boolean", int: "number", float: "number", str: "text", list: "list", dict: "object"}


def output_facts(folder: Path) -> set[Fact]:
    """Run commands of a project in *folder*, and return the members of their JSON with types, and all metrics."""
    return {*_metrics(), *_members(folder)}


def _metrics() -> Iterator[Fact]:
    for name, (_, labels) in health_and_metrics.METRICS.items():
        yield f"crossdock_{name}", "metric"
        yield from ((f"crossdock_{name}", f"label {label}") for label in labels)
    yield from ((f"crossdock_{name}", "label tenant") for name in health_and_metrics.RUN_METRICS)


def _members(folder: Path) -> Iterator[Fact]:
    for command, document in documents(folder).items():
        yield from _facts(f"{command} --json", document)


def documents(folder: Path) -> dict[str, Any]:
    """Run `COMMANDS` of a project in *folder*, and return the JSON of each."""
    with SandboxServer(folder / "sandbox") as server:
        config = _project(folder, server)
        ran = {each: CliRunner().invoke(cli, ["-C", str(config), *each.split(), "--json"]) for each in COMMANDS}
        return {command: json.loads(each.stdout) for command, each in ran.items()}


def _project(folder: Path, server: SandboxServer) -> Path:
    """A project with a record that is delivered, one that is rejected, and a stream whose file is missing."""
    (folder / "out").mkdir()
    (folder / "out" / "items.csv").write_text("SKU;NAME;PRICE\n1;Bolt;9.5\n2;Nut;none\n", encoding="utf-8")
    stream = {
        "mode": "snapshot", "files": "items.csv", "format": {"kind": "delimited", "delimiter": ";"}, "key": ["SKU"],
        "resource": "product",
        "map": {
            "sku": "SKU", "name": "NAME", "unitPrice": {"from": "PRICE", "as": "decimal"}, "currency": {"const": "EUR"},
        },
    }  # fmt: skip
    late = stream | {"files": "missing.csv", "required": True, "namespace": "late"}
    config = {
        "platform": {
            "base_url": server.base_url,
            "tenant": server.tenant,
            "auth": {"kind": "api_key", "token": write_private_file(folder / "key", server.sandbox.new_key())},
        },
        "state": f"sqlite:///{folder / 'state.db'}",
        "connections": {
            "wms": {
                "kind": "folder_warehouse",
                "path": str(folder / "out"),
                "settle_s": 0,
                "streams": {"products": stream, "missing": late},
            }
        },
        "jobs": {"nightly": {"schedule": {"cron": "0 2 * * *", "time_zone": "UTC"}}},
    }
    path = folder / "crossdock.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def _facts(subject: str, value: Any) -> Iterator[Fact]:
    if kind := _TYPES.get(type(value)):
        yield subject, kind
    if isinstance(value, dict):
        for name, inner in value.items():
            yield f"{subject}.{name}", "member"
            yield from _facts(f"{subject}.{name}", [] if name in _VARYING else inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _facts(f"{subject}[]", inner)
