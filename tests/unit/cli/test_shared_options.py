"""Arguments that a shell may pass."""

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
def test_an_argument_must_be_utf8(command: str) -> None:
    """A shell passes any bytes; what is not UTF-8 is refused with a sentence."""
    said = io.StringIO()
    with redirect_stderr(said), pytest.raises(SystemExit) as ended:
        main([*command.split(), "\udce4", *(["x"] if command == "records show" else [])])
    assert ended.value.code == 2
    assert "is not UTF-8" in said.getvalue()
