"""What a shell may pass as the name of a record."""

from __future__ import annotations

import io
from contextlib import redirect_stderr

import pytest

from crossdock.cli.main import main


@pytest.mark.parametrize(
    "command",
    [
        "trace",
        "records show",
        "records show wms.p",
        "records replay wms.p",
        "records resolve wms.p",
        "records drop wms.p",
    ],
)
def test_bytes_that_are_no_text_are_a_wrong_usage(command: str) -> None:
    """A shell passes any bytes; what is not UTF-8 names no record, and is refused with a sentence."""
    said = io.StringIO()
    with redirect_stderr(said), pytest.raises(SystemExit) as ended:
        main([*command.split(), "\udce4", *(["x"] if command == "records show" else [])])
    assert ended.value.code == 2
    assert "is not UTF-8" in said.getvalue()
