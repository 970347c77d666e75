"""OAuth clients on the command line, while a real sandbox runs on the same folder."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from tests.integration.test_sandbox_server import process

from crossdock.cli.main import main


def shell(folder: Path, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """The output of ``crossdock sandbox clients``, on standard error if it fails."""
    with pytest.raises(SystemExit) as ended:
        main(["sandbox", "clients", words[0], "--data", str(folder), *words[1:]])
    printed = capsys.readouterr()
    assert ended.value.code == code, printed.err
    return printed.err if code else printed.out


def test_a_running_sandbox_notices_clients_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new client gets tokens at once; its revocation ends them."""
    folder = tmp_path / "sandbox"
    with process(folder) as (_, facts), httpx.Client(base_url=str(facts["base_url"]), trust_env=False) as http:
        made = json.loads(shell(folder, capsys, "new", "--id", "shop", "--scope", "orders:read", "--json"))
        form = {"grant_type": "client_credentials", **{each: made[each] for each in ("client_id", "client_secret")}}
        token = http.post("/oauth/token", data=form).json()["access_token"]
        headers = {"authorization": f"Bearer {token}", "x-tenant-slug": "sandbox"}
        assert http.get("/api/v1/sales/orders", headers=headers).status_code == 200
        assert [each["id"] for each in json.loads(shell(folder, capsys, "list", "--json"))] == ["shop"]
        assert "shop" in shell(folder, capsys, "list")
        assert shell(folder, capsys, "revoke", "shop") == "revoked shop\n"
        assert http.get("/api/v1/sales/orders", headers=headers).status_code == 401
        assert http.post("/oauth/token", data=form).status_code == 401


def test_mistakes_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing folder, an unknown id and an id that is taken are errors with a hint."""
    assert "there is no sandbox in this folder" in shell(tmp_path / "no", capsys, "list", code=2)
    name, secret = shell(tmp_path, capsys, "new", "--id", "shop").split()
    assert (name, len(secret)) == ("shop", 48)
    assert "no client has this id" in shell(tmp_path, capsys, "revoke", "other", code=2)
    assert "another client has this id" in shell(tmp_path, capsys, "new", "--id", "shop", code=2)
