"""Width of the output: that of the terminal, or none where it is piped."""

from __future__ import annotations

import pytest

from crossdock.cli import terminal_output
from crossdock.cli.safe_terminal_console import PlainConsole

KEY = "K" * 300
PROSE = "The key of a record is never broken. " * 10


@pytest.mark.parametrize("columns", [None, "80"])
def test_nothing_is_wrapped_when_piped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str | None
) -> None:
    """A script finds keys and sentences in one line, in tables and in text, whatever COLUMNS says."""
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    console = terminal_output.output_console()
    width = console.width
    console.print(terminal_output.make_fitting_table("Records", ("key", "why"), [(KEY, PROSE)]))
    console.print(f"key {KEY} {PROSE}end")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(KEY in line and PROSE.strip() in line for line in lines[2:])
    assert console.width == width


@pytest.mark.parametrize("soft_wrap", [False, True])
def test_lines_are_wrapped_between_words_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, soft_wrap: bool
) -> None:
    """A key that is longer than a line is not broken; a soft-wrapped text is left to the terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    console = PlainConsole()
    console._force_terminal = True
    console.print(f"   key {KEY} {PROSE}", soft_wrap=soft_wrap)
    lines = capsys.readouterr().out.splitlines()
    assert (len(lines) == 1) == soft_wrap
    assert lines[0].startswith("   key")
    assert sum(KEY in line for line in lines) == 1
    assert " ".join(" ".join(lines).split()) == f"key {KEY} {PROSE}".strip()
