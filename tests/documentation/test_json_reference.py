"""The reference of JSON output names what commands print, and nothing that the code does not know."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.compatibility.output_facts import COMMANDS, documents
from tests.documentation.fences import DOCS, ROOT
from tests.documentation.worlds import worlds
from tests.e2e.project_folder import in_process

PAGE = DOCS / "reference" / "json_output.md"
PAGES = PAGE, PAGE.with_name("json_output_migrate.md")
ALWAYS = ("Messages", "Tally")
ANY_NAME = r"`(\w+)`[^`{]*\{(?!`)"  # such as: `streams` {name: tally}, `bindings` [{column: value}]


@cache
def sections() -> dict[str, str]:
    """The text of each section of both pages by what is in its heading: commands, or what all have in common."""
    found = dict[str, str]()
    for page in PAGES:
        for part in re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            heading, _, text = part.partition("\n")
            found |= dict.fromkeys(re.split(", ", re.sub(r" \([^)]*\)|;.*", "", heading)), text)
    return found


def text_about(command: str) -> str:
    """What the pages say about *command*: its section, those to which it refers, and what all have in common."""
    own = sections()[command]
    others = re.findall(r"\b(?:as in|as of|that of) `([^`]+)`", own)
    return "\n".join([own, *(sections()[each] for each in (*others, *ALWAYS))])


def members(value: Any, any_name: set[str], parent: str = "") -> Iterator[str]:
    """The names of all members below *value*, except those that are names of streams, resources and the like."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if parent not in any_name:
                yield name
            yield from members(inner, any_name, name)
    elif isinstance(value, list):
        for inner in value:
            yield from members(inner, any_name, parent)


def not_described(document: Any, section: str) -> set[str]:
    """The members of *document* that the section of a command does not name."""
    text = text_about(section)
    return {*members(document, {*re.findall(ANY_NAME, text)})} - {*re.findall(r"`([^`\n]+)`", text)}


@pytest.fixture(scope="module", name="printed")
def _printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return documents(tmp_path_factory.mktemp("project"))


@pytest.mark.parametrize("command", COMMANDS)
def test_each_printed_member_is_described(printed: dict[str, Any], command: str) -> None:
    """In the section of the command, or in one to which it refers."""
    assert printed[command]
    assert not_described(printed[command], re.sub(r" \d+$", "", command)) == set()


WORLDS = {  # world -> commands in order, by the section that describes their output
    "open_records": {
        "records list": ["records list", "records list --state waiting", "records list --state in-doubt"],
        "records show": ["records show wms.invoices 70010"],
        "records resolve STREAM KEY": ["records resolve wms.invoices 70013"],
        "audit": ["audit"],
        "report --month": [f"report --month {datetime.now(UTC):%Y-%m}"],
        "runs": ["runs"],
        "show": ["show"],
        "trace": ["trace 70010", "trace 70011", "trace 70013", "trace 0001"],
        "state stats": ["state stats"],
        "state compact": ["state compact"],
    },
    "delivered": {"plan": ["plan"], "reconcile": ["reconcile"], "undo": ["undo 2"], "sync": ["sync"]},
    "warehouse": {"try": ["try wms.products"], "check": ["check"]},
    "migration": {
        "migrate rehearse": ["migrate rehearse", "migrate rehearse --against-platform"],
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
def test_members_of_other_commands_are_described(world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In projects with open records and with a migration."""
    lacking = {}
    with worlds(tmp_path / "worlds") as made, made.copy(world, tmp_path / "copy") as copy:
        monkeypatch.chdir(copy.folder)
        for section, commands in WORLDS[world].items():
            for command in commands:
                done = in_process(
                    copy.folder / "crossdock.yaml", *command.split(), "--json", environment=copy.environment
                )
                assert done.stdout, done.stderr
                lacking[command] = not_described(json.loads(done.stdout), section)
    assert [f"{command}: {sorted(found)}" for command, found in lacking.items() if found] == []


@cache
def source() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "core").rglob("*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_described_member_is_known_to_the_code(page: Path) -> None:
    """A member that was renamed or removed is not described any more."""
    described = {*re.findall(r"`([a-z]\w*)`", page.read_text(encoding="utf-8"))}
    assert len(described) > 50
    assert {name for name in described if not re.search(rf"\b{name}\b", source())} == set()
