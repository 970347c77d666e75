"""Law 2 at the wire: intents before bytes, the same bytes again, and nothing blindly."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from tests.conftest import PIN
from tests.integration.delivery.harness import (
    SCOPE,
    Answer,
    Batch,
    Bench,
    Platform,
    Seen,
    created,
    is_number,
    operation,
)

from crossdock.errors import StoppedError, UnauthorizedError, UnavailableError
from crossdock.state import State, StateUrl
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.clock import SystemClock
from crossdock.writing.delivery.dispatcher import Dispatcher
from crossdock.writing.delivery.operations_and_intents import Operation
from crossdock.writing.delivery.state_writer import Settlement
from crossdock.writing.targets.answer_outcomes import Outcome


def test_no_byte_leaves_before_its_intent_is_committed(bench: Bench, platform: Platform, state_url: StateUrl) -> None:
    """When the platform sees a request, the state on disk says already that it is being sent, with these bytes."""
    witness = State(state_url, PIN, read_only=True)
    wrong: list[str] = []

    def look(seen: Seen) -> Answer:
        with platform.lock, witness.begin() as tx:
            sending = {f'"{i.idempotency_key}"': i for i in tx.intents.page_with_statuses(("sending",), limit=1000)}
        if seen.key not in sending or sending[seen.key].body != seen.body:
            wrong.append(seen.key)
        return created(seen)

    platform.script = look
    bench.deliver(60)
    witness.close()
    assert (wrong, len(platform.seen), bench.bound()) == ([], 60, 60)


def test_a_request_is_counted_before_it_leaves(bench: Bench, platform: Platform, state_url: StateUrl) -> None:
    """However early its process is killed, the run has counted at least what the platform has seen of it."""
    witness = State(state_url, PIN, read_only=True)
    counted: list[int] = []

    def look(seen: Seen) -> Answer:
        with platform.lock, witness.begin() as tx:
            (run,) = tx.runs.listed(limit=9)
            counted.append(run.requests - len(platform.seen))
        return created(seen)

    platform.script = look
    bench.deliver(60)
    with witness.begin_read_only() as tx:
        assert tx.runs.listed(limit=1)[0].requests == len(platform.seen) == 60
    witness.close()
    assert min(counted) >= 0


def test_a_lost_answer_is_asked_for_again_with_the_same_bytes(bench: Bench, platform: Platform) -> None:
    """Lost answers and gateway errors are resent under the same key with the same body; each record once bound."""

    def lose(seen: Seen) -> Answer:
        if seen.turn == 1 and int(seen.body.split(b"wms:")[1].split(b'"')[0]) % 2:
            return None
        return (502, {}, b"<html>") if seen.turn == 2 else created(seen)

    bench.clock, platform.script = ManualClock(), lose
    bench.deliver(40)
    bodies: dict[str, set[bytes]] = {}
    for seen in platform.seen:
        bodies.setdefault(seen.key, set()).add(seen.body)
    assert len(bodies) == 40
    assert all(len(variants) == 1 for variants in bodies.values())
    assert (bench.statuses(), bench.bound()) == ({"delivered": 40}, 40)
    assert len(platform.seen) == 80
    (token,) = bench.allowance.take_available(1)
    assert token.others == 0  # the requests without an answer are no longer counted as in flight


def test_without_idempotency_nothing_is_sent_twice(bench: Bench, platform: Platform) -> None:
    """A platform that knows no keys gets each ambiguous request once; it is parked in doubt, also by the next run."""
    bench.settings = {"idempotency": {"enabled": False}, "after_ambiguous": "park"}
    platform.script = lambda seen: None if b"wms:7" in seen.body else created(seen)
    bench.deliver(10)
    assert bench.statuses() == {"delivered": 9, "in_doubt": 1}
    assert [intent.identity.key for intent in bench.resume()] == ["7"]
    assert Counter(seen.body for seen in platform.seen).most_common(1)[0][1] == 1


def test_a_refused_connection_is_tried_again_and_then_stops_the_run(bench: Bench, platform: Platform) -> None:
    """A platform that is gone stops the run after the configured attempts; the next run delivers all, each once."""
    port, bench.port = bench.port, 1
    with pytest.raises(UnavailableError, match=r"connection refused \(3 attempts\)"):
        bench.deliver(5)
    assert set(bench.statuses()) <= {"in_doubt", "pending", "sending"}
    assert len(bench.settled) == 5
    bench.port = port
    bench.settled.clear()
    assert bench.resume() == []
    assert (bench.statuses(), bench.bound(), len(platform.seen)) == ({"delivered": 5}, 5, 5)


def test_an_outage_is_told_once(bench: Bench, platform: Platform) -> None:
    """When it begins, with how long it is probed, and when it ends."""
    bench.clock = ManualClock()
    platform.script = lambda seen: created(seen) if bench.warnings else (503, {}, b"")
    bench.deliver(40)
    address = f"http://127.0.0.1:{bench.port}"
    assert bench.warnings == [
        f"{address} is unavailable; probing for at most 3 times [target_unavailable]",
        f"{address} is available again",
    ]
    assert bench.bound() == 40


def test_a_key_the_platform_has_forgotten_is_not_sent_again(
    bench: Bench, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An intent that was sent longer ago than the platform remembers keys stays in doubt where no look-up helps."""
    bench.settings = {"lookup": {"enabled": False}}
    platform.script = lambda _seen: None
    with pytest.raises(UnavailableError):
        bench.deliver(1)
    sent = len(platform.seen)
    platform.script = created
    later = SystemClock().now() + timedelta(hours=25)
    monkeypatch.setattr(SystemClock, "now", lambda _self: later)
    assert [intent.identity.key for intent in bench.resume()] == ["0"]
    assert (len(platform.seen), bench.bound()) == (sent, 0)


def test_a_rejection_is_a_dead_letter(bench: Bench, platform: Platform) -> None:
    """What the platform refuses is kept with reason, pointer, raw and mapped form; the rest goes through."""
    problem = b'{"errors":[{"pointer":"/sku","detail":"is taken"}]}'
    platform.script = lambda seen: (422, {}, problem) if b"wms:3" in seen.body else created(seen)
    bench.deliver(5)
    with bench.state.begin() as tx:
        (dead_letter,) = tx.dead_letters.listed(limit=9)
    assert (dead_letter["code"], dead_letter["pointer"], dead_letter["message"]) == ("rejected", "/sku", "is taken")
    assert (dead_letter["raw"]["rows"], dead_letter["mapped"]["sku"], dead_letter["line"]) == ([["S3"]], "S3", 5)
    assert bench.statuses() == {"delivered": 4, "rejected": 1}


def test_a_refused_credential_stops_the_run_and_loses_nothing(bench: Bench, platform: Platform) -> None:
    """401 stops everything at once; no record becomes a dead letter, and all go through once it is mended."""
    platform.script = lambda _seen: (401, {}, b"{}")
    with pytest.raises(UnauthorizedError, match="HTTP 401"):
        bench.deliver(8)
    with bench.state.begin() as tx:
        assert tx.dead_letters.listed(limit=9) == []
        assert {intent.first_sent_at for intent in tx.intents.unsettled()} == {None}
    platform.script = created
    bench.settled.clear()
    bench.resume()
    assert (bench.statuses(), bench.bound()) == ({"delivered": 8}, 8)


def test_one_forbidden_record_is_a_dead_letter_all_of_them_are_a_wrong_credential(
    bench: Bench, platform: Platform
) -> None:
    """A narrowed credential may write some records and not others; one that may write none stops the run."""
    bench.settings = {"in_flight": 1}
    platform.script = lambda seen: (403, {}, b"{}") if b"wms:3" in seen.body else created(seen)
    bench.deliver(5)
    assert bench.statuses() == {"delivered": 4, "rejected": 1}
    platform.script = lambda _seen: (403, {}, b"{}")
    with pytest.raises(UnauthorizedError):
        bench.run(lambda dispatcher: dispatcher.deliver(iter([Batch([operation(99)])])))


def test_a_credential_that_is_revoked_meanwhile_makes_few_dead_letters(bench: Bench, platform: Platform) -> None:
    """Some targets answer 403 then, to everything; one that is narrowed may write few of many records."""
    bench.settings = {"in_flight": 1}

    def revoked(seen: Seen) -> Answer:
        return (403, {}, b"{}") if len(platform.of("POST")) > 5 else created(seen)

    platform.script = revoked
    with pytest.raises(UnauthorizedError, match="does not permit writing product"):
        bench.deliver(60)
    assert bench.statuses() == {"delivered": 5, "rejected": 9, "pending": 46}
    bench.settled.clear()
    narrowed = 30
    platform.script = lambda seen: (
        (403, {}, b"{}") if any(is_number(seen, n) for n in range(6, narrowed)) else created(seen)
    )
    assert bench.resume_to_end() == []
    assert bench.statuses() == {"delivered": 60 - narrowed, "rejected": narrowed - 14}


def test_throttling_costs_time_and_no_attempt(bench: Bench, platform: Platform) -> None:
    """More 429s than the attempts allowed fail nothing: waiting for the allowance is no failure."""
    bench.clock = ManualClock()
    platform.script = lambda seen: (429, {"retry-after": "0"}, b"{}") if seen.turn <= 5 else created(seen)
    bench.deliver(2)
    assert (bench.statuses(), bench.counters.throttled) == ({"delivered": 2}, 10)


def test_an_interrupt_settles_what_is_on_its_way(bench: Bench, platform: Platform) -> None:
    """After a stop what was sent is settled and what was not is pending; nothing is between."""
    bench.settings = {"in_flight": 4}

    def interrupt(seen: Seen) -> Answer:
        bench.interrupt.set()
        return created(seen)

    platform.script = interrupt
    with pytest.raises(StoppedError):
        bench.deliver(50)
    assert bench.bound() == len(platform.seen) < 50
    with bench.state.begin() as tx:
        assert {intent.status for intent in tx.intents.unsettled()} == {"pending"}
    bench.interrupt.clear()
    platform.script = created
    bench.settled.clear()
    bench.resume()
    assert (bench.bound(), len(platform.seen)) == (50, 50)


def test_never_more_in_flight_than_the_limit(bench: Bench, platform: Platform) -> None:
    """However many operations are ready, the platform never holds more than the limit at once."""
    bench.settings = {"in_flight": 7}
    now, most = Counter[str](), [0]

    def hold(seen: Seen) -> Answer:
        with platform.lock:
            now["held"] += 1
            most[0] = max(most[0], now["held"])
        answer = created(seen)
        with platform.lock:
            now["held"] -= 1
        return answer

    platform.script = hold
    bench.deliver(100)
    assert 1 <= most[0] <= 7
    assert bench.bound() == 100


def test_an_update_is_a_patch_and_replaces_the_payload(bench: Bench, platform: Platform) -> None:
    """An update sends the changed members to the record's address, under a key of its own."""
    bench.deliver(1)
    with bench.state.begin() as tx:
        binding = tx.bindings.get(SCOPE, [0])[0]
    first = operation(0)
    after = first.after | {"name": "y"}
    identity = first.identity._replace(fingerprint=77)
    changed = Operation("update", identity, SCOPE, first.record, after, {"name": "y"}, binding)
    bench.run(lambda dispatcher: dispatcher.deliver(iter([Batch([changed])])))
    create, update = platform.seen
    assert (update.method, update.path, update.body) == (
        "PATCH",
        f"/api/v1/catalog/products/{binding.target_id}",
        b'{"name":"y"}',
    )
    assert update.key != create.key
    with bench.state.begin() as tx:
        now = tx.bindings.get(SCOPE, [0])[0]
    assert (now.payload, now.fingerprint, now.counter, now.target_id) == (after, 77, 2, binding.target_id)


@pytest.mark.parametrize("busy", [False, True])
def test_an_acknowledgement_of_what_is_to_be_sent_again(bench: Bench, platform: Platform, *, busy: bool) -> None:
    """It settles also what this run was not given, and a warning tells what another run sends meanwhile."""
    bench.clock = ManualClock()
    platform.script = lambda _: (429, {"retry-after": "60"}, b"{}")
    with pytest.raises(UnavailableError):
        bench.deliver(1)
    with bench.state.begin() as tx:
        (left,) = tx.intents.unsettled()
    assert left.status == "pending"
    left.status = "delivered"

    def night(dispatcher: Dispatcher) -> None:
        other = dispatcher._own_records._all.begin_run()
        if busy:
            other.record_begin_of_work([left])
        said = Settlement(left, Outcome("delivered", target_id="1"))
        assert dispatcher.deliver(iter([Batch([], [said])]))

    bench.run(night)
    assert bench.unsettled() == ({"0": "pending"} if busy else {})
    assert [text.rpartition(": ")[0] for text in bench.warnings if "acknowledgement" in text] == (
        ["wms.products 0: an acknowledgement of it came while another run hands it over again"] if busy else []
    )
