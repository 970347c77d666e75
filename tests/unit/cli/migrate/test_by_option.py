"""Who a migration remembers."""

from __future__ import annotations

import getpass
import socket

import click
import pytest
from click.testing import CliRunner

from crossdock.cli.shared_options_messages_and_signals import person_name_option
from crossdock.values.acting_person_and_process import LONGEST_NAME


@click.command
@person_name_option
def tell(by: str) -> None:
    click.echo(by)


def told(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(tell, arguments)
    return result.exit_code, result.output.strip()


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A given name, or the user and host; a user without a name by its number; one that does not fit is refused."""
    assert told("--by", " Ann ") == (0, "Ann")
    assert told() == (0, f"{getpass.getuser()}@{socket.gethostname()}")
    assert told("--by", "x" * LONGEST_NAME)[0] == 0
    assert told("--by", "x" * (LONGEST_NAME + 1))[0] == 2
    code, said = told("--by", " ")
    assert (code, "say who you are" in said) == (2, True)

    def nameless() -> str:
        raise OSError("no name")

    monkeypatch.setattr(getpass, "getuser", nameless)
    code, name = told()
    assert (code, name.partition("@")[0].isdigit()) == (0, True)
