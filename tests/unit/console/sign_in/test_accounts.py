"""The file of accounts, and the commands that change it."""

from __future__ import annotations

import io
import stat
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from tests.consoles import PASSWORD

from crossdock.cli.main import main
from crossdock.console.sign_in import accounts as module
from crossdock.console.sign_in.accounts import AccountFile
from crossdock.console.visitors_and_roles import Role
from crossdock.errors import ConfigError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people"


def run(path: Path, *arguments: str, password: str = PASSWORD) -> tuple[object, str]:
    """The exit code and the output of ``crossdock console account``."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(out):
        patch.setattr("sys.stdin", io.StringIO(f"{password}\n"))
        with pytest.raises(SystemExit) as ended:
            main(["console", "account", *arguments, "--accounts", str(path)])
    return ended.value.code, out.getvalue()


def test_commands_change_the_accounts(path: Path) -> None:
    """They are added, listed, changed and removed; no password and no hash is shown or stored as it is."""
    assert run(path, "add", "anna", "--role", "administrator") == (0, "added anna\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run(path, "add", "ben", "--role", "operator", "--tenant", "a", "--tenant", "b")[0] == 0
    assert run(path, "role", "ben", "--role", "viewer", "--tenant", "b")[0] == 0
    assert run(path, "role", "ben", "--role", "none", "--tenant", "a")[0] == 0
    file = AccountFile(path)
    assert file.get("ben").roles == {"b": Role.VIEWER}
    code, listed = run(path, "list")
    assert code == 0
    assert "administrator at *" in listed
    assert "viewer at b" in listed
    assert "argon2" not in listed
    assert run(path, "password", "anna", password="another horse battery")[0] == 0
    assert file.authenticate("anna", PASSWORD) is None
    assert file.authenticate("anna", "another horse battery") is not None
    assert run(path, "remove", "ben") == (0, "removed ben\n")
    assert list(file.all()) == ["anna"]
    assert PASSWORD not in path.read_text()
    assert "$argon2id$" in path.read_text()


@pytest.mark.parametrize(
    ("arguments", "password", "told"),
    [
        (("add", "anna", "--role", "viewer"), "short horse", "12 to 1,000 characters"),
        (("add", "anna", "--role", "viewer"), "", "no password"),
        (("add", "Anna", "--role", "viewer"), PASSWORD, "lower-case"),
        (("add", "ben", "--role", "viewer"), PASSWORD, "an account ben already"),
        (("remove", "anna"), PASSWORD, "no account anna"),
        (("role", "anna", "--role", "viewer"), PASSWORD, "no account anna"),
    ],
)
def test_a_wrong_command_changes_nothing(path: Path, arguments: tuple[str, ...], password: str, told: str) -> None:
    """It ends with exit code 2 and says why."""
    AccountFile(path).add("ben", PASSWORD, {"*": Role.VIEWER})
    before = path.read_bytes()
    code, said = run(path, *arguments, password=password)
    assert code == 2
    assert told in said
    assert path.read_bytes() == before


def test_composed_and_decomposed_letters_are_one_password(path: Path) -> None:
    """Keyboards send either; anything else of a password counts, also spaces at its ends."""
    file = AccountFile(path)
    file.add("anna", " schöne Grüße ", {"*": Role.VIEWER})
    assert file.authenticate("anna", " scho\u0308ne Gru\u0308ße ") is not None
    assert file.authenticate("anna", "schöne Grüße") is None


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"anna": {}}', '{"anna": {"password": "x", "roles": {"*": "king"}}}', '{"anna": {"roles": {}}}'],
)
def test_a_damaged_file_is_told(path: Path, content: str) -> None:
    """Without its content."""
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="no file of accounts"):
        AccountFile(path).all()


def test_a_missing_library_names_the_extra(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accounts are an extra of the package."""
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(ConfigError) as told:
        AccountFile(path).add("anna", PASSWORD, {})
    assert told.value.hint == "pip install 'crossdock[console]'"
