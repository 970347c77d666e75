"""Keys on the command line, while a real sandbox runs on the same folder."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from tests.integration.test_sandbox_server import process

from crossdock.cli.main import main

CUSTOMERS = "/api/v1/sales/customers"


class Shell:
    """Calls ``crossdock sandbox keys`` on one folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys = folder, capsys

    def __call__(self, *words: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["sandbox", "keys", words[0], "--data", str(self._folder), *words[1:]])
        printed = self._capsys.readouterr()
        assert ended.value.code == code, printed.err
        return printed.err if code else printed.out


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path / "sandbox", capsys)


def status(base_url: str, key: str, tenant: str, method: str = "GET") -> int:
    headers = {"authorization": f"Bearer {key}", "x-tenant-slug": tenant, "content-type": "application/json"}
    return httpx.request(method, base_url + CUSTOMERS, headers=headers, content="{}", trust_env=False).status_code


def test_a_running_sandbox_notices_keys_of_the_command_line(tmp_path: Path, shell: Shell) -> None:
    """A new key works at once, within its scopes; a revoked key is 401 at the next request."""
    with process(tmp_path / "sandbox") as (_, facts):
        base_url = facts["base_url"]
        made = json.loads(shell("new", "--tenant", "acme", "--scope", "customers:read", "--json"))
        assert (made["tenant"], made["scopes"]) == ("acme", ["customers:read"])
        key = made["api_key"]
        assert [status(base_url, key, "acme", method) for method in ("GET", "POST")] == [200, 403]
        assert status(base_url, key, facts["tenant"]) == 403
        assert [each["tenant"] for each in json.loads(shell("list", "--json"))] == ["sandbox", "acme"]
        assert shell("revoke", made["id"]) == f"revoked {made['id']}\n"
        assert status(base_url, key, "acme") == 401
        assert status(base_url, facts["api_key"], facts["tenant"]) == 200


def test_keys_can_be_created_before_the_first_start(tmp_path: Path, shell: Shell) -> None:
    """The first start then creates no other key."""
    key = shell("new").strip()
    with process(tmp_path / "sandbox") as (_, facts):
        assert facts["api_key"] is None
        assert status(facts["base_url"], key, facts["tenant"]) == 200


def test_the_list_shows_no_key(shell: Shell) -> None:
    """A table with the ids that revoke takes, with --tenant only of one tenant."""
    key = shell("new", "--scope", "orders:read", "--scope", "bins:write").strip()
    listed = shell("list")
    assert key.split("_")[1] in listed
    assert "bins:write orders:read" in listed
    assert key not in listed
    assert key.split("_")[1] not in shell("list", "--tenant", "other")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("new", "--scope", "everything"),
            "scopes: 1 unknown scope(s) [option_value_invalid]\n  Known scopes: invoices:read",
        ),
        (("new", "--tenant", "a/b"), "tenant: is not a tenant slug [option_value_invalid]\n  Use 1 to 63"),
        (
            ("revoke", "0123456789ab"),
            "there is no sandbox in this folder [sandbox_missing]\n  Name its folder with --data.",
        ),
        (("list",), "there is no sandbox in this folder"),
    ],
)
def test_invalid_arguments_are_refused(shell: Shell, words: tuple[str, ...], message: str) -> None:
    """Exit code 2, with a message and a hint."""
    assert message in shell(*words, code=2)


def test_revoking_an_unknown_key_is_an_error(shell: Shell) -> None:
    """The hint names the command that lists the ids."""
    shell("new")
    assert "no key has this id [sandbox_credential_unknown]\n  'crossdock sandbox keys list' shows the ids." in shell(
        "revoke", "nobody", code=2
    )
