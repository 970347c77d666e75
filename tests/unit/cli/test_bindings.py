"""``crossdock bindings``: an export can be imported again."""

from __future__ import annotations

import pytest
from tests.unit.cli.conftest import CommandLine


def test_bindings_are_imported_and_exported(command_line: CommandLine) -> None:
    """The file that was imported is the file that is exported."""
    text = "target,resource,namespace,key,target_id\nplatform,product,wms,0017,prd_1\nplatform,product,wms,0018,prd_2\n"
    (command_line.folder / "b.csv").write_text(text)
    assert command_line.run("bindings", "import", str(command_line.folder / "b.csv")).out == "imported 2 bindings\n"
    assert command_line.run("bindings", "export").out.replace("\r\n", "\n") == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "key\n1\n",
        "target,resource,namespace,key,target_id\nplatform,product,wms,0017\n",
        "target,resource,namespace,key,target_id\nplatform,product,products,0017,prd_1\n",
    ],
)
def test_a_file_that_is_wrong_is_a_wrong_usage(command_line: CommandLine, text: str) -> None:
    """Exit 2, as for a config that must be corrected, with the line."""
    (command_line.folder / "b.csv").write_text(text)
    result = command_line.run("bindings", "import", str(command_line.folder / "b.csv"))
    assert (result.code, result.out) == (2, "")
    assert "b.csv:" in result.err
