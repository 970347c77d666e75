"""A refused token is replaced, and the request repeated once."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from tests.integration.platform.token_server import (
    BODY,
    Reply,
    Seen,
    TokenServer,
    answer,
    created,
    send,
    tokens_sent,
)
from tests.waiting import eventually

from crossdock.platform.platform_config import Profile
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.writing.targets.platform_target import PlatformTarget


def refuse_first(seen: Seen) -> Reply:
    return answer(401, {}) if seen.bearer == "T1" else created(seen)


def test_a_refused_token_is_replaced_once(server: TokenServer) -> None:
    """After a 401 the same bytes are sent with the same idempotency key and a new token."""
    server.platform = refuse_first
    assert send(PlatformTarget(server.profile()), "one").status == 201
    first, second = server.sent
    assert (first.bearer, second.bearer) == ("T1", "T2")
    assert first.body == second.body == BODY
    assert {**first.headers, "authorization": ""} == {**second.headers, "authorization": ""}
    assert first.headers["idempotency-key"] == '"one"'


def test_threads_whose_token_is_refused_together_get_one_new_token(
    server: TokenServer, threads: ThreadPoolExecutor
) -> None:
    """Twenty requests refused at once make one further token request, even if answered after the new token came."""
    together = threading.Barrier(19)
    last = threading.Event()

    def platform(seen: Seen) -> Reply:
        if seen.bearer != "T1":
            return created(seen)
        if seen.number == 1:
            assert last.wait(60)  # this one is refused when the others have their new token
        else:
            together.wait(60)
        return answer(401, {})

    server.platform = platform
    target = PlatformTarget(server.profile())
    results: list[Future[Answer]] = [threads.submit(send, target)]
    eventually(lambda: len(server.sent) == 1)
    results += [threads.submit(send, target) for _ in range(19)]
    assert [result.result(60).status for result in results[1:]] == [201] * 19
    last.set()
    assert results[0].result(60).status == 201
    assert len(server.asked) == 2
    assert tokens_sent(server).count("T2") == 20


def test_a_second_refusal_is_the_outcome(server: TokenServer) -> None:
    """If the new token is refused as well, the outcome is the 401."""
    server.platform = lambda _: answer(401, {})
    assert send(PlatformTarget(server.profile())).status == 401
    assert tokens_sent(server) == ["T1", "T2"]
    assert len(server.asked) == 2


@pytest.mark.parametrize("status", [403, 400, 409, 429, 500, 503])
def test_other_errors_are_not_repeated(server: TokenServer, status: int) -> None:
    """Only a 401 concerns the token; any other status is the outcome."""
    server.platform = lambda _: answer(status, {"title": "no"})
    assert send(PlatformTarget(server.profile())).status == status
    assert (len(server.sent), len(server.asked)) == (1, 1)


def test_a_key_is_sent_once_and_needs_no_token(server: TokenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an API key a 401 is the outcome at once."""
    monkeypatch.setenv("KEY", "sbx_1")
    server.platform = lambda _: answer(401, {})
    facts = {"base_url": server.base_url, "tenant": "acme", "auth": {"kind": "api_key", "token": "env:KEY"}}
    target = PlatformTarget(Profile.model_validate(facts))
    assert send(target).status == 401
    assert tokens_sent(server) == ["sbx_1"]
    assert server.asked == []
    assert target.credential.current_token is None
