"""The types of JSON documents, from which the reference is written, are those of what commands print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import click
import jsonschema_rs
import msgspec
import pytest
from tests.compatibility.output_facts import COMMANDS, documents
from tests.documentation.worlds import worlds
from tests.e2e.project_folder import in_process

from crossdock.cli.main import cli
from crossdock.values.json_documents.by_command import DOCUMENTS


@cache
def validator(usage: str) -> jsonschema_rs.Validator:
    """Refuses members that the type does not have, lacking ones, and those of other types."""
    (schema,), objects = msgspec.json.schema_components([DOCUMENTS[usage]], ref_template="#/$defs/{name}")
    closed = {name: each | {"additionalProperties": False} for name, each in objects.items()}
    return jsonschema_rs.validator_for({**schema, "$defs": closed})


def faults(usage: str, document: Any) -> list[str]:
    found = validator(usage).iter_errors(document)
    return [f"{usage}: {'/'.join(map(str, each.instance_path))}: {each.message[:300]}" for each in found]


def commands_with_json(group: click.Group, context: click.Context, before: str = "") -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if any("--json" in each.opts for each in command.params):
            yield f"{before}{name}"
        if isinstance(command, click.Group):
            yield from commands_with_json(command, click.Context(command, parent=context), f"{before}{name} ")


def test_each_command_with_json_has_a_type() -> None:
    """A new one fails here."""
    known = {re.sub(r",? (-|[A-Z]).*", "", usage) for usage in DOCUMENTS}
    assert known == {*commands_with_json(cli, click.Context(cli))}


@pytest.fixture(scope="module", name="printed")
def _printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return documents(tmp_path_factory.mktemp("project"))


@pytest.mark.parametrize("command", COMMANDS)
def test_documents_are_of_their_types(printed: dict[str, Any], command: str) -> None:
    """With each member, and without others."""
    assert printed[command]
    assert faults(re.sub(r" \d+$", "", command), printed[command]) == []


WORLDS = {  # world -> commands in order, by what says how they are used
    "open_records": {
        "records list": ["records list", "records list --state waiting", "records list --state in-doubt"],
        "records show": ["records show wms.invoices 70010", "records show wms.invoices 70010 --raw"],
        "records resolve STREAM KEY": ["records resolve wms.invoices 70013"],
        "audit": ["audit"],
        "report --month": [f"report --month {datetime.now(UTC):%Y-%m}"],
        "runs": ["runs"],
        "show": ["show"],
        "trace": ["trace 70010", "trace 70011", "trace 70013", "trace 0001"],
        "state stats": ["state stats"],
        "state readmit": ["state readmit"],
        "state purge": ["state purge --dry-run"],
        "state compact": ["state compact"],
        "approve": ["approve"],
        "config show": ["config show"],
    },
    "delivered": {"plan": ["plan"], "reconcile": ["reconcile"], "undo": ["undo 2"], "sync": ["sync"]},
    "warehouse": {"try": ["try wms.products", "try wms.products --raw"], "check": ["check"]},
    "migration": {
        "migrate rehearse": ["migrate rehearse", "migrate rehearse --against-platform", "migrate rehearse --raw"],
        "migrate load": ["migrate load"],
        "migrate status": ["migrate status"],
        "migrate freeze": ["migrate freeze --wait 1s"],
        "migrate reconcile": ["migrate reconcile"],
        "migrate undo": ["migrate undo"],
        "migrate sign-off": ["migrate sign-off --by Ann -o signed.html"],
        "migrate verify": ["migrate verify signed.html"],
    },
}


@pytest.mark.nightly
@pytest.mark.parametrize("world", WORLDS)
def test_documents_of_other_commands_are_of_their_types(
    world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In projects with open records and with a migration."""
    found = []
    with worlds(tmp_path / "worlds") as made, made.copy(world, tmp_path / "copy") as copy:
        monkeypatch.chdir(copy.folder)
        for usage, commands in WORLDS[world].items():
            for command in commands:
                done = in_process(
                    copy.folder / "crossdock.yaml", *command.split(), "--json", environment=copy.environment
                )
                assert done.stdout, done.stderr
                found += [f"{command}: {each}" for each in faults(usage, json.loads(done.stdout))]
    assert found == []
