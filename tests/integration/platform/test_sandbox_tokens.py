"""The engine with access tokens of the sandbox, which expire and are revoked while it works."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from crossdock.errors import UnauthorizedError
from crossdock.platform.platform_config import Profile
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing.manual_clock import ManualClock
from crossdock.writing.targets.platform_target import PlatformTarget

THREADS = 50
LIFE_S = 2


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox", SandboxSettings(token_life_s=LIFE_S)) as running:
        yield running


def target(platform: SandboxServer, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> PlatformTarget:
    """A target with the credential of the client ``crossdock``."""
    _, secret = platform.sandbox.clients.create_credential(scopes=["products:write"], client_id="crossdock")
    monkeypatch.setenv("CLIENT_SECRET", secret)
    auth = {"kind": "oauth2_client_credentials", "client_id": "crossdock", "client_secret": "env:CLIENT_SECRET"}
    facts = {"base_url": platform.base_url, "tenant": platform.tenant, "auth": auth}
    return PlatformTarget(Profile.model_validate(facts, context={"folder": Path()}), clock)


def requests(platform: SandboxServer, **query: str) -> list[dict[str, Any]]:
    answer = httpx.get(f"{platform.base_url}/_sandbox/requests", params=query, trust_env=False)
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


def advance(platform: SandboxServer, clock: ManualClock, seconds: float) -> None:
    clock.advance(seconds)
    moved = httpx.post(f"{platform.base_url}/_sandbox/clock", json={"advance_s": seconds}, trust_env=False)
    assert moved.status_code == 200


def test_one_token_request_per_expiry_for_fifty_threads(
    platform: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens live two seconds, and five pass: each expiry costs one token request, and no request is refused."""
    clock, expiries = ManualClock(), 5
    sender = target(platform, clock, monkeypatch)
    together = threading.Barrier(THREADS)

    def send() -> int:
        with closing(sender.client()) as client:
            together.wait(60)
            return sender.send(client, "product", sender.ping("product")).status

    with ThreadPoolExecutor(THREADS) as threads:
        for expired in range(expiries + 1):
            results = [threads.submit(send) for _ in range(THREADS)]
            assert {each.result(60) for each in results} == {200}
            assert len(requests(platform, path="/oauth/token")) == expired + 1
            advance(platform, clock, LIFE_S)
    assert requests(platform, status="401") == []
    assert len(requests(platform, path="/api/")) == THREADS * (expiries + 1)


def test_a_revoked_token_stops_the_next_request(platform: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next request is 401 and is repeated with a new token; without its client there is none."""
    sender = target(platform, ManualClock(), monkeypatch)
    with closing(sender.client()) as client:
        assert sender.send(client, "product", sender.ping("product")).status == 200
        assert sender.credential.current_token
        token = sender.credential.current_token.authorization.removeprefix("Bearer ")
        credentials = ("crossdock", os.environ["CLIENT_SECRET"])
        done = httpx.post(f"{platform.base_url}/oauth/revoke", auth=credentials, data={"token": token}, trust_env=False)
        assert done.status_code == 200
        assert sender.send(client, "product", sender.ping("product")).status == 200
        assert [each["status"] for each in requests(platform, path="/api/")] == [200, 401, 200]
        assert platform.sandbox.clients.revoke("crossdock")
        with pytest.raises(UnauthorizedError, match="invalid_client"):
            sender.send(client, "product", sender.ping("product"))
    assert [each["status"] for each in requests(platform, path="/api/")] == [200, 401, 200, 401]
