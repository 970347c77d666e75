"""The types of JSON documents, from which the reference is written, are those of what commands print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import click
import pytest
from tests.documentation.worlds import worlds
from tests.e2e.project_folder import in_process
from tests.json_types import check_type

from crossdock.cli.main import cli
from crossdock.values.json_documents.document_types_by_command import DOCUMENTS


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


WORLDS = {  # world -> commands in order, of which other tests print no JSON
    "open_records": [
        "records show wms.invoices 70010 --raw", "state readmit", "state purge --dry-run", "approve", "config show",
        "trace 70010", "trace 70011", "jobs list",
    ],
    "migration": [
        "migrate rehearse --against-platform --raw", "migrate load", "migrate status", "migrate freeze --wait 1s",
        "migrate reconcile", "migrate undo", "migrate sign-off --by Ann -o signed.html", "migrate verify signed.html",
    ],
}  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("world", WORLDS)
def test_documents_of_rare_commands_are_of_their_types(
    world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In projects with open records and with a migration; `in_process` compares them."""
    with worlds(tmp_path / "worlds") as made, made.copy(world, tmp_path / "copy") as copy:
        monkeypatch.chdir(copy.folder)
        for command in WORLDS[world]:
            done = in_process(copy.folder / "crossdock.yaml", *command.split(), "--json", environment=copy.environment)
            assert done.stdout, done.stderr


@pytest.mark.parametrize(
    ("output", "told"),
    [('{"run": 1}', ""), ('{"run": "1"}', "not of type"), ("{}", "required"), ('{"run": 1, "x": 2}', "unexpected")],
)
def test_other_members_and_types_are_found(output: str, told: str) -> None:
    """By all tests that run commands in their process."""
    with nullcontext() if not told else pytest.raises(AssertionError, match=told):
        check_type(["stop", "--json"], output)
