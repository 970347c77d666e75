"""A process is killed while it renews a refresh token that is used once."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import httpx
import pytest
from tests.chaos import processes
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.token_project import READ, TokenProject
from tests.partners.token_vendor import TokenVendor
from tests.waiting import WITHIN_S

from crossdock.reading.sources.account_owner_consent import BrowserConsentAttempt
from crossdock.sources import Api


@pytest.mark.parametrize(
    ("at", "grace", "survives"),
    [("before_rotation", False, True), ("after_rotation", True, True), ("after_rotation", False, False)],
)
def test_a_kill_in_a_renewal(tmp_path: Path, at: str, grace: bool, survives: bool) -> None:
    """The next process continues where the vendor allows it, and otherwise says what happened and what to do."""
    vendor = TokenVendor(grace=grace)
    with serving(PartnerServer(vendor)) as server:
        project = TokenProject(tmp_path, server.url)
        auth = project.auth(server.url)
        attempt = BrowserConsentAttempt(Api(server.url, auth), auth, "http://127.0.0.1:1/callback")
        attempt.take_answer_in_pasted_address(httpx.get(attempt.address, trust_env=False).headers["location"])
        attempt.exchange_code_and_store_tokens()
        vendor.expire()
        before = project.stored()
        process = processes.start(project.command(*READ), {**os.environ, "KEY": "k"})

        is_dead = threading.Event()

        def kill() -> None:
            setattr(vendor, at, lambda: None)
            process.kill()
            assert is_dead.wait(WITHIN_S)
            if at == "before_rotation":
                raise ConnectionResetError  # the request did not arrive

        setattr(vendor, at, kill)
        process.join()
        is_dead.set()
        left = project.stored()
        assert (process.exitcode, left.refresh_token, left.renewing_since is None) == (-9, before.refresh_token, False)
        done = project.run(*READ)
        output = done.stdout + done.stderr
    assert done.exit_code == (0 if survives else 3), output
    assert ("crossdock connect books" in output) is not survives
    assert ("was interrupted before its answer was stored" in output) is not survives
    assert (project.stored().refresh_token == before.refresh_token) is not survives
    assert "canary" not in output
