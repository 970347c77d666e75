"""Output: text of others cannot control the terminal and is not markup; JSON and YAML are exact."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import click
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich import progress as bar
from rich.console import Console

from crossdock.cli import main, shared_options_messages_and_signals, terminal_output
from crossdock.cli.config_and_schema import _yaml
from crossdock.cli.progress_bars import Remaining
from crossdock.errors import ConfigError, RefusedError
from crossdock.printable import printable
from crossdock.testing.manual_clock import ManualClock

EVIL = "a\x1b[2J\x9b1m\u202eb\u2028\r\n[bold]c[/bold][link=http://x]d[/link] :boom:"
SHOWN = r"a\x1b[2J\x9b1m\u202eb\u2028\r\n[bold]c[/bold][link=http://x]d[/link] :boom:"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")


def _table() -> None:
    terminal_output.output_console().print(
        terminal_output.make_fitting_table(EVIL, (EVIL, "number"), [(EVIL, 5)], numbers=("number",))
    )


def _forced() -> None:
    console = terminal_output.output_console()
    console._force_terminal = True
    console.print(EVIL)


PRINTED: dict[str, Callable[[], Any]] = {
    "line": lambda: terminal_output.output_console().print(EVIL),
    "line on a terminal": _forced,
    "line as markup": lambda: terminal_output.output_console().print(EVIL, soft_wrap=True),
    "lines": lambda: terminal_output.print_lines(terminal_output.output_console(), EVIL.replace("\n", "\x00")),
    "table": _table,
    "sentence": lambda: shared_options_messages_and_signals.print_sentences(EVIL),
    "warning": lambda: shared_options_messages_and_signals.print_warning(EVIL),
    "errors": lambda: terminal_output.print_errors({EVIL: RefusedError(EVIL)}),
}


@pytest.mark.parametrize("write", PRINTED.values(), ids=PRINTED)
def test_what_is_quoted_is_shown_with_escapes(capsys: pytest.CaptureFixture[str], write: Callable[[], Any]) -> None:
    """Control characters are escaped, markup and emoji codes stay text, and nothing is lost."""
    write()
    captured = capsys.readouterr()
    shown = captured.out + captured.err
    assert SHOWN.replace(r"\n", r"\x00" if r"\x00" in shown else r"\n") in shown
    assert all(printable(line) == line for line in shown.split("\n"))


def test_an_error_has_its_own_lines_only(capsys: pytest.CaptureFixture[str]) -> None:
    """A message and its hint are two lines, whatever they quote."""

    def fail() -> None:
        raise ConfigError(EVIL, where=EVIL, hint=EVIL)

    assert main._run_and_report_errors(fail) == 2
    assert capsys.readouterr().err == f"crossdock: {SHOWN}: {SHOWN} [config]\n  {SHOWN}\n"


@pytest.mark.parametrize("arguments", [[EVIL], ["runs", EVIL], ["plan", f"--{EVIL}"], ["plan", "--limit", EVIL]])
def test_a_wrong_argument_is_quoted_with_escapes(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """Usage errors are shown as usual."""
    assert (
        main._run_and_report_errors(lambda: main.cli.main(args=arguments, prog_name="crossdock", standalone_mode=False))
        == 2
    )
    shown = capsys.readouterr().err
    assert shown.startswith("Usage: crossdock")
    assert all(printable(line) == line and not line.startswith("[bold]") for line in shown.split("\n"))
    assert "Error: " in shown


def test_an_ordinary_usage_error_is_as_click_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    """The text is click's own, with a code as every error."""

    def fail() -> None:
        raise click.ClickException("it is wrong")

    assert main._run_and_report_errors(fail) == 1
    assert capsys.readouterr().err == "Error: it is wrong [usage]\n"


DOCUMENTS = st.recursive(
    st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(DOCUMENTS)
def test_json_is_valid_and_exact(document: Any) -> None:
    """A parser reads the same document, and no control character reaches the terminal."""
    with pytest.MonkeyPatch.context() as patch:
        written: list[str] = []
        patch.setattr(terminal_output, "echo_document_text", written.append)
        terminal_output.print_json(document)
    assert json.loads(written[0]) == document
    assert all(printable(line) == line for line in written[0].split("\n"))


def test_instants_are_utc_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """ISO 8601 with Z, wherever they are in the document; days are days."""
    at = datetime(2026, 3, 1, 6, 0, 7, tzinfo=timezone(timedelta(hours=1)))
    terminal_output.print_json({"oldest": {"since": at}, "day": at.date()})
    assert json.loads(capsys.readouterr().out) == {"oldest": {"since": "2026-03-01T05:00:07Z"}, "day": "2026-03-01"}


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(codec="utf-8"))))
def test_a_config_is_valid_and_exact(document: dict[str, str]) -> None:
    """What ``config show`` prints is YAML of the same values."""
    shown = _yaml(document)
    assert yaml.safe_load(shown) == document
    assert all(printable(line) == line for line in shown.split("\n"))


def test_the_whole_work_has_a_bar_of_its_own() -> None:
    """It stands above that of the stage, with its own note in place of a remaining time, and follows the work."""
    clock = ManualClock()
    with bar.Progress(console=Console(file=io.StringIO()), get_time=clock.monotonic, auto_refresh=False) as drawn:
        bars = terminal_output._ProgressBars(drawn)
        bars.show_overall_progress("wave 1 of 2", 10, 100, "3 min 4 s left")
        bars.begin("reading wms.lots", None)
        (whole, _) = drawn.tasks
        assert (whole.completed, whole.total) == (10, 100)
        bars.show_overall_progress("wave 2 of 2", 20, 0, "")
        bars.begin("sending wms.lots", 50)
        for _ in range(2):
            clock.advance(10)
            bars.advance(5)
        whole, stage = drawn.tasks
    assert (whole.description, whole.completed, whole.total) == ("wave 2 of 2", 20, None)
    assert (stage.description, stage.completed, stage.total) == ("sending wms.lots", 10, 50)
    assert str(Remaining().render(whole)) == ""
    assert str(Remaining().render(stage)) != ""
