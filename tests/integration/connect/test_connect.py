"""``crossdock connect`` at a vendor on loopback: the browser, another device, a pasted address."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.chaos import processes
from tests.ended_commands import Done
from tests.partners.partner_server import PartnerAnswer, PartnerServer, serving
from tests.partners.token_project import READ, TokenProject, address_in
from tests.partners.token_vendor import CLIENT, TokenVendor
from tests.waiting import WITHIN_S

from crossdock.reading.sources.account_owner_consent import obtain_and_store_tokens_by_device_code
from crossdock.sandbox import SandboxServer
from crossdock.sources import Api, AuthorizationCodeAuth
from crossdock.testing.manual_clock import ManualClock


@pytest.fixture(name="vendor")
def _vendor() -> TokenVendor:
    return TokenVendor()


@pytest.fixture(name="url")
def _url(vendor: TokenVendor) -> Iterator[str]:
    with serving(PartnerServer(vendor)) as server:
        yield server.url


class _Connecting:
    done: Done


@contextmanager
def connecting(project: TokenProject, *options: str) -> Iterator[tuple[str, _Connecting]]:
    """The address that the command shows while it waits; afterwards, how it ended."""
    out, err, found = project.folder / "out", project.folder / "err", _Connecting()
    command = project.command("connect", "books", "--no-browser", *options)
    with processes.running(command, {**os.environ, "KEY": "k"}, out, err) as process:
        yield address_in(err), found
    found.done = Done(process.exitcode or 0, out.read_text(), err.read_text())


def in_browser(address: str) -> httpx.Response:
    return httpx.get(address, follow_redirects=True, trust_env=False)


def test_access_is_given_in_a_browser(vendor: TokenVendor, url: str, tmp_path: Path) -> None:
    """The tokens are in a private file, the connection reads, and no output has a secret."""
    with SandboxServer(tmp_path / "sandbox") as platform:
        _given_in_a_browser(vendor, TokenProject(tmp_path, url, platform=platform.base_url))


def _given_in_a_browser(vendor: TokenVendor, project: TokenProject) -> None:
    not_connected = project.run(*READ)
    assert not_connected.exit_code == 3
    assert "crossdock connect books" in not_connected.stderr + not_connected.stdout
    assert "FAIL  books: connections.books: is not connected" in project.run("check").stdout
    with connecting(project) as (address, connected):
        page = in_browser(address)
        assert (page.status_code, "default-src 'none'" in page.headers["content-security-policy"]) == (200, True)
    assert connected.done.exit_code == 0, connected.done.stderr
    assert "the audit log does not have this: there is no state here" in connected.done.stderr
    read, check, config = project.run(*READ), project.run("check"), project.run("config", "show")
    assert read.exit_code == 0, read.stderr
    assert "ok    books: connected since" in check.stdout
    path = project.tokens.path
    assert [each.stat().st_mode & 0o777 for each in (path, path.with_name("books.json.lock"), path.parent)] == [
        0o600, 0o600, 0o700,
    ]  # fmt: skip
    shown = "".join(each.stdout + each.stderr for each in (connected.done, read, check, config)) + page.text
    assert "canary" not in shown
    assert vendor.rotations == 0  # a token that lives is used by every process


def test_an_answer_with_another_state_changes_nothing(vendor: TokenVendor, url: str, tmp_path: Path) -> None:
    """The command waits on; only one answer counts, from a browser that names this host. It is in the audit log."""
    project = TokenProject(tmp_path, url)
    assert project.run("init").exit_code == 0
    with connecting(project) as (address, connected):
        redirect = parse_qs(urlsplit(address).query)["redirect_uri"][0]
        assert in_browser(f"{redirect}?code=canary&state=other").status_code == 400
        assert in_browser(f"{redirect}?code=canary").status_code == 400
        assert httpx.get(redirect, headers={"host": "evil.example"}, trust_env=False).status_code == 403
        assert httpx.get(f"{redirect}/other", trust_env=False).status_code == 404
        assert not project.tokens.path.exists()
        in_browser(address)
    assert connected.done.exit_code == 0
    assert [form["grant_type"] for form in vendor.forms] == ["authorization_code"]
    (logged, _) = json.loads(project.run("audit", "--json").stdout)
    assert (logged["action"], logged["subject"], logged["outcome"]) == ("connect", "connection books", "done")
    assert (logged["before"], logged["after"]) == ({"connected": False}, {"connected": True})


def test_the_account_of_another_state_is_not_replaced(vendor: TokenVendor, url: str, tmp_path: Path) -> None:
    """Of configs in one folder, whose databases have one name on two hosts, the first one keeps its tokens."""
    made = TokenProject(tmp_path, url)
    config = made.config.read_text().replace("sqlite:///state.db", "postgresql://crossdock@127.0.0.1:7/acme")
    made.config.write_text(config)
    with connecting(made) as (address, connected):
        in_browser(address)
    assert connected.done.exit_code == 0, connected.done.stderr
    kept = (tmp_path / "acme.tokens" / "books.json").read_bytes()
    live = json.loads(config.replace(":7/acme", ":9/acme"))
    live["platform"]["tenant"] = "live"
    made.config.write_text(json.dumps(live))
    refused = made.run("connect", "books", "--no-browser", "--within", "1")
    assert refused.exit_code == 3, refused.stderr
    assert "acme.keys belongs to the state of tenant 't'" in refused.stderr
    assert "set 'spool' in one of the two configs" in refused.stderr
    live["spool"] = "live.spool"  # as the error says
    made.config.write_text(json.dumps(live))
    (tmp_path / "err").unlink()
    with connecting(made) as (address, connected):
        in_browser(address)
    assert connected.done.exit_code == 0, connected.done.stderr
    assert (tmp_path / "acme.tokens" / "books.json").read_bytes() == kept
    assert (tmp_path / "live.tokens" / "books.json").exists()


def test_access_that_is_denied(vendor: TokenVendor, url: str, tmp_path: Path) -> None:
    """Exit 3 without the vendor's words, and earlier tokens stay."""
    project, vendor.denies = TokenProject(tmp_path, url), True
    with connecting(project) as (address, connected):
        in_browser(address)
    assert connected.done.exit_code == 3
    assert "access was denied (access_denied); nothing was stored" in connected.done.stderr
    assert "canary" not in connected.done.stderr


def test_nobody_answers(url: str, tmp_path: Path) -> None:
    """The wait has an end."""
    with connecting(TokenProject(tmp_path, url), "--within", "1") as (_, connected):
        pass
    assert connected.done.exit_code == 3
    assert "nobody gave access within 1 s" in connected.done.stderr


def test_a_registered_address_of_this_machine(url: str, tmp_path: Path) -> None:
    """The command listens at its port and path."""
    with serving(PartnerServer(TokenVendor())) as free:
        port = urlsplit(free.url).port
    project = TokenProject(tmp_path, url, redirect_url=f"http://localhost:{port}/done")
    with connecting(project) as (address, connected):
        assert in_browser(address).url.copy_with(query=None) == f"http://localhost:{port}/done"
    assert connected.done.exit_code == 0, connected.done.stderr


@pytest.mark.parametrize("is_right", [True, False])
def test_a_pasted_address(url: str, tmp_path: Path, is_right: bool) -> None:
    """For vendors that send browsers to https only; an address of another attempt is refused."""
    project, err = TokenProject(tmp_path, url), tmp_path / "err"
    command = [sys.executable, *project.command("connect", "books", "--redirect-url", "https://example.com/done")]
    with err.open("w") as written:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=written, text=True)
    answer = httpx.get(address_in(err), trust_env=False).headers["location"]
    assert answer.startswith("https://example.com/done?")
    process.communicate(f"{answer if is_right else answer + 'x'}\n", timeout=WITHIN_S)
    assert (process.returncode, project.tokens.path.exists()) == ((0, True) if is_right else (2, False))
    assert ("its state is another" in err.read_text()) is not is_right
    assert "canary" not in err.read_text()


def test_another_device(vendor: TokenVendor, url: str, tmp_path: Path) -> None:
    """The code is shown, and the vendor is asked until it was entered."""
    vendor.pending = 1
    project = TokenProject(tmp_path, url, device_url=f"{url}/device")
    with connecting(project) as (address, connected):
        assert address == "https://vendor.example/device"
    assert connected.done.exit_code == 0, connected.done.stderr
    assert "WDJB-MJHT" in connected.done.stderr
    assert "canary" not in connected.done.stderr
    assert project.run(*READ).exit_code == 0


@pytest.mark.parametrize(
    ("polls", "waited_s"),
    [
        ([PartnerAnswer(503, b"<html>"), PartnerAnswer(500, {"error": "server_error"})], 1 + 2 + 4),
        ([PartnerAnswer(429)], 1 + 2),
        ([PartnerAnswer(400, {"error": "temporarily_unavailable"})], 1 + 2),
        ([PartnerAnswer(403, b"<html>blocked")], 1 + 2),
        ([PartnerAnswer(428, {"error": "authorization_pending"})], 1 + 1),
        ([PartnerAnswer(503)] * 8, 1 + 2 + 4 + 8 + 16 + 32 + 60 + 60 + 60),
    ],
    ids=str,
)
def test_a_failed_question_for_another_device(
    vendor: TokenVendor,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    polls: list[PartnerAnswer],
    waited_s: float,
) -> None:
    """It is asked again after a longer pause, since the person may have entered the code (RFC 8628, 3.5)."""
    left, clock, inner = list(polls), ManualClock(), vendor._token
    monkeypatch.setattr(vendor, "_token", lambda asked: left.pop(0) if left else inner(asked))
    auth = AuthorizationCodeAuth(f"{url}/token", *CLIENT, device_url=f"{url}/device", tokens=tmp_path / "t" / "x.json")
    begun = clock.monotonic()
    obtain_and_store_tokens_by_device_code(Api(url), auth, clock, lambda *_: None, 600)
    assert auth.status().startswith("connected since")
    assert clock.monotonic() - begun == waited_s


def test_a_device_whose_vendor_cannot_be_reached_for_a_moment(tmp_path: Path) -> None:
    """A connection that breaks is no end of the waiting either."""
    vendor, lost = TokenVendor(), [True]
    with serving(PartnerServer(vendor)) as server:
        server.chosen, server.faults = (
            lambda asked: asked.path == "/token" and bool(lost) and lost.pop(),
            {"refused": 1.0},
        )
        at = server.url
        auth = AuthorizationCodeAuth(
            f"{at}/token", *CLIENT, device_url=f"{at}/device", tokens=tmp_path / "t" / "x.json"
        )
        obtain_and_store_tokens_by_device_code(Api(at), auth, ManualClock(), lambda *_: None, 600)
    assert auth.status().startswith("connected since")


def test_the_address_for_another_device_has_another_name_at_google(
    vendor: TokenVendor, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``verification_url``, as before the RFC."""
    given, shown = dict(vendor._device()), list[str]()
    given["verification_url"] = given.pop("verification_uri")
    monkeypatch.setattr(vendor, "_device", lambda: given)
    auth = AuthorizationCodeAuth(f"{url}/token", *CLIENT, device_url=f"{url}/device", tokens=tmp_path / "t" / "x.json")
    obtain_and_store_tokens_by_device_code(Api(url), auth, ManualClock(), lambda address, _: shown.append(address), 600)
    assert shown == ["https://vendor.example/device"]


def test_connections_without_an_owner(url: str, tmp_path: Path) -> None:
    """A wrong name is answered with the nearest one."""
    done = TokenProject(tmp_path, url).run("connect", "boks")
    assert (done.exit_code, "books" in done.stderr) == (2, True)


def test_what_is_missing_is_told_before_anybody_agrees(vendor: TokenVendor, url: str, tmp_path: Path) -> None:
    """A secret that cannot be read, and a folder that others can open."""
    done = TokenProject(tmp_path, url, client_secret="env:NOT_SET").run("connect", "books", "--no-browser")
    assert (done.exit_code, "NOT_SET is not set" in done.stderr) == (2, True)
    other = tmp_path / "other"
    tokens = other / "open" / "books.json"
    tokens.parent.mkdir(mode=0o755, parents=True)
    done = TokenProject(other, url, tokens="open/books.json").run("connect", "books", "--no-browser")
    assert (done.exit_code, f"chmod 700 {tokens.parent}" in done.stderr) == (3, True)
    assert vendor.forms == []
