"""``crossdock listen``: what keeps it from starting is an error that says what to do."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import httpx
import pytest
from tests.unit.cli.conftest import CommandLine, Result

from crossdock.cli import scheduler_and_webhook_service
from crossdock.cli.scheduler_and_webhook_service import ServiceOptions, _poll_for_reload_on_sighup
from crossdock.cli.shared_options_messages_and_signals import ListenAddress, listen_address_option
from crossdock.config.project import project
from crossdock.config.schedules.job_and_schedule_config import JOBS_EXAMPLE
from crossdock.errors import ConfigError, UnavailableError
from crossdock.sandbox import SandboxServer
from crossdock.services.inbox.webhook_verification_and_parsing import WEBHOOKS_EXAMPLE
from crossdock.services.scheduler.apscheduler_daemon import Daemon

DESK = """\
  desk:
    kind: http_json
    base_url: http://127.0.0.1:9
    pagination: {kind: single_page}
    streams:
      items:
        path: /items
        records: items
        mode: snapshot
        key: [id]
        fetch: {path: "/items/{id}"}
        resource: product
        namespace: desk
        map: {sku: sku, name: name}
    webhooks: {secrets: [env:DESK_SECRET], hints: [{stream: items, key: /id}]}
"""
ERP = """\
  erp:
    kind: platform
    streams:
      orders: {read: order, resource: product, namespace: o, map: {sku: id, name: customerId}}
      bills: {read: invoice, resource: product, namespace: b, map: {sku: id, name: customerId}}
    webhooks: {secrets: [file:erp-secret]}
"""
PUBLIC = "listen: {public_url: https://hooks.example}\n"


def _with(command_line: CommandLine, text: str) -> CommandLine:
    before = command_line.config.read_text(encoding="utf-8")
    command_line.config.write_text(before + text, encoding="utf-8")
    return command_line


@pytest.fixture
def desk(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """A connection that receives webhooks, and whose system has no API for subscriptions."""
    monkeypatch.setenv("DESK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    return _with(command_line, DESK)


@pytest.fixture
def erp(command_line: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """A connection to a sandbox."""
    with _with_sandbox(_with(command_line, ERP), tmp_path, monkeypatch) as served:
        (served.folder / "state.db").unlink()  # it is of another platform
        assert served.run("init").code == 0
        yield served


@contextmanager
def _with_sandbox(command_line: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[CommandLine]:
    """The platform of the config answers."""
    with SandboxServer(tmp_path / "sandbox") as server:
        monkeypatch.setenv("CROSSDOCK_API_KEY", server.api_key)
        config = command_line.config.read_text(encoding="utf-8")
        config = config.replace("http://127.0.0.1:9", server.base_url).replace("acme", "sandbox")
        command_line.config.write_text(config, encoding="utf-8")
        yield command_line


def refused(result: Result, *texts: str) -> None:
    assert result.code == 2
    assert [text for text in texts if text not in result.err] == []


def test_an_address_has_a_port_and_maybe_a_host() -> None:
    """Without a host it is this machine only; an error names the option."""

    @click.command()
    @listen_address_option("--health")
    def served(health: ListenAddress | None) -> ListenAddress | None:
        return health

    def given(*options: str) -> ListenAddress | None:
        value: ListenAddress | None = served.main(options, standalone_mode=False)
        return value

    assert given() is None
    assert given("--health", "8090") == ("127.0.0.1", 8090)
    assert given("--health", "[::1]:80") == ("::1", 80)
    assert given("--health", "0.0.0.0:80") == ("0.0.0.0", 80)
    for wrong in ("host", ":80", "99999", "::1", "a:b:1", ""):
        with pytest.raises(ConfigError, match="--health: .* is not"):
            given("--health", wrong)


def test_a_config_without_webhooks_is_refused(command_line: CommandLine) -> None:
    """The hint has an example, which is accepted."""
    refused(command_line.run("listen", "--address", "0"), "no connection receives webhooks", WEBHOOKS_EXAMPLE)
    refused(command_line.run("listen", "register", "wms"), "connections.wms: the connection receives no webhooks")
    refused(
        command_line.run("schedule", "--listen", "0"), "has no jobs", "'crossdock listen' receives webhooks without"
    )
    refused(command_line.run("schedule"), "has no jobs", f"add {JOBS_EXAMPLE}")
    with command_line.config.open("a") as config:
        config.write(JOBS_EXAMPLE)
    assert command_line.run("schedule", "--preview", "1").code == 0


def test_a_missing_secret_is_reported_before_anything_is_received(
    desk: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the variable; 'crossdock check' names it, too."""
    ours = [
        {
            "subject": "desk",
            "ok": True,
            "text": "the secrets of its webhooks can be used",
            "code": None,
            "category": None,
        }
    ]
    with _with_sandbox(desk, tmp_path, monkeypatch):
        found = desk.run("check", "--json").json["findings"]
        assert [each for each in found if each["subject"] == "desk" and "secrets" in each["text"]] == ours
        monkeypatch.delenv("DESK_SECRET")
        refused(desk.run("listen", "--address", "0"), "the environment variable DESK_SECRET is not set")
        failed = [each for each in desk.run("check", "--json").json["findings"] if not each["ok"]]
    (named,) = [each for each in failed if "DESK_SECRET is not set" in each["text"]]
    assert (named["code"], named["category"]) == ("secret_missing", "config")


def test_an_address_that_cannot_be_used_is_reported(desk: CommandLine) -> None:
    """A port that is taken, and an address of another machine, each with its own advice, and named once."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = desk.run("listen", "--address", address)
        refused(result, "cannot listen: Address already in use", "use another port")
        assert result.err.count("127.0.0.1") == 1
    result = desk.run("listen", "--address", "192.0.2.1:8090")  # RFC 5737: of no machine
    refused(result, "192.0.2.1:8090: cannot listen", "name an address of this machine")


def test_a_system_without_an_api_for_subscriptions_gets_the_address(desk: CommandLine) -> None:
    """Somebody enters it by hand; a wrong name of a connection has the known ones."""
    refused(desk.run("listen", "register", "desk"), "has no API for subscriptions", "ends with /webhooks/desk")
    refused(desk.run("listen", "list", "dsk"), "there is no connection 'dsk'", "known: wms, desk")


def test_the_config_may_be_named_before_or_after_the_subcommand(desk: CommandLine) -> None:
    """An option -C before the subcommand counts as much as one after it."""
    other = desk.folder / "other.yaml"
    other.write_text(desk.config.read_text(encoding="utf-8").replace("desk:", "bench:"), encoding="utf-8")
    for line in (("-C", str(other), "register"), ("register", "-C", str(other))):
        refused(desk.run("listen", *line, "bench"), "other.yaml: connections.bench: its system has no API")


def test_subscriptions_are_registered_listed_and_removed(erp: CommandLine) -> None:
    """The platform makes one secret for all events, which is printed once, and not into the table."""
    refused(erp.run("listen", "register", "erp"), "does not say where webhooks are received", "public_url")
    assert erp.run("listen", "list", "erp").out == "no subscription\n"
    _with(erp, PUBLIC)
    made = erp.run("listen", "register", "erp", "--json")
    (subscription,) = made.json
    assert subscription["topic"] == "invoice.approved,order.created"
    assert subscription["address"] == "https://hooks.example/webhooks/erp"
    assert made.err.count("whsec_") == 1
    assert "whsec_" not in made.out
    again = erp.run("listen", "register", "erp", "--json")
    assert (again.json, again.err) == ([subscription], "")
    assert "yes" in erp.run("listen", "list", "erp").out
    assert json.loads(erp.run("listen", "remove", "erp", "--json").out) == [subscription]
    assert erp.run("listen", "list", "erp", "--json").json == []
    logged = [(each["action"], each["after"], each["outcome"]) for each in erp.run("audit", "--json").json]
    topics = [subscription["topic"]]
    registered = ("listen register", {"topics": topics}, "done")
    assert logged[:-1] == [
        ("listen remove", {"removed": topics}, "done"),
        registered,
        registered,
        ("listen register", None, "refused"),
    ]


def test_a_reload_that_fails_leaves_the_service_with_its_config(
    desk: CommandLine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After SIGHUP any error of what the config names, such as one of a connector, is logged, and nothing changes."""

    def fails(_path: Path) -> None:
        raise UnavailableError("the vault of the secrets is away")

    monkeypatch.setattr(project, "load", fails)
    with _poll_for_reload_on_sighup([desk.config], ServiceOptions("text"), None) as reloaded:
        os.kill(os.getpid(), signal.SIGHUP)
        assert reloaded() is None
    assert "the config was not reloaded: the vault of the secrets is away" in caplog.text


def test_what_was_refused_in_the_last_seconds_is_logged(
    desk: CommandLine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A webhook that is refused just before the end of the service is counted in the log."""

    def run(*_: object) -> None:
        address = re.search(r"http://\S+/webhooks/", caplog.text)
        assert address
        assert httpx.post(f"{address[0]}shop", content=b"{}", trust_env=False).status_code == 404

    for owner, name in ((Daemon, "run"), (gc, "freeze"), (sys, "setswitchinterval")):
        monkeypatch.setattr(owner, name, run if owner is Daemon else lambda *_: None)
    caplog.set_level("INFO")
    desk.run("init")
    options = ServiceOptions("text", listen=ListenAddress("127.0.0.1", 0), runs_jobs=False)
    assert scheduler_and_webhook_service.serve_until_stopped(project.load(desk.config), desk.config, options) == 0
    assert "webhooks: 1 not processed (unknown_connection)" in caplog.text
