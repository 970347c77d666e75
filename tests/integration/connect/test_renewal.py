"""Refresh tokens that are used once are renewed by one process at a time, and never used twice."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.chaos import processes
from tests.partners.partner_server import PartnerAnswer, PartnerRequest, PartnerServer, serving
from tests.partners.token_project import READ, TokenProject
from tests.partners.token_vendor import TokenVendor
from tests.waiting import WITHIN_S

from crossdock.errors import UnauthorizedError, UnavailableError
from crossdock.reading.sources.account_owner_consent import BrowserConsentAttempt
from crossdock.reading.transport import authorization_code_tokens
from crossdock.sources import Api, AuthorizationCodeAuth
from crossdock.values import exact_json


@pytest.fixture(name="vendor")
def _vendor() -> TokenVendor:
    return TokenVendor()


@pytest.fixture(name="server")
def _server(vendor: TokenVendor) -> Iterator[PartnerServer]:
    with serving(PartnerServer(vendor)) as server:
        yield server


@pytest.fixture(name="project")
def _project(server: PartnerServer, tmp_path: Path) -> TokenProject:
    """A project whose account is connected."""
    project = TokenProject(tmp_path, server.url)
    connect(project, server.url)
    return project


def connect(project: TokenProject, url: str) -> None:
    auth = project.auth(url)
    attempt = BrowserConsentAttempt(Api(url, auth), auth, "http://127.0.0.1:1/callback")
    attempt.take_answer_in_pasted_address(httpx.get(attempt.address, trust_env=False).headers["location"])
    attempt.exchange_code_and_store_tokens()


def read(auth: AuthorizationCodeAuth, url: str) -> int:
    with httpx.Client(auth=auth, trust_env=False) as client:
        return client.get(f"{url}/items").status_code


def test_a_token_that_ends_within_a_list(vendor: TokenVendor, project: TokenProject) -> None:
    """It is renewed after the 401, and the list is read to its end."""
    vendor.expires_after_page = 1
    done = project.run(*READ, "--json")
    assert (done.exit_code, len(done.document["records"])) == (0, 6), done.stderr
    assert (vendor.rotations, vendor.reused) == (1, False)


def test_the_next_process_uses_the_successor(vendor: TokenVendor, project: TokenProject) -> None:
    """Each renewal is stored, so that each process uses another refresh token."""
    for number in range(3):
        vendor.expire()
        assert project.run(*READ).exit_code == 0
        assert (vendor.rotations, vendor.reused) == (number + 1, False)


def test_a_token_that_another_renews_is_awaited(
    vendor: TokenVendor, server: PartnerServer, project: TokenProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one renews, another waits for the lock, reads the file again, and uses what it finds."""
    waiting, url = threading.Event(), server.url
    monkeypatch.setattr("crossdock.reading.transport.authorization_code_tokens.time.sleep", lambda _: waiting.set())
    statuses: list[int] = []
    other = threading.Thread(target=lambda: statuses.append(read(project.auth(url), url)))

    def meanwhile() -> None:
        vendor.before_rotation = lambda: None
        other.start()
        assert waiting.wait(WITHIN_S)

    vendor.expire()
    first = project.auth(url)
    vendor.before_rotation = meanwhile
    assert read(first, url) == 200
    other.join()
    assert (statuses, vendor.rotations, vendor.reused) == ([200], 1, False)


def test_processes_at_once(vendor: TokenVendor, project: TokenProject) -> None:
    """Three begin with a token that has ended; one renews it for all."""
    vendor.expire()
    with ExitStack() as stack:
        command, environment = project.command(*READ), {**os.environ, "KEY": "k"}
        running = [stack.enter_context(processes.running(command, environment)) for _ in range(3)]
    assert ([each.exitcode for each in running], vendor.rotations, vendor.reused) == ([0, 0, 0], 1, False)


@pytest.mark.parametrize("status", [400, 200])
def test_access_that_was_withdrawn(
    vendor: TokenVendor, server: PartnerServer, project: TokenProject, status: int
) -> None:
    """One request and exit 3, with the command to run; the stored token stays, and no text of the vendor is shown."""
    before, vendor.refusal_status = project.stored(), status
    vendor.revoke()
    done = project.run(*READ)
    output = done.stdout + done.stderr
    assert done.exit_code == 3
    assert "connections.books" in output
    assert "invalid_grant" in output
    assert "crossdock connect books" in output
    assert "canary" not in output
    assert (len(vendor.forms), project.stored()) == (2, before)
    auth = project.auth(server.url)
    for _ in range(2):
        with pytest.raises(UnauthorizedError, match="invalid_grant"):
            read(auth, server.url)
    assert len(vendor.forms) == 3


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": "temporarily_unavailable"}),
        (400, {"error": "server_error"}),
        (403, b"<html>blocked"),
        (404, b"<html>no such page"),
        (409, {"error": "another renewal is in progress"}),
        (421, None),
        (425, None),
        (429, None),
        (503, None),
    ],
    ids=str,
)
def test_an_answer_that_says_nothing_about_the_access(
    vendor: TokenVendor,
    server: PartnerServer,
    project: TokenProject,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    body: Any,
) -> None:
    """It is no refusal of the refresh token, which is sent again later, also by this process."""
    auth, before = project.auth(server.url), project.stored()
    vendor.expire()
    with monkeypatch.context() as patched:
        patched.setattr(vendor, "_token", lambda _: PartnerAnswer(status, body))
        with pytest.raises(UnavailableError, match=f"no token obtained: HTTP {status}"):
            read(auth, server.url)
    assert project.stored().refresh_token == before.refresh_token
    assert read(auth, server.url) == 200


@pytest.mark.parametrize("body", [{"error": "canary"}, {"error": {"code": "canary"}}, b"<html>canary"], ids=str)
def test_a_refusal_in_other_words(
    vendor: TokenVendor, server: PartnerServer, project: TokenProject, monkeypatch: pytest.MonkeyPatch, body: Any
) -> None:
    """It is not taken for the end of the access, and the refresh token is not sent again soon."""
    auth, sent = project.auth(server.url), list[PartnerRequest]()

    def answer(request: PartnerRequest) -> PartnerAnswer:
        sent.append(request)
        return PartnerAnswer(400, body)

    vendor.expire()
    monkeypatch.setattr(vendor, "_token", answer)
    for _ in range(2):
        with pytest.raises(UnauthorizedError, match=r"renewed no access.*HTTP 400") as refused:
            read(auth, server.url)
        assert "if this stays so, give access: crossdock connect books" in str(refused.value)
        assert "canary" not in str(refused.value)
    assert len(sent) == 1


def test_a_successor_with_a_space(vendor: TokenVendor, project: TokenProject) -> None:
    """It is kept and used: a refresh token is never sent in a header (RFC 6749, A.17)."""
    vendor.refresh_prefix = "with space "
    for _ in range(2):
        vendor.expire()
        assert project.run(*READ).exit_code == 0
    assert (project.stored().refresh_token[:11], vendor.reused) == ("with space ", False)


@pytest.mark.parametrize("odd", ["tök", "\u0000", 7], ids=ascii)
def test_a_successor_that_cannot_be_used(
    vendor: TokenVendor, server: PartnerServer, project: TokenProject, monkeypatch: pytest.MonkeyPatch, odd: Any
) -> None:
    """The access ends loudly, and the earlier token, which is used up, is not sent again."""
    inner = vendor._granted
    monkeypatch.setattr(vendor, "_granted", lambda: PartnerAnswer(200, {**inner().body, "refresh_token": odd}))
    vendor.expire()
    sent = len(vendor.forms)
    for _ in range(2):
        with pytest.raises(UnauthorizedError, match="has characters that none may have") as refused:
            read(project.auth(server.url), server.url)
        assert "crossdock connect books" in str(refused.value)
    assert len(vendor.forms) == sent + 1


def test_a_successor_beside_an_access_token_that_cannot_be_used(
    vendor: TokenVendor, server: PartnerServer, project: TokenProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The successor is stored all the same, so that the next renewal uses no token twice."""
    inner = vendor._granted

    def granted() -> PartnerAnswer:
        return PartnerAnswer(200, {**inner().body, "access_token": "with space"})

    auth = project.auth(server.url)
    vendor.expire()
    with monkeypatch.context() as patched:
        patched.setattr(vendor, "_granted", granted)
        with pytest.raises(UnavailableError, match="no token that can be sent"):
            read(auth, server.url)
    assert (read(auth, server.url), vendor.reused) == (200, False)


@pytest.mark.parametrize("folder", [False, True], ids=["the file", "its folder"])
def test_an_earlier_copy_of_the_file(
    vendor: TokenVendor, server: PartnerServer, project: TokenProject, folder: bool
) -> None:
    """Its refresh token was used since, so it is not sent: the vendor would withdraw all. To connect again helps."""
    tokens = project.tokens.path
    copy = project.folder / "backup"
    shutil.copytree(tokens.parent, copy)
    vendor.expire()
    assert project.run(*READ).exit_code == 0
    if folder:
        shutil.rmtree(tokens.parent)
        shutil.copytree(copy, tokens.parent)
    else:
        shutil.copyfile(copy / tokens.name, tokens)
    vendor.expire()
    for arguments in (READ, ("check",)):
        done = project.run(*arguments)
        assert (done.exit_code, vendor.reused, vendor.rotations) == (3, False, 1)
        assert "the file of tokens is an earlier copy" in done.stdout + done.stderr
    assert "crossdock connect books" in project.run(*READ).stderr
    connect(project, server.url)
    assert project.run(*READ).exit_code == 0


def test_a_copy_of_a_file_that_is_still_right(
    vendor: TokenVendor, server: PartnerServer, project: TokenProject
) -> None:
    """A vendor that replaces no refresh token lets any copy be used, also one that an earlier version has written."""
    document = exact_json.loads(project.tokens.path.read_bytes())
    assert isinstance(document, dict)
    vendor.keeps = True
    vendor.expire()
    assert read(project.auth(server.url), server.url) == 200
    del document["replaced"]
    project.tokens.path.write_bytes(exact_json.dumps(document))
    vendor.expire()
    assert read(project.auth(server.url), server.url) == 200
    assert len(vendor.forms) == 3


@pytest.mark.parametrize("status", [400, 403])
def test_an_ended_token_that_is_answered_otherwise(
    tmp_path: Path, vendor: TokenVendor, server: PartnerServer, status: int
) -> None:
    """`expired` names the answer, and the list is read to its end."""
    vendor.ended = PartnerAnswer(status, {"error": "token expired"})
    project = TokenProject(tmp_path, server.url, expired=[{"status": status, "text": "token expired"}])
    connect(project, server.url)
    vendor.expires_after_page = 1
    done = project.run(*READ, "--json")
    assert (done.exit_code, len(done.document["records"]), vendor.rotations) == (0, 6, 1), done.stderr


def test_a_lost_answer(vendor: TokenVendor, server: PartnerServer, project: TokenProject) -> None:
    """A vendor that forgives it grants again; another one does not, and the error says what happened."""
    lost = [True]

    def is_lost(request: PartnerRequest) -> bool:
        return request.path == "/token" and lost.pop() if lost else False

    server.chosen, server.faults = is_lost, {"lost_answer": 1.0}
    vendor.expire()
    vendor.grace = True
    assert project.run(*READ).exit_code == 0
    assert (vendor.rotations, project.stored().renewing_since) == (2, None)
    vendor.expire()
    vendor.grace, lost[:] = False, [True]
    done = project.run(*READ)
    assert done.exit_code == 3
    assert "was interrupted before its answer was stored" in done.stdout + done.stderr


def test_files_that_cannot_be_used(server: PartnerServer, project: TokenProject) -> None:
    """Not if others may read it, and not if it is something else; the path is named and its content is not."""
    path, auth = project.tokens.path, project.auth(server.url)
    path.chmod(0o644)
    with pytest.raises(UnauthorizedError, match="others may read"):
        read(auth, server.url)
    path.chmod(0o600)
    for content in (b"canary", b"[]", b'{"access_token": "canary"}', b"\xff"):
        path.write_bytes(content)
        with pytest.raises(UnauthorizedError, match="not a file of tokens") as refused:
            read(auth, server.url)
        assert "canary" not in str(refused.value)
    path.parent.chmod(0o755)
    with pytest.raises(UnauthorizedError, match="open to other users"):
        read(auth, server.url)


def test_a_token_is_renewed_before_it_ends(vendor: TokenVendor, server: PartnerServer, project: TokenProject) -> None:
    """After four fifths of its life, also if it was stored by another process."""
    stored = project.stored()
    left_s = stored.renew_at - datetime.now(UTC).timestamp()
    assert 0.7 * vendor.life_s < left_s <= 0.8 * vendor.life_s
    assert read(project.auth(server.url), server.url) == 200
    assert vendor.rotations == 0
    project.tokens.write(
        authorization_code_tokens.StoredTokens(stored.access_token, stored.refresh_token, 0, stored.connected_at)
    )
    assert read(project.auth(server.url), server.url) == 200
    assert vendor.rotations == 1
