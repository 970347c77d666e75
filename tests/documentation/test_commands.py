"""Each command that a page shows is run, in order, in a real project; what does not work fails."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.documentation import claims
from tests.documentation.fences import READ, Fence, fences_of, page_name
from tests.documentation.json_blocks import differences
from tests.documentation.quoted_messages import unknown_words
from tests.documentation.shell import UNBALANCED, WRONG_USAGE, Ran, Shell
from tests.documentation.worlds import Worlds, worlds

SHELL, OUTPUT = "sh", ("text", "json")
OFTEN_READ = {  # these always run, the others nightly
    *("README", "CONTRIBUTING", "how_to.configure.first_config", "how_to.configure.map_columns"),
    *(
        "how_to.apis.first_api",
        "how_to.connectors.start",
        "how_to.run.sync",
        "how_to.listen.run_it",
        "how_to.schedule.jobs",
    ),
}
PAGES = [page for page in READ if any(each.language == SHELL for each in fences_of(page))]
NEEDED = {  # world -> what the commands of its pages say; the first that fits
    "fleet": r"--fleet|base\.yaml",
    "migrated": r"(?s)\A(?!.*migrate load).*crossdock migrate (undo|freeze|reconcile|sign-off|status)",
    "migration": r"crossdock migrate ",
    "webhooks": r"crossdock listen (register|list|remove) ",
    "books": r"crossdock connect books",
    "edi": r"--stream depot\.",
    "exchange": r"wms\.(shipments|acknowledgements)",
    "refused_removal": r"crossdock approve\b",
    "new_project": r"(?s)\A(?!.*crossdock new).*acme_shop\.",
    "rejected": r"crossdock records (replay|show|drop)\b",
    "open_records": (
        r"crossdock (records (resolve|reopen|list --state (waiting|in-doubt|pending))|audit|console|(report|show) \d)"
    ),
    "delivered": r"crossdock (reconcile|undo|trace|state)\b",
}


@pytest.fixture(scope="session", name="made")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    with worlds(tmp_path_factory.mktemp("worlds")) as made:
        yield made


def world_of(blocks: list[Fence]) -> str:
    """The world that a comment names, or that the commands of the blocks need."""
    if "world" in blocks[0].options:
        return blocks[0].options["world"]
    text = "\n".join(each.text for each in blocks)
    return next((world for world, said in NEEDED.items() if re.search(said, text)), "warehouse")


def journeys(page: Path) -> list[list[Fence]]:
    """The blocks of a page in order; a comment that names a world begins anew, in that world."""
    found: list[list[Fence]] = [[]]
    for block in fences_of(page):
        if block.language == SHELL and not claims.claim(claims.SHELL, block.text):
            if "world" in block.options and found[-1]:
                found.append([])
            found[-1].append(block)
        elif block.language in OUTPUT and found[-1] and block.before in found[-1]:
            found[-1].append(block)
    return [each for each in found if each]


def normal(line: str) -> str:
    """A line without what differs each time: numbers, ids, folders and the width of columns."""
    line = re.sub(r"(?:\w+:)?/\S*/", "/", line)
    line = re.sub(r"\b(?:[a-z]{3}_)?[0-9a-f]{12,}\b", "#", line)
    line = re.sub(r"\d+(?:[.,:]\d+)*", "#", line)
    return " ".join(re.sub(r"(?:# h )?(?:# min )?# s\b", "# s", line).split())


def check_output(told: Fence, output: str) -> None:
    """Fail unless the lines that a page shows are in the output of its commands, or all are messages of the code."""
    known = {normal(line) for line in output.splitlines()}
    lacking = [line for line in told.text.splitlines() if line.strip() != "..." and normal(line) not in known | {""}]
    if len(lacking) == len(told.text.splitlines()):
        lacking = [line for line in lacking if unknown_words(line)]
    assert lacking == [], f"{told.place}: not in the output: {lacking}\n{output}"


def check_json(told: Fence, output: str) -> None:
    """Fail unless the JSON that a page shows has members, types and values of what the command has printed."""
    assert differences(json.loads(told.text), json.loads(output), normal) == [], f"{told.place}: {output}"


def check(block: Fence, ran: Ran) -> None:
    """Fail unless a block did what its page says."""
    expected = {*map(int, block.options.get("exit", "0").split())} - {0}
    said = f"{block.place}: exit {ran.exit_code}, {ran.commands}\n{ran.output}\n{ran.errors}"
    codes = {code for _, code in ran.commands}
    assert "Traceback" not in ran.output + ran.errors, said
    assert codes - {0} == expected, said
    assert expected or ran.exit_code == 0, said
    assert expected or not codes & {WRONG_USAGE, UNBALANCED}, said


def cases() -> Iterator[Any]:
    """The pages, of which most run nightly."""
    for page in PAGES:
        name = page_name(page)
        yield pytest.param(page, id=name, marks=[] if name in OFTEN_READ else [pytest.mark.nightly])


@pytest.mark.parametrize("page", list(cases()))
def test_commands_of_a_page(page: Path, made: Worlds, tmp_path: Path) -> None:
    """Each ends with exit code 0, or with the one in a comment before the block; services start and can be stopped."""
    units = re.findall(r"^ExecStart=(\S*crossdock .*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    for number, blocks in enumerate(journeys(page)):
        place = tmp_path / f"shell-{number}"
        place.mkdir()
        with (
            made.copy(world_of(blocks), tmp_path / f"world-{number}") as world,
            Shell(place, world, units) as shell,
        ):
            ran = Ran(0, "", "")
            for block in blocks:
                if block.language == "text":
                    check_output(block, ran.output + ran.errors)
                    continue
                if block.language == "json":
                    check_json(block, ran.output)
                    continue
                for each in fences_of(page):
                    if each.title and each.line < block.line:
                        shell.put(each.title, each.text)
                ran = shell.run(block.text, stops="exit" not in block.options)
                check(block, ran)
            shell.finish()


REAL = {
    "run": 7,
    "status": "done",
    "balanced": True,
    "streams": {"wms.items": {"files": [{"name": "a_12.csv", "rows": 3}]}},
}


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ({"run": 1, "balanced": True}, []),
        ({"streams": {"wms.items": {"files": [{"name": "a_7.csv"}]}}}, []),
        ({"status": "failed"}, ["/status: 'done' in place of 'failed'"]),
        ({"balanced": False}, ["/balanced: True in place of False"]),
        ({"run": "7"}, ["/run: 7 in place of '7'"]),
        ({"requests": 3}, ["/requests is not there"]),
        ({"streams": {"wms.items": {"files": [{"lines": 3}]}}}, ["/streams/wms.items/files[]/lines is not there"]),
    ],
)
def test_json_of_a_page_is_compared_with_what_a_command_prints(told: dict[str, Any], found: list[str]) -> None:
    """Members and types must be there, and values must be the same but for numbers."""
    assert differences(told, REAL, normal) == found
