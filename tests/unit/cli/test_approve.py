"""``crossdock approve`` without a pending removal; with one see ``tests/e2e/test_removals.py``."""

from __future__ import annotations

from tests.unit.cli.conftest import CommandLine


def test_nothing_to_approve(command_line: CommandLine) -> None:
    """The list is empty; a stream without a pending removal, or without a number, is a wrong usage."""
    assert command_line.run("approve").out == "nothing needs approval\n"
    assert command_line.run("approve", "--json").json == []
    assert "nothing of wms.products needs approval" in command_line.run("approve", "wms.products", "3").err
    refused = command_line.run("approve", "wms.products")
    assert (refused.code, "name a stream and the number" in refused.err) == (2, True)
