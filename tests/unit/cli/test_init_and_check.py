"""``crossdock init`` and ``crossdock check``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from tests.unit.cli.conftest import CONFIG, CommandLine

from crossdock.config.project.connections_and_bound_streams import Connection
from crossdock.config.project.project import Project
from crossdock.errors import RemoteError
from crossdock.sandbox import SandboxServer
from crossdock.sandbox.openapi_document import build_openapi_document
from crossdock.state.db.schema import VERSION

CUSTOMERS = """\
      customers:
        mode: append
        files: "*.csv"
        key: [CUSTNO]
        resource: customer
        adopt: external_id
        map: {name: NAME}
"""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path_factory.mktemp("sandbox")) as server:
        yield server


@pytest.fixture
def site(sandbox: SandboxServer, tmp_path: Path) -> CommandLine:
    """A config for the sandbox, whose state exists."""
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports" / "a.csv").write_text("SKU,NAME,PRICE\n", encoding="utf-8")
    config = CONFIG.replace("http://127.0.0.1:9", sandbox.base_url).replace("acme", "sandbox")
    (tmp_path / "c.yaml").write_text(config, encoding="utf-8")
    made = CommandLine(tmp_path)
    assert made.run("init").code == 0
    return made


def requests(sandbox: SandboxServer) -> list[dict[str, Any]]:
    with urlopen(f"{sandbox.base_url}/_sandbox/requests?limit=10000") as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]
    return found


def checked(site: CommandLine) -> tuple[object, dict[str, tuple[bool, str]]]:
    """The exit code, and what was found for each subject; the last finding of the platform."""
    result = site.run("check", "--json")
    assert not result.err
    return result.code, {item["subject"]: (item["ok"], item["text"]) for item in result.json["findings"]}


def test_init_creates_a_state_once(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second time it says that the state is there, and of an older one from which version it was upgraded."""
    assert command_line.run("init", "--json").json["made"] is False
    assert "state already exists: sqlite:///" in command_line.run("init").out
    (command_line.folder / "state.db").unlink()
    assert "state created: sqlite:///" in command_line.run("init").out
    monkeypatch.setattr(Project, "create_or_upgrade_state", lambda _: 7)
    assert f"state upgraded from version 7 to {VERSION}: sqlite:///" in command_line.run("init").out


def test_check_reports_each_test(command_line: CommandLine) -> None:
    """A platform that cannot be reached fails alone, with exit 3."""
    (command_line.folder / "exports" / "a.csv").write_text("SKU,NAME,PRICE\n")
    checked = command_line.run("check", "--json")
    found = {item["subject"]: item["ok"] for item in checked.json["findings"]}
    assert (checked.code, found["state"], found["platform"], found["wms"]) == (3, True, False, True)
    shown = command_line.run("check").out
    assert "ok    state: exists and belongs to this platform\n" in shown
    failed, assumed = shown.splitlines()[-2:]
    assert failed == f"{len(found) - sum(found.values())} of {len(checked.json['findings'])} tests failed"
    assert (
        assumed == f"{len(checked.json['assumptions'])} facts about the platform are assumed; --assumptions lists them"
    )
    listed = command_line.run("check", "--assumptions").out
    assert all(value in listed for value in checked.json["assumptions"].values())


def test_a_missing_state_is_one_failure(command_line: CommandLine) -> None:
    """What is known of the allowance is in the state, so that it is not tested without one."""
    (command_line.folder / "state.db").unlink()
    checked = command_line.run("check", "--json")
    subjects = [item["subject"] for item in checked.json["findings"]]
    assert (checked.code, subjects.count("state"), "allowance" in subjects) == (3, 1, False)
    assert command_line.run("check").out.count("crossdock init") == 1


def test_check_needs_only_what_the_streams_need(
    site: CommandLine, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that may only write products passes for a config of products, and nothing but products is requested."""
    monkeypatch.setenv("CROSSDOCK_API_KEY", sandbox.sandbox.new_key("sandbox", "products:write"))
    before = len(requests(sandbox))
    code, found = checked(site)
    assert (code, found["platform"][0]) == (0, True)
    assert {each["path"].partition("?")[0] for each in requests(sandbox)[before:]} == {"/api/v1/catalog/products"}


def test_a_key_that_cannot_read_is_a_finding(
    site: CommandLine, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where delivery reads nothing, the check passes and says that look-ups are not possible."""
    monkeypatch.setenv("CROSSDOCK_API_KEY", sandbox.sandbox.new_key("sandbox", "customers:write"))
    code, found = checked(site)
    assert (code, found["platform"]) == (
        0, (True, "may not read products; look-ups are not possible, writes need none"),
    )  # fmt: skip


def test_a_key_that_cannot_read_what_is_needed_fails(
    site: CommandLine, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that adopts records must look them up; only its resource is requested."""
    site.config.write_text(site.config.read_text() + CUSTOMERS, encoding="utf-8")
    monkeypatch.setenv("CROSSDOCK_API_KEY", sandbox.sandbox.new_key("sandbox", "products:write"))
    before = len(requests(sandbox))
    code, found = checked(site)
    assert (code, found["platform"]) == (3, (False, "may not read customers, but their delivery needs look-ups"))
    assert {each["path"].partition("?")[0] for each in requests(sandbox)[before:]} == {"/api/v1/sales/customers"}


def test_the_scopes_that_the_streams_need_are_named(
    site: CommandLine, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing includes reading, so a stream that adopts records needs one scope."""
    site.config.write_text(site.config.read_text() + CUSTOMERS, encoding="utf-8")
    monkeypatch.setenv("CROSSDOCK_API_KEY", sandbox.sandbox.new_key("sandbox", "customers:write", "products:write"))
    assert checked(site)[1]["scopes"] == (
        True,
        "the streams need the scopes customers:write products:write; which are granted is not reported",
    )


def test_an_openapi_document_is_compared_without_a_connection(command_line: CommandLine) -> None:
    """Exit 0 without a difference that makes requests fail, 3 with one, 2 for a file that is no such document."""
    path = command_line.folder / "openapi.json"
    path.write_text(json.dumps(build_openapi_document()), encoding="utf-8")
    result = command_line.run("check", "--openapi", str(path))
    assert (result.code, result.out) == (0, f"ok    {path} describes what is sent for product\n")
    changed = path.read_text().replace("/api/v1/catalog/products", "/v2/catalogue/products")
    path.write_text(changed, encoding="utf-8")
    result = command_line.run("check", "--openapi", str(path))
    assert result.code == 3
    assert "platform.paths.product: /v2/catalogue/products" in result.out
    found = command_line.run("check", "--openapi", str(path), "--json")
    assert (found.code, found.json["differences"][0]["error"]) == (3, True)
    path.write_text("{}", encoding="utf-8")
    result = command_line.run("check", "--openapi", str(path))
    assert (result.code, "is not an OpenAPI 3.0 or 3.1 document" in result.err) == (2, True)


def test_webhooks_that_cannot_be_declared_are_a_finding(site: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that a connector raises on purpose in its declaration of webhooks ends no check."""

    def declared(_: Connection) -> None:
        raise RemoteError("the vault is away")

    monkeypatch.setattr(Connection, "webhooks", property(declared))
    _, found = checked(site)
    assert (False, "the vault is away") in found.values()
