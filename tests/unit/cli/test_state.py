"""``crossdock state``: sizes and ages as text, and what the commands print."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cli.conftest import CommandLine

from crossdock.cli.state import size_text


@given(st.integers(0, 2**60))
def test_a_size_is_rounded_to_a_tenth_of_its_unit(size: int) -> None:
    """The text means the size, up to rounding."""
    number, unit = size_text(size).split(" ")
    power = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].index(unit)
    assert abs(Decimal(number.replace(",", "")) * 1024**power - size) <= Decimal(1024**power) / 20


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


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (71 * 2**20 + 2**19, "71.5 MiB"),
        (2**40, "1.0 TiB"),
        (5_000 * 2**50, "5,000.0 PiB"),
    ],
)
def test_sizes_have_units(size: int, text: str) -> None:
    """A size has one digit after the point, and the largest unit that it reaches."""
    assert size_text(size) == text
