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
from crossdock.platform.platform_target import PlatformTarget
from crossdock.platform.token_endpoint import ATTEMPTS
from crossdock.testing.manual_clock import ManualClock
from crossdock.transport.http_answers import Answer, NotSentError


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


@pytest.mark.parametrize(
    ("told", "life_s"),
    [
        pytest.param("3600", 3600, id="number"),
        pytest.param("59.5", 59.5, id="fraction"),
        pytest.param('"3600"', 3600, id="digits as text"),
        pytest.param("null", 300, id="null"),
        pytest.param('"soon"', 300, id="text"),
        pytest.param('"-5"', 300, id="negative text"),
        pytest.param("-5", 300, id="negative"),
        pytest.param("0", 300, id="zero"),
        pytest.param("true", 300, id="truth value"),
        pytest.param("[3600]", 300, id="list"),
        pytest.param("1e400", 86_400, id="huge"),
        pytest.param("9" * 400, 86_400, id="huge whole number"),
        pytest.param(f'"{"9" * 12}"', 86_400, id="huge text"),
    ],
)
def test_the_life_of_a_token(server: TokenServer, told: str, life_s: float) -> None:
    """A life of no sense counts as five minutes, and none is longer than a day."""
    body = b'{"access_token":"T","expires_in":%s}' % told.encode()
    server.tokens = lambda _: (200, {}, body)
    target = PlatformTarget(server.profile())
    send(target)
    assert target.credential.grant
    assert target.credential.grant.life_s == life_s


def test_a_token_that_tells_no_life(server: TokenServer) -> None:
    """Without expires_in a token counts as good for five minutes."""
    server.tokens = lambda seen: answer(200, {"access_token": f"T{seen.number}"})
    clock = ManualClock()
    target = PlatformTarget(server.profile(), clock)
    for pause in (0, 239, 1):
        clock.advance(pause)
        send(target)
    assert tokens_sent(server) == ["T1", "T1", "T2"]


# ---- refused by the platform


def refuse_first(seen: Seen) -> Reply:
    return answer(401, {}) if seen.bearer == "T1" else created(seen)


def test_a_refused_token_is_replaced_once(server: TokenServer) -> None:
    """After a 401 the same bytes go again under the same idempotency key, with a new token."""
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
    """Twenty requests refused at once make one token request more, even those told after the new token came."""
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
    """When the new token is refused too, the 401 is what the request came to."""
    server.platform = lambda _: answer(401, {})
    assert send(PlatformTarget(server.profile())).status == 401
    assert tokens_sent(server) == ["T1", "T2"]
    assert len(server.asked) == 2


@pytest.mark.parametrize("status", [403, 400, 409, 429, 500, 503])
def test_other_refusals_are_not_sent_again(server: TokenServer, status: int) -> None:
    """Only a 401 speaks of the token: all else is the outcome at once, with no call for a token."""
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
    assert target.credential.grant is None


# ---- who we are


@pytest.mark.parametrize(
    ("client_id", "secret"),
    [
        pytest.param("me", "plain", id="plain"),
        pytest.param("a:b", "c:d", id="colons"),
        pytest.param("a+b c", "100% & more=less", id="plus, blanks and form signs"),
        pytest.param("Käse", "Größe €", id="letters beyond ASCII"),
    ],
)
@pytest.mark.parametrize("client_auth", ["basic", "post"])
def test_the_client_shows_who_it_is(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch, client_auth: str, client_id: str, secret: str
) -> None:
    """Id and secret reach the server as they are, in the header or in the form but never in both."""
    monkeypatch.setenv("CLIENT_SECRET", secret)
    send(PlatformTarget(server.profile({"client_id": client_id, "client_auth": client_auth, "scopes": ["a:b", "c"]})))
    (seen,) = server.asked
    form = {name: value for name, (value,) in parse_qs(seen.body.decode("ascii"), strict_parsing=True).items()}
    if client_auth == "basic":
        kind, _, pair = seen.headers["authorization"].partition(" ")
        user, password = b64decode(pair, validate=True).decode("ascii").split(":")
        told = (kind, unquote_plus(user), unquote_plus(password))
    else:
        told = ("Basic", form.pop("client_id"), form.pop("client_secret"))
        assert "authorization" not in seen.headers
    assert told == ("Basic", client_id, secret)
    assert form == {"grant_type": "client_credentials", "scope": "a:b c"}
    assert (seen.method, seen.headers["content-type"]) == ("POST", "application/x-www-form-urlencoded")
    assert "x-tenant-slug" not in seen.headers


def test_without_scopes_none_are_asked_for(server: TokenServer) -> None:
    """An empty list leaves the choice to the server."""
    send(PlatformTarget(server.profile()))
    assert server.asked[0].body == b"grant_type=client_credentials"


def test_a_secret_that_cannot_be_read_is_told_early(server: TokenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Making a client fails, before anything is asked or sent, and without the secret."""
    monkeypatch.delenv("CLIENT_SECRET")
    with pytest.raises(ConfigError, match="CLIENT_SECRET is not set"):
        PlatformTarget(server.profile()).client()
    monkeypatch.setenv("CLIENT_SECRET", "can\nary")
    with pytest.raises(ConfigError, match="no client secret") as told:
        PlatformTarget(server.profile()).client()
    assert "ary" not in str(told.value)
    assert server.asked == []


# ---- scopes


def test_fewer_scopes_than_asked_are_refused(server: TokenServer) -> None:
    """A narrowed grant is told with what is missing; nothing is sent, and nobody asks a second time."""
    server.tokens = lambda seen: token(seen, scope="orders:read admin")
    target = PlatformTarget(server.profile({"scopes": ["invoices:write", "orders:read", "ledger:4000:write"]}))
    for _ in range(2):
        with pytest.raises(UnauthorizedError, match=r"missing scopes: invoices:write ledger:4000:write\n"):
            send(target)
    assert (len(server.asked), server.sent) == (1, [])


@pytest.mark.parametrize(
    ("scopes", "told", "text"),
    [
        pytest.param(["a"], {}, "scopes: a", id="not told: as asked"),
        pytest.param(["a", "b"], {"scope": "b a"}, "scopes: b a", id="in another order"),
        pytest.param(["a"], {"scope": "a root"}, "scopes: a root; wider than asked by: root", id="wider"),
        pytest.param([], {"scope": "a b"}, "scopes: a b", id="none asked"),
        pytest.param([], {}, "scopes: not told", id="none asked, none told"),
    ],
)
def test_what_was_granted_is_told(server: TokenServer, scopes: list[str], told: dict[str, str], text: str) -> None:
    """The probe says how long the token lives and what it may do, and where that is more than was asked."""
    server.tokens = lambda seen: token(seen, **told)
    server.platform = lambda _: answer(200, {"data": []})
    learned = access_check.reach(server.profile({"scopes": scopes}))
    assert learned == f"{server.base_url} lets us in, with a token for 100 s; {text}"


# ---- no token


def refusal(status: int, body: bytes) -> Callable[[Seen], Reply]:
    return lambda _: (status, {}, body)


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        pytest.param(401, b'{"error":"invalid_client"}', r"invalid_client \(HTTP 401\)", id="client"),
        pytest.param(400, b'{"error":"invalid_scope"}', r"invalid_scope \(HTTP 400\)", id="scope"),
        pytest.param(401, b"<html>no</html>", "a token: HTTP 401", id="no JSON"),
        pytest.param(400, b'{"error":{"code":1}}', "a token: HTTP 400", id="error of another shape"),
        pytest.param(400, b'["invalid_client"]', "a token: HTTP 400", id="no object"),
        pytest.param(400, b'{"error":"bad\\u001b[31m"}', "a token: HTTP 400", id="control characters"),
        pytest.param(400, b'{"error":"hunter_two"}', "a token: HTTP 400", id="a code that no standard has"),
        pytest.param(404, b"", "a token: HTTP 404", id="nothing there"),
        pytest.param(302, b"", "a token: HTTP 302", id="redirect"),
    ],
)
def test_a_refusal_is_final(server: TokenServer, status: int, body: bytes, told: str) -> None:
    """A token endpoint that says no is told by its error code, and is asked once."""
    server.tokens = refusal(status, body)
    target = PlatformTarget(server.profile())
    for _ in range(2):
        with pytest.raises(UnauthorizedError, match=told) as refused:
            send(target)
    assert f"{server.base_url}/oauth/token: " in str(refused.value)
    assert (len(server.asked), server.sent) == (1, [])


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        pytest.param(None, "request failed", id="no answer"),
        pytest.param((503, {}, b""), "HTTP 503", id="down"),
        pytest.param((500, {}, b'{"error":"server_error"}'), "HTTP 500", id="error"),
        pytest.param((429, {"retry-after": "1"}, b""), "HTTP 429", id="throttled"),
        pytest.param((200, {}, b"<html>"), "without an access_token", id="no JSON"),
        pytest.param((200, {}, b'{"access_token":"a","access_token":"b"}'), "without an access_token", id="two tokens"),
        pytest.param((200, {}, b"[]"), "without an access_token", id="no object"),
        pytest.param((200, {}, b"{}"), "without an access_token", id="no access_token"),
        pytest.param((200, {}, b'{"access_token":""}'), "without an access_token", id="empty token"),
        pytest.param((200, {}, b'{"access_token":17}'), "without an access_token", id="number as token"),
        pytest.param((200, {}, b'{"access_token":"a\\r\\nx: y"}'), "without an access_token", id="line end in token"),
        pytest.param((200, {}, '{"access_token":"ä"}'.encode()), "without an access_token", id="umlaut in token"),
        pytest.param((200, {}, b'{"access_token":"a","token_type":"mac"}'), "another type", id="token type"),
        pytest.param((200, {}, b'{"access_token":"a","scope":["x"]}'), "scopes", id="list of scopes"),
        pytest.param((200, {}, b'{"access_token":"a","scope":"x\\u001b"}'), "scopes", id="control in scopes"),
        pytest.param((200, {}, b'{"access_token":"a","scope":"%s"}' % (b"x" * 5_000)), "scopes", id="endless scopes"),
        pytest.param((200, {}, b'{"access_token":"a","expires_in":1e400000000}'), "access_token", id="endless life"),
        pytest.param((200, {"content-encoding": "gzip"}, b"{}"), "request failed", id="broken packing"),
        pytest.param((200, {}, b'{"access_token":"%s"}' % (b"a" * 70_000)), "more than", id="endless token"),
    ],
)
def test_without_a_token_nothing_is_sent(server: TokenServer, reply: Reply, told: str) -> None:
    """A token endpoint that fails is asked three times; then the request counts as surely not sent."""
    server.tokens = lambda _: reply
    clock = ManualClock()
    target = PlatformTarget(server.profile(), clock)
    with pytest.raises(NotSentError, match=told) as failed:
        send(target)
    assert f"{server.base_url}/oauth/token gives no token: " in failed.value.message
    assert (len(server.asked), server.sent) == (ATTEMPTS, [])
    assert 0.0 < clock.monotonic() < 1.5
    server.tokens = token
    assert send(target).status == 201


def test_an_endpoint_that_cannot_be_reached(server: TokenServer) -> None:
    """A closed port is a request that was not sent."""
    target = PlatformTarget(server.profile({"token_url": "http://127.0.0.1:1/token"}), ManualClock())
    with pytest.raises(NotSentError, match="cannot be reached"):
        send(target)
    assert server.sent == []


def test_all_who_wait_learn_of_one_failure(server: TokenServer, threads: ThreadPoolExecutor) -> None:
    """Fifty senders that wait for the same token fail with it, and do not ask one after the other."""
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
        patched.setattr("crossdock.platform.token_endpoint._members", _fail)
        with pytest.raises(ZeroDivisionError):
            send(target)
    assert send(target).status == 201
