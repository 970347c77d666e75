"""The command tree: every command has a summary that fits, and an example; errors have their exit codes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import click
import pytest
from click.testing import CliRunner

from crossdock.cli import main
from crossdock.cli.main import cli
from crossdock.errors import RefusedError


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


COMMANDS = dict(commands(cli))
LEAVES = [path for path, command in COMMANDS.items() if not isinstance(command, click.Group) or path == ("sandbox",)]


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
@pytest.mark.parametrize("columns", ["80", "120"])
def test_every_command_has_an_example(path: tuple[str, ...], columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The help shows how to call the command, and no line is wider than the terminal."""
    monkeypatch.setenv("COLUMNS", columns)
    shown = CliRunner().invoke(cli, [*path, "--help"]).output
    assert "Example:\n" in shown
    assert f"  crossdock {' '.join(path)}" in shown
    assert max(map(len, shown.splitlines())) <= int(columns)


@pytest.mark.parametrize("path", [(), *(path for path in COMMANDS if path not in LEAVES), ("sandbox",)], ids=" ".join)
def test_summaries_are_not_cut_off(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of the commands of each group has their first sentences, also at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    _, _, listed = CliRunner().invoke(cli, [*path, "--help"]).output.partition("Commands:\n")
    assert listed
    assert "..." not in listed
    assert max(map(len, listed.splitlines())) <= 80


def test_errors_have_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    """An error of ours is a sentence; a defect is a traceback without its text; an interruption is 130."""

    def refuse() -> None:
        raise RefusedError("is short", where="a.csv")

    def interrupt() -> None:
        raise KeyboardInterrupt

    assert main._run_and_report_errors(refuse) == 4
    assert capsys.readouterr().err == "crossdock: a.csv: is short [refused]\n"
    assert main._run_and_report_errors(partial(int, "secret")) == 70
    shown = capsys.readouterr().err
    assert "builtins.ValueError (text omitted: it may contain data)" in shown
    assert "secret" not in shown
    assert main._run_and_report_errors(interrupt) == 130
    assert main._run_and_report_errors(lambda: 3) == 3
    assert main._run_and_report_errors(lambda: None) == 0


@pytest.mark.parametrize("command", [[], ["records"], ["state"]])
def test_a_group_without_a_command_shows_its_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """As lines, with exit code 2."""
    assert main._run_and_report_errors(lambda: cli.main(command, prog_name="crossdock", standalone_mode=False)) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"{' '.join(['Usage: crossdock', *command])} [OPTIONS] COMMAND [ARGS]...\n\n")
    assert "\\n" not in shown


@pytest.mark.parametrize(("command", "meant"), [(["recrds"], "records"), (["records", "lst"], "list")])
def test_a_mistyped_command_is_recognized(command: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The error names the one that was probably meant."""
    assert main._run_and_report_errors(lambda: cli.main(command, prog_name="crossdock", standalone_mode=False)) == 2
    assert f"Did you mean '{meant}'?" in capsys.readouterr().err


LATE_SIGNAL = """
import atexit, os, signal, sys
atexit.register(os.kill, os.getpid(), signal.SIGINT)
from crossdock.cli.main import main
sys.argv = ["crossdock", "--version"]
main()
"""


def test_ctrl_c_at_the_very_end_shows_no_traceback() -> None:
    """The command is done; the signal ends what is left of its process."""
    ended = subprocess.run([sys.executable, "-c", LATE_SIGNAL], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, "")


def test_a_second_ctrl_c_shows_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come while the first is reported."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main.cli, "main", interrupted)
    monkeypatch.setattr(click, "echo", interrupted)
    with pytest.raises(SystemExit) as ended:
        main.main(["--version"])
    assert ended.value.code == 130


LEFT_THREAD = """
import sys, threading
from crossdock.cli import main
threading.Thread(target=threading.Event().wait, name="left").start()
main.LEFT_THREADS_S = 0.1
sys.argv = ["crossdock", "--version"]
main.main()
"""


def test_a_thread_that_is_left_does_not_keep_the_process() -> None:
    """Python would wait for a thread of a connector without an end, and a command of cron would never be over."""
    ended = subprocess.run(
        [sys.executable, "-c", LEFT_THREAD], check=False, capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stdout[:9]) == (0, "crossdock")
    assert ended.stderr == "crossdock: the process ends, although threads that a connector has started go on: left\n"
