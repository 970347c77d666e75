"""How long a request may leave after the state has allowed it, when its process or its machine was suspended."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.integration.delivery.harness import Answer, Bench, Platform, Seen, Shelf, created, invoice

from crossdock.reading.transport.http_answers_and_errors import AmbiguousError, ExpiredError
from crossdock.reading.transport.httpcore_client import HttpClient
from crossdock.state import StateUrl, parse_database_url
from crossdock.state.db.run_lease import LEASE_S
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.clock import SystemClock
from crossdock.writing.delivery.state_writer import LEAVE_AT_MOST_S, LEAVE_WITHIN_S

DAY_S = 86_400.0


@pytest.fixture
def state_url(tmp_path: Path) -> StateUrl:
    """One database is enough here."""
    return parse_database_url("sqlite:///state.db", tmp_path)


def sleeping(clock: ManualClock, seconds: float, times: int) -> Callable[[bytes], None]:
    """Lets *seconds* pass right before a body is sent, for the first *times* sendings of each."""
    slept, lock = Counter[bytes](), threading.Lock()

    def sleep(body: bytes) -> None:
        with lock:
            slept[body] += 1
            if slept[body] <= times:
                clock.advance(seconds)

    return sleep


def test_the_time_to_leave_is_far_inside_the_lease() -> None:
    """Nobody can take over a state before what it allowed to leave has left or expired."""
    assert LEAVE_WITHIN_S < LEAVE_AT_MOST_S <= LEASE_S / 3


def test_what_waited_too_long_is_asked_for_again(bench: Bench, platform: Platform) -> None:
    """A request that finds its time over goes back, is allowed again, arrives once, and is counted once."""
    clock = bench.clock = ManualClock()
    bench.pauses = sleeping(clock, LEAVE_WITHIN_S + 0.5, times=1)
    bench.carry_out([invoice(number) for number in range(5)])
    assert len(platform.of("POST")) == len({seen.body for seen in platform.seen}) == 5
    assert bench.counters.requests == 5
    assert bench.statuses() == {"delivered": 5}


def test_a_slow_machine_gets_more_time(bench: Bench, platform: Platform) -> None:
    """Where every request takes as long as that to leave, the time grows and all arrive once, after few attempts."""
    clock = bench.clock = ManualClock()
    began = clock.monotonic()
    bench.settings = {"in_flight": 1}  # so that none sleeps while another one leaves
    bench.pauses = sleeping(clock, 3.0, times=100)
    bench.carry_out([invoice(number) for number in range(3)])
    assert len(platform.of("POST")) == 3
    assert bench.statuses() == {"delivered": 3}
    assert clock.monotonic() - began < 30.0


@pytest.mark.parametrize("keys", [True, False])
def test_a_machine_that_slept_for_a_day_does_not_trust_its_keys(
    bench: Bench, platform: Platform, *, keys: bool
) -> None:
    """What may have been carried out before the sleep is not sent under a key that the platform has forgotten."""
    clock = bench.clock = ManualClock()
    shelf = Shelf()

    def script(seen: Seen) -> Answer:
        return (
            None
            if seen.method == "POST" and seen.turn == 1
            else created(seen)
            if seen.method == "POST"
            else shelf(seen)
        )

    platform.script = script
    bench.settings = {"idempotency": {"enabled": keys}}
    sent = Counter[bytes]()

    def sleep(body: bytes) -> None:
        sent[body] += 1
        if sent[body] == 2:  # the resend, which waits in its thread while the machine sleeps
            clock.advance(DAY_S + 3_600)

    bench.pauses = sleep
    bench.carry_out([invoice(1)])
    assert len(platform.of("POST")) == 1
    assert bench.statuses() == {"in_doubt": 1}


def test_a_resend_that_waited_for_its_turn_is_decided_on_anew(bench: Bench, platform: Platform) -> None:
    """The key of an operation is looked at when it leaves, not only when it was put in line."""
    clock = bench.clock = ManualClock()
    bench.settings = {"in_flight": 1, "retry": {"attempts": 3, "base_s": 0.001}}
    slept: list[bytes] = []

    def script(seen: Seen) -> Answer:
        return None if b'"number":1' in seen.body and seen.turn == 1 else created(seen)

    def sleep(body: bytes) -> None:
        if b'"number":2' in body and not slept:  # while the resend of the first one waits
            slept.append(body)
            clock.advance(DAY_S + 3_600)

    platform.script, bench.pauses = script, sleep
    bench.carry_out([invoice(1), invoice(2)])
    assert sorted(seen.body for seen in platform.of("POST")) == sorted({seen.body for seen in platform.seen})
    assert bench.statuses() == {"in_doubt": 1, "delivered": 1}


def _listening(seen: list[bytes]) -> HTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Be quiet."""

    return HTTPServer(("127.0.0.1", 0), Handler)


@pytest.mark.parametrize(
    ("allowed", "error"),
    [
        pytest.param(0, ExpiredError, id="nothing was written"),
        pytest.param(1, AmbiguousError, id="the head was written, the body was not"),
    ],
)
def test_no_byte_leaves_after_its_time(allowed: int, error: type[Exception]) -> None:
    """The permission is asked for before each write, so a request never becomes whole after it was withdrawn."""
    seen: list[bytes] = []
    asked = iter([True] * allowed)
    with _listening(seen) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        http = HttpClient(f"http://127.0.0.1:{server.server_port}", headers={})
        with pytest.raises(error):
            http.send("POST", "/x", body=b"{}", may_leave=lambda: next(asked, False))
        http.close()
        thread.join()
    assert [body for body in seen if body == b"{}"] == []


def test_the_clock_counts_on_while_the_machine_is_suspended() -> None:
    """`SystemClock.monotonic` is the time since the machine started, where the system tells it."""
    uptime = float(Path("/proc/uptime").read_text().split()[0]) if Path("/proc/uptime").exists() else None
    now = SystemClock().monotonic()
    assert uptime is None or abs(now - uptime) < 60.0
