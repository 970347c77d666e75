"""Width of the output: that of the terminal, or none where it is piped."""

from __future__ import annotations

import pytest

from crossdock.cli import terminal_output

KEY = "K" * 300


@pytest.mark.parametrize("columns", [None, "80"])
def test_keys_are_not_wrapped_when_piped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str | None
) -> None:
    """A script finds a long key in one line, in tables and in text; COLUMNS limits the width nevertheless."""
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    console = terminal_output.out()
    console.print(terminal_output.table("Records", ("key", "why"), [(KEY, "because")]))
    console.print(f"key {KEY} end")
    shown = capsys.readouterr().out
    assert shown.count(KEY) == (0 if columns else 2)
    assert (max(map(len, shown.splitlines())) <= 80) == bool(columns)
    assert console.width == (80 if columns else console.width)
