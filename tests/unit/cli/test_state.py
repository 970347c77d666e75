"""``crossdock state``: ages, and what the commands print."""

from __future__ import annotations

import re

import pytest
from tests.unit.cli.conftest import CommandLine


@pytest.mark.parametrize("age", ["90", "1m", "d", "-1d", "9999999d", "90 d"])
def test_an_age_has_a_unit_and_a_limit(command_line: CommandLine, age: str) -> None:
    """Anything but days or hours is a wrong usage."""
    refused = command_line.run("state", "purge", "--older-than", age)
    assert (refused.code, refused.out) == (2, "")
    assert "give days or hours, such as 90d or 36h" in refused.err


def test_the_state_is_described_and_maintained(command_line: CommandLine) -> None:
    """An empty state has nothing unsettled and nothing to purge; JSON has the same numbers."""
    shown = command_line.run("state", "stats").out
    assert re.search(r"^bindings +0 +0 B$", shown, re.MULTILINE)
    assert "all operations are settled" in shown
    assert command_line.run("state", "stats", "--json").json["unsettled"] == {}
    assert "0 settled operations would be removed" in command_line.run("state", "purge", "--dry-run").out
    assert command_line.run("state", "compact", "--json").json.keys() == {"before", "after"}
    assert command_line.run("state", "restored", "--json").json == {"restored": True, "unverified": 0}
