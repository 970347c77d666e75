"""``crossdock bindings``: an export can be imported again."""

from __future__ import annotations

from contextlib import closing

import pytest
from tests.report_page import dead_letter
from tests.unit.cli.conftest import CommandLine
from tests.unit.state.samples import AT, start


def test_bindings_are_imported_and_exported(command_line: CommandLine) -> None:
    """The file that was imported is the file that is exported."""
    text = "target,resource,namespace,key,target_id\nplatform,product,wms,0017,prd_1\nplatform,product,wms,0018,prd_2\n"
    (command_line.folder / "b.csv").write_text(text)
    assert command_line.run("bindings", "import", str(command_line.folder / "b.csv")).out == "imported 2 bindings\n"
    assert command_line.run("bindings", "export").out.replace("\r\n", "\n") == text


def test_an_export_says_what_it_does_not_have(command_line: CommandLine) -> None:
    """A new state would deliver what a person has dropped: the records are given up in this one only."""
    assert command_line.run("bindings", "export").err == ""
    with closing(command_line.state()) as state:
        run = start(state)
        with state.begin() as tx:
            tx.dead_letters.put([dead_letter(1), dead_letter(2)], run_id=run, at=AT)
            tx.dead_letters.mark_dropped(dead_letter(1).identity.stream, [dead_letter(1).identity.key_hash])
    exported = command_line.run("bindings", "export")
    assert exported.code == 0
    assert exported.err.startswith("not in the file: 1 rejected, 1 dropped. A state that imports it")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "key\n1\n",
        "target,resource,namespace,key,target_id\nplatform,product,wms,0017\n",
        "target,resource,namespace,key,target_id\nplatform,product,products,0017,prd_1\n",
        "target,resource,namespace,key,target_id,fingerprint\nplatform,product,wms,0017,prd_1,17\n",
        "target,resource,namespace,key,target_id\nplatform,product,wms,0017,prd_1,\n",
    ],
)
def test_a_file_that_is_wrong_is_a_wrong_usage(command_line: CommandLine, text: str) -> None:
    """Exit 2, as for a config that must be corrected, with the line."""
    (command_line.folder / "b.csv").write_text(text)
    result = command_line.run("bindings", "import", str(command_line.folder / "b.csv"))
    assert (result.code, result.out) == (2, "")
    assert "b.csv:" in result.err
