"""The reference of JSON output names what commands print, and nothing that the code does not know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.compatibility.output_facts import COMMANDS, documents
from tests.documentation.fences import DOCS, ROOT

PAGE = DOCS / "reference" / "json_output.md"
PAGES = PAGE, PAGE.with_name("json_output_migrate.md")
ALWAYS = ("Messages", "Tally")
ANY_NAME = r"`(\w+)`[^`{]*\{(?!`)"  # such as: `streams` {name: tally}, `bindings` [{column: value}]


def sections(page: Path) -> dict[str, str]:
    """The text of each section by its heading."""
    parts = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {heading: text for heading, _, text in (part.partition("\n") for part in parts)}


def text_about(command: str) -> str:
    """What the page says about *command*: its section, those to which it refers, and what all have in common."""
    found = sections(PAGE)
    named = {name: text for heading, text in found.items() for name in re.sub(r" \([^)]*\)", "", heading).split(", ")}
    own = named[re.sub(r" \d+$", "", command)]
    return "\n".join(
        [own, *(named[each] for each in re.findall(r"as in `([^`]+)`", own)), *map(found.__getitem__, ALWAYS)]
    )


def members(value: Any, any_name: set[str], parent: str = "") -> Iterator[str]:
    """The names of all members below *value*, except those that are names of streams, resources and the like."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if parent not in any_name:
                yield name
            yield from members(inner, any_name, "" if parent in any_name else name)
    elif isinstance(value, list):
        for inner in value:
            yield from members(inner, any_name, parent)


@pytest.fixture(scope="module", name="printed")
def _printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return documents(tmp_path_factory.mktemp("project"))


@pytest.mark.parametrize("command", COMMANDS)
def test_each_printed_member_is_described(printed: dict[str, Any], command: str) -> None:
    """In the section of the command, or in one to which it refers."""
    text = text_about(command)
    described = {*re.findall(r"`([^`\n]+)`", text)}
    found = {*members(printed[command], {*re.findall(ANY_NAME, text)})}
    assert found
    assert found - described == set()


@cache
def source() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "core").rglob("*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_described_member_is_known_to_the_code(page: Path) -> None:
    """A member that was renamed or removed is not described any more."""
    described = {*re.findall(r"`([a-z]\w*)`", page.read_text(encoding="utf-8"))}
    assert len(described) > 50
    assert {name for name in described if not re.search(rf"\b{name}\b", source())} == set()
