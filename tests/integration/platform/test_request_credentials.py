"""An access token is requested once for all threads, and renewed in time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.integration.platform.token_server import (
    Reply,
    Seen,
    TokenServer,
    answer,
    send,
    token,
    tokens_sent,
)
from tests.waiting import eventually

from crossdock.errors import UnauthorizedError
from crossdock.platform.credentials import ATTEMPTS
from crossdock.reading.transport.http_answers_and_errors import Answer, NotSentError
from crossdock.testing.manual_clock import ManualClock
from crossdock.writing.targets.platform_target import PlatformTarget


class Gate:
    """A token endpoint that answers once it is opened."""

    def __init__(self, server: TokenServer) -> None:
        self._opened = threading.Event()
        server.tokens = self

    def __call__(self, seen: Seen) -> Reply:
        assert self._opened.wait(60)
        return token(seen)

    def open(self) -> None:
        self._opened.set()


def test_many_threads_make_one_request_for_a_token(server: TokenServer, threads: ThreadPoolExecutor) -> None:
    """Fifty senders that need a token at the same time make one token request."""
    target, gate, begun = PlatformTarget(server.profile()), Gate(server), threading.Semaphore(0)

    def run() -> int:
        begun.release()
        return send(target).status

    results = [threads.submit(run) for _ in range(50)]
    for _ in range(50):
        assert begun.acquire(timeout=60)
    gate.open()
    assert {result.result(60) for result in results} == {201}
    assert len(server.asked) == 1
    assert tokens_sent(server) == ["T1"] * 50


def test_a_token_is_renewed_after_four_fifths_of_its_life(server: TokenServer) -> None:
    """A token of 100 seconds is used for 80."""
    clock = ManualClock()
    target = PlatformTarget(server.profile(), clock)
    for pause in (0.0, 79.0, 1.0, 79.0, 1.0):
        clock.advance(pause)
        send(target)
    assert tokens_sent(server) == ["T1", "T1", "T2", "T2", "T3"]
    assert len(server.asked) == 3


def test_no_thread_waits_for_a_renewal_while_the_old_token_is_valid(
    server: TokenServer, threads: ThreadPoolExecutor
) -> None:
    """While one thread renews the token, others use the old one; once that has expired they wait."""
    clock = ManualClock()
    target = PlatformTarget(server.profile(), clock)
    send(target)
    gate = Gate(server)
    clock.advance(80)
    renewing = threads.submit(send, target)
    eventually(lambda: len(server.asked) == 2)
    send(target)
    clock.advance(20)
    waiting = threads.submit(send, target)
    gate.open()
    assert (renewing.result(60).status, waiting.result(60).status) == (201, 201)
    assert tokens_sent(server) == ["T1", "T1", "T2", "T2"]
    assert len(server.asked) == 2


def test_a_failed_renewal_leaves_the_old_token_in_use(server: TokenServer) -> None:
    """While the token is valid a failing endpoint does no harm, and is asked again only after a pause."""
    clock = ManualClock()
    target = PlatformTarget(server.profile(retry={"base_s": 0.001}), clock)
    send(target)
    server.tokens = lambda _: answer(503, {})
    clock.advance(80)
    send(target)
    send(target)
    assert len(server.asked) == 1 + ATTEMPTS
    server.tokens = token
    clock.advance(11)
    send(target)
    assert tokens_sent(server) == ["T1", "T1", "T1", f"T{2 + ATTEMPTS}"]


def test_an_expired_token_is_not_used(server: TokenServer) -> None:
    """A token that has expired and cannot be renewed is not sent."""
    clock = ManualClock()
    target = PlatformTarget(server.profile(), clock)
    send(target)
    server.tokens = lambda _: answer(503, {})
    clock.advance(100)
    with pytest.raises(NotSentError):
        send(target)
    assert len(server.sent) == 1


def test_all_waiting_threads_get_one_failure(server: TokenServer, threads: ThreadPoolExecutor) -> None:
    """Fifty senders that wait for the same token fail together, without further requests."""
    target, begun, opened = PlatformTarget(server.profile()), threading.Semaphore(0), threading.Event()

    def refuse(_: Seen) -> Reply:
        assert opened.wait(60)
        return answer(401, {"error": "invalid_client"})

    def run() -> Answer:
        begun.release()
        return send(target)

    server.tokens = refuse
    results = [threads.submit(run) for _ in range(50)]
    for _ in range(50):
        assert begun.acquire(timeout=60)
    opened.set()
    assert {type(result.exception(60)) for result in results} == {UnauthorizedError}
    assert len(server.asked) == 1


def _fail(_body: bytes) -> None:
    raise ZeroDivisionError


def test_an_unexpected_failure_frees_the_waiting_threads(server: TokenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect in reading the token ends the request, and the next one asks again."""
    target = PlatformTarget(server.profile())
    with monkeypatch.context() as patched:
        patched.setattr("crossdock.reading.transport.oauth_messages.json_object_or_empty", _fail)
        with pytest.raises(ZeroDivisionError):
            send(target)
    assert send(target).status == 201
