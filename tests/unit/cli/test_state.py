"""``crossdock state``: sizes in units that people read."""

from __future__ import annotations

import pytest

from crossdock.cli.state import size_text


@pytest.mark.parametrize(
    ("size", "shown"),
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
def test_sizes_have_units(size: int, shown: str) -> None:
    """A size has one digit after the point, and the largest unit that it reaches."""
    assert size_text(size) == shown
