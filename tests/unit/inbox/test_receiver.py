"""The receiver answers once a webhook is stored, refuses what is wrong with a status, and never with 500."""

from __future__ import annotations

import gc
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.unit.inbox.depot import SCHEME, endpoint, new_secret, signed

from crossdock.errors import ConfigError, StateError
from crossdock.services.inbox import webhook_receiver_and_writer
from crossdock.services.inbox.webhook_receiver_and_writer import RefusedWebhookCounts, WebhookReceiver, WebhookWriter
from crossdock.state import PinnedTenant, State, StateUrl, create_or_upgrade_state
from crossdock.state.tables.webhooks_and_records_to_fetch import Inbox
from crossdock.values.clock import SystemClock

BODY = b'{"keys": [["1"]]}'
PIN = PinnedTenant("http://127.0.0.1:9", "acme")


@dataclass
class Stage:
    """A receiver of the connection ``depot``."""

    base_url: str
    url: StateUrl
    secret: str
    refused: RefusedWebhookCounts
    woken: threading.Event
    folder: Path
    client: httpx.Client = field(default_factory=lambda: httpx.Client(trust_env=False, timeout=30))

    def send(self, body: bytes = BODY, *, name: str | None = None, to: str = "depot") -> httpx.Response:
        return self.post(body, signed(self.secret, body, name=name), to=to)

    def post(self, body: bytes, fields: list[tuple[str, str]], *, to: str = "depot") -> httpx.Response:
        return self.client.post(f"{self.base_url}/webhooks/{to}", content=body, headers=fields)

    def keys(self) -> list[tuple[str, int]]:
        """Each record that is to be fetched, and how often it was hinted at."""
        opened = State(self.url, PIN)
        try:
            with opened.begin_read_only() as tx:
                return [(hint.key, hint.number) for hint in tx.inbox.records_to_fetch(limit=10_000)]
        finally:
            opened.close()


@contextmanager
def stage(
    folder: Path,
    url: StateUrl,
    open_state: Callable[[], State] | None = None,
    on_hint: Callable[[], object] = lambda: None,
) -> Iterator[Stage]:
    create_or_upgrade_state(url, PIN)
    secret, woken, refused = new_secret(), threading.Event(), RefusedWebhookCounts()

    def wake(_: Collection[str]) -> None:
        woken.set()
        on_hint()

    writer = WebhookWriter(open_state or (lambda: State(url, PIN)), SystemClock(), wake)
    try:
        made = WebhookReceiver({"depot": endpoint(folder, secret)}, writer, refused)
        with webhook_receiver_and_writer.serve_webhook_receiver_in_thread(made, "127.0.0.1", 0) as base_url:
            opened = Stage(base_url, url, secret, refused, woken, folder)
            with opened.client:
                yield opened
    finally:
        writer.store_queued_and_close()


@pytest.fixture
def each(tmp_path: Path, state_url: StateUrl) -> Iterator[Stage]:
    with stage(tmp_path, state_url) as opened:
        yield opened


def test_a_webhook_is_stored_before_it_is_answered(each: Stage) -> None:
    """After the answer the record is in the state, and the worker is woken; a copy changes nothing."""
    assert each.send(name="msg_1").status_code == 200
    assert each.keys() == [("1", 1)]
    assert each.woken.wait(10)
    assert each.send(name="msg_1").status_code == 200
    assert each.send(name="msg_2").status_code == 200
    assert each.keys() == [("1", 2)]


def test_many_webhooks_at_once_are_all_stored(each: Stage) -> None:
    """Webhooks that arrive together are stored together, each once."""
    bodies = [b'{"keys": [["%d"]]}' % number for number in range(200)]
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda pair: each.send(pair[1], name=f"m{pair[0]}"), list(enumerate(bodies)) * 2))
    assert {answer.status_code for answer in answers} == {200}
    assert sorted(each.keys()) == sorted((str(number), 1) for number in range(200))


def test_what_is_wrong_is_refused_with_a_status(each: Stage) -> None:
    """A forged, stale, malformed or too large webhook and an unknown connection are refused; nothing is stored."""
    stale = SystemClock().now().timestamp() - 10 * SCHEME.tolerance_s
    good = dict(signed(each.secret, BODY))
    cases = {
        "unknown_connection": (404, each.send(to="depots")),
        "wrong_signature": (401, each.post(BODY, signed(new_secret(), BODY))),
        "stale": (400, each.post(BODY, signed(each.secret, BODY, at=stale))),
        "missing_header": (400, each.post(BODY, [("webhook-id", "a")])),
        "malformed_header": (400, each.post(BODY, [*(good | {"webhook-timestamp": "now"}).items()])),
        "doubled_header": (400, each.post(BODY, [*good.items(), ("webhook-id", "a")])),
        "too_large": (413, each.post(b" " * (SCHEME.max_body_bytes + 1), [*good.items()])),
    }
    assert {reason: answer.status_code for reason, (_, answer) in cases.items()} == {
        reason: status for reason, (status, _) in cases.items()
    }
    assert {answer.headers["content-type"] for _, answer in cases.values()} == {"application/problem+json"}
    assert {reason for _, reason in each.refused.pop_counts()} == set(cases)
    assert each.refused.pop_counts() == {}
    assert each.client.get(f"{each.base_url}/webhooks/depot").status_code == 405
    assert each.client.post(f"{each.base_url}/").status_code == 404
    assert each.keys() == []


def test_bytes_that_are_no_text_are_refused(each: Stage) -> None:
    """Header fields with any bytes, and signatures that are no base64, get an answer below 500."""
    for signature in (b"\xff\xfe", b"v1,\xff", b"v1,%%%", b"v1,", b"," * 50, b"v1,A=" * 30):
        fields = [(b"webhook-id", b"\xff"), (b"webhook-signature", signature), (b"webhook-timestamp", b"1")]
        assert _raw_status(each, fields) in {400, 401}, signature


def test_what_is_no_http_is_counted_and_not_logged(each: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """Somebody without a secret cannot fill the log, whatever is sent."""
    parts = urlsplit(each.base_url)
    for _ in range(3):
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30) as connection:
            connection.sendall(b"\x16\x03\x01\x02\x00\r\n\r\n")  # as TLS begins
            assert b" 400 " in connection.recv(1_000)
    assert each.refused.pop_counts() == {("", "not_http"): 3}
    assert [record for record in caplog.records if record.levelname != "INFO"] == []


def _raw_status(each: Stage, fields: list[tuple[bytes, bytes]], length: int = len(BODY)) -> int:
    """The status of a request whose header has these bytes."""
    parts = urlsplit(each.base_url)
    head = b"POST /webhooks/depot HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n" % length
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30) as connection:
        connection.sendall(head + b"".join(b"%s: %s\r\n" % pair for pair in fields) + b"\r\n" + BODY)
        return int(connection.recv(1_000).split()[1])


def test_a_body_that_says_less_than_it_sends_is_cut_off(each: Stage) -> None:
    """A body in chunks that grows beyond the limit is refused before it is read to its end."""

    def chunks() -> Iterator[bytes]:
        for _ in range(1 + SCHEME.max_body_bytes // 65_536):
            yield b" " * 65_536

    url = f"{each.base_url}/webhooks/depot"
    assert each.client.post(url, content=chunks(), headers=signed(each.secret, BODY)).status_code == 413


def test_bodies_that_trickle_do_not_keep_others_from_being_read(each: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of bodies that are too large together those that have taken longest are given up, and later ones are read."""
    monkeypatch.setattr(webhook_receiver_and_writer, "BODIES_AT_MOST", 1 << 20)
    parts, slow = urlsplit(each.base_url), list[socket.socket]()
    head = b"POST /webhooks/depot HTTP/1.1\r\nhost: x\r\ncontent-length: 2000000\r\n\r\n"
    with stage(each.folder, each.url) as bounded, ExitStack() as stack:
        parts = urlsplit(bounded.base_url)
        for _ in range(12):
            connection = stack.enter_context(
                socket.create_connection((str(parts.hostname), parts.port or 0), timeout=30)
            )
            connection.sendall(head + b" " * 200_000)
            slow.append(connection)
        large = b'{"keys": [["2"]], "more": "%s"}' % (b"x" * 500_000)
        assert bounded.send(large, name="msg_1").status_code == 200
        assert bounded.send(BODY, name="msg_2").status_code == 200
        answers = [connection.recv(1_000) for connection in slow[:4]]
        assert all(b" 503 " in answer and b"retry-after: 5" in answer.lower() for answer in answers), answers
        assert bounded.refused.pop_counts()["depot", "too_much_at_once"] >= 8


def test_an_unreadable_body_is_no_error_of_the_sender(each: Stage) -> None:
    """A signed body that the connector cannot read is answered 200, and its problem is kept."""
    assert each.send(b"not json").status_code == 200
    assert each.refused.pop_counts() == {("depot", "unreadable"): 1}
    opened = State(each.url, PIN)
    with opened.begin_read_only() as tx:
        assert [found.problem for found in tx.inbox.unreadable_webhooks(limit=5)] == [
            "the body is not JSON, or goes beyond its limits"
        ]
    opened.close()


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (StateError("the disk is full"), "the disk is full [state]"),
        (RuntimeError("of C7"), "unexpected RuntimeError [internal]"),
    ],
)
def test_a_state_that_is_away_is_told_so_that_the_sender_tries_again(
    tmp_path: Path, state_url: StateUrl, caplog: pytest.LogCaptureFixture, error: Exception, logged: str
) -> None:
    """While the state cannot be opened for any reason the answer is 503, and the first webhook after that is stored."""
    is_away = threading.Event()
    is_away.set()

    def open_state() -> State:
        if is_away.is_set():
            raise error
        return State(state_url, PIN)

    with stage(tmp_path, state_url, open_state) as opened:
        for _ in range(2):
            answer = opened.send(name="msg_1")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
            assert "disk" not in answer.text
        assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == [
            f"webhooks are not stored: {logged}"
        ]
        is_away.clear()
        assert opened.send(name="msg_1").status_code == 200
        assert opened.keys() == [("1", 1)]


def test_what_fails_after_a_webhook_was_stored_changes_no_answer(
    tmp_path: Path, state_url: StateUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the removal of old webhooks nor what follows a hint, and the next webhooks are stored as well."""

    def fails(*_: object) -> int:
        raise RuntimeError

    monkeypatch.setattr(Inbox, "remove_old_webhooks", fails)
    with stage(tmp_path, state_url, on_hint=fails) as opened:
        for number in range(3):
            assert opened.send(name=f"msg_{number}").status_code == 200
            assert opened.woken.wait(10)
            opened.woken.clear()
        assert opened.keys() == [("1", 3)]


@pytest.mark.parametrize("fails", [False, True])
def test_what_was_refused_is_not_stored_later(
    tmp_path: Path, state_url: StateUrl, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fails: bool
) -> None:
    """A webhook that has waited too long is answered 503 and dropped; only one that is being stored may still be."""
    begun, goes_on, failures = threading.Event(), threading.Event(), [StateError("it is locked")] * fails

    def open_state() -> State:
        begun.set()
        goes_on.wait(60)
        if failures:
            raise failures.pop()
        return State(state_url, PIN)

    monkeypatch.setattr(webhook_receiver_and_writer, "STORED_WITHIN_S", 0.05)
    with stage(tmp_path, state_url, open_state) as opened:
        assert opened.send(b'{"keys": [["1"]]}').status_code == 503
        assert begun.wait(60)
        assert opened.send(b'{"keys": [["2"]]}').status_code == 503
        monkeypatch.setattr(webhook_receiver_and_writer, "STORED_WITHIN_S", 60)
        goes_on.set()
        assert opened.send(b'{"keys": [["3"]]}').status_code == 200
        assert opened.keys() == [("1", 1), ("3", 1)][fails:]
        gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_many_large_webhooks_that_wait_are_refused(
    tmp_path: Path, state_url: StateUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the records of waiting webhooks take too much memory, further ones are answered 503 at once."""
    begun, goes_on = threading.Event(), threading.Event()

    def open_state() -> State:
        begun.set()
        goes_on.wait(60)
        return State(state_url, PIN)

    monkeypatch.setattr(webhook_receiver_and_writer, "STORED_WITHIN_S", 60)
    monkeypatch.setattr(webhook_receiver_and_writer, "QUEUED_BYTES", 1)
    with stage(tmp_path, state_url, open_state) as opened, ThreadPoolExecutor(1) as pool:
        first = pool.submit(opened.send, b'{"keys": [["1"]]}')
        assert begun.wait(60)
        assert opened.send(b'{"keys": [["2"]]}').status_code == 503
        goes_on.set()
        assert first.result(60).status_code == 200
        assert opened.send(b'{"keys": [["3"]]}').status_code == 200
        assert opened.keys() == [("1", 1), ("3", 1)]


def test_a_port_that_is_taken_is_told(each: Stage) -> None:
    """A second receiver on the same port is an error of the call."""
    port = urlsplit(each.base_url).port or 0
    unused = WebhookReceiver({}, None, each.refused)  # type: ignore[arg-type]  # nothing is received
    with (
        pytest.raises(ConfigError, match="cannot listen"),
        webhook_receiver_and_writer.serve_webhook_receiver_in_thread(unused, "127.0.0.1", port),
    ):
        pass
