"""Requests without a decision: retries, pings, look-ups and parking."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from tests.integration.delivery.harness import (
    PROBE,
    VERIFY,
    Answer,
    Batch,
    Bench,
    Platform,
    Seen,
    Shelf,
    is_number,
    operation,
)

from crossdock.errors import UnavailableError
from crossdock.state import StateUrl, parse_database_url
from crossdock.testing.manual_clock import ManualClock
from crossdock.writing.delivery.dispatcher import Dispatcher
from crossdock.writing.delivery.send_queue_and_threads import FIRST_PAUSE_S, OPENS_AT


@pytest.fixture
def state_url(tmp_path: Path) -> StateUrl:
    """One database is enough here: the other tests show that both keep the same."""
    return parse_database_url("sqlite:///state.db", tmp_path)


def test_one_poisonous_record_stops_nobody(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """A record that always fails is left in doubt after its attempts; the next run sends the same bytes again."""
    bench.clock = ManualClock()
    platform.script = lambda seen: (500, {}, b"") if is_number(seen, 3) else shelf(seen)
    bench.deliver(60)
    assert bench.statuses() == {"delivered": 59, "in_doubt": 1}
    assert bench.unsettled() == {"3": "in_doubt"}
    platform.script = shelf
    bench.settled.clear()
    assert bench.resume() == []
    sent = [seen for seen in platform.seen if is_number(seen, 3)]
    assert len(sent) == 3 + 1
    assert len({(seen.key, seen.body) for seen in sent}) == 1
    assert (bench.bound(), bench.unsettled()) == (60, {})


def test_a_poisonous_record_does_not_stop_the_next_run(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """A record that goes on failing when a run begins is left in doubt once more, and the run goes on."""
    bench.clock = ManualClock()
    platform.script = lambda seen: (500, {}, b"") if is_number(seen, 3) else shelf(seen)
    bench.deliver(60)
    with bench.state.begin() as tx:
        unsettled = tx.intents.unsettled()
    bench.settled.clear()

    def night(dispatcher: Dispatcher) -> None:
        assert list(dispatcher.resume_unsettled_intents(unsettled)) == []
        assert dispatcher.deliver(iter([]))

    bench.run(night)
    assert bench.statuses() == {"in_doubt": 1}


def test_what_the_last_run_left_is_postponed_while_all_of_it_fails(
    bench: Bench, platform: Platform, shelf: Shelf
) -> None:
    """The platform answers, and fails whatever the last run left: what is new is delivered, and the rest stays."""
    bench.clock = ManualClock()
    platform.script = lambda seen: (500, {}, b"") if seen.body else shelf(seen)
    with pytest.raises(UnavailableError):
        bench.deliver(20)
    with bench.state.begin() as tx:
        left = tx.intents.unsettled()
    bench.settled.clear()
    platform.script = lambda seen: (500, {}, b"") if any(is_number(seen, n) for n in range(20)) else shelf(seen)

    def night(dispatcher: Dispatcher) -> None:
        assert list(dispatcher.resume_unsettled_intents(left)) == []
        assert dispatcher.deliver(iter([Batch([operation(number) for number in range(20, 30)])]))

    bench.run(night)
    assert bench.statuses()["delivered"] == 10
    assert len(bench.unsettled()) == len(left) > 0


def test_in_an_outage_a_pause_follows_each_request(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """Also a ping, which is sent when one record has failed too often."""
    bench.settings, clock = {"in_flight": 1}, ManualClock()
    bench.clock, failed = clock, list[tuple[str, float]]()

    def script(seen: Seen) -> Answer:
        if is_number(seen, 0):
            return shelf(seen)
        failed.append((seen.method, clock.monotonic()))
        return 500, {}, b""

    platform.script = script
    with pytest.raises(UnavailableError):
        bench.deliver(30)
    probes = failed[OPENS_AT:]
    assert {method for method, _ in probes} == {"POST", "GET"}
    assert min(after - before for (_, before), (_, after) in pairwise(probes)) >= FIRST_PAUSE_S / 2


def test_parked_records_leave_nobody_behind(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """Records in doubt stop the sending for a while, and then the rest is delivered: no chunk is forgotten."""
    bench.settings = {"idempotency": {"enabled": False}, "after_ambiguous": "park", "in_flight": 1}
    bench.clock = ManualClock()
    unsettled = range(1, 13)  # the last two are probes
    platform.script = lambda seen: None if any(is_number(seen, n) for n in unsettled) else shelf(seen)
    bench.carry_out([operation(n) for n in range(13)], [operation(n) for n in range(13, 43)])
    assert bench.statuses() == {"in_doubt": 12, "delivered": 31}
    assert len(platform.seen) == 43


def test_parking_ends_when_nothing_gets_through(bench: Bench, platform: Platform) -> None:
    """A platform that fails for all does not put one record after the other in doubt; the error names its status."""
    bench.settings = {"idempotency": {"enabled": False}, "after_ambiguous": "park", "in_flight": 4}
    bench.clock = ManualClock()
    platform.script = lambda _seen: (503, {}, b'{"title": "Away"}')
    with pytest.raises(UnavailableError, match="Away: HTTP 503"):
        bench.deliver(200)
    assert len(platform.seen) < 30
    assert Counter(bench.unsettled().values())["pending"] > 170


def test_what_may_have_happened_is_looked_up_when_it_has_settled(
    bench: Bench, platform: Platform, shelf: Shelf
) -> None:
    """Without keys a lost answer is followed by a look-up after the time to settle; what is found is not sent again.

    What others have changed in it since stays, as after an answer.
    """
    clock = ManualClock()
    bench.settings, bench.clock = VERIFY | {"lookup": {"settle_s": 40.0}}, clock
    times: list[tuple[str, float]] = []

    def lose(seen: Seen) -> Answer:
        if PROBE not in seen.path:
            times.append((seen.method, clock.monotonic()))
        answer = shelf(seen)
        if seen.method == "POST":
            shelf.edit(*shelf.held, name="by hand")
            return None
        return answer

    platform.script = lose
    bench.deliver(1)
    (first, sent), (second, asked) = times
    assert (first, second) == ("POST", "GET")
    assert 40.0 <= asked - sent < 45.0
    assert (len(shelf.held), bench.bound(), bench.statuses()) == (1, 1, {"delivered": 1})
    assert not bench.settled[0].untouched
    assert bench.binding(0).target_id in shelf.held


def test_what_did_not_happen_is_sent_once_more(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """What a look-up does not find is sent again, once, with the same key and bytes."""
    bench.settings, bench.clock = {"after_ambiguous": "verify"}, ManualClock()
    platform.script = lambda seen: (504, {}, b"") if seen.method == "POST" and seen.turn == 1 else shelf(seen)
    bench.deliver(1)
    assert platform.told() == ["POST", "GET", "POST"]
    first, second = platform.of("POST")
    assert (first.key, first.body) == (second.key, second.body)
    assert (len(shelf.held), bench.bound()) == (1, 1)


def test_a_look_up_that_is_refused_ends_in_doubt(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """A platform that does not answer look-ups leaves the record in doubt, and it is not sent again."""
    bench.settings, bench.clock = VERIFY, ManualClock()

    def blind(seen: Seen) -> Answer:
        if seen.method == "GET":
            return 403, {}, b"{}"
        return None if is_number(seen, 0) else shelf(seen)

    platform.script = blind
    with pytest.raises(UnavailableError):
        bench.deliver(1)
    assert (bench.unsettled(), len(platform.of("POST"))) == ({"0": "in_doubt"}, 1)


def test_a_ping_does_not_turn_a_look_up_into_a_resend(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """What may have been done is looked up however often the platform failed before: there is one record in the end."""
    bench.settings = VERIFY | {"lookup": {"settle_s": 5.0}, "in_flight": 1}
    bench.clock = ManualClock()
    bench.deliver(1)

    def hostile(seen: Seen) -> Answer:
        if seen.method == "GET":
            return None if "limit=1" in seen.path else shelf(seen)
        if is_number(seen, 5):
            return shelf(seen)
        if sum(is_number(each, 1) for each in platform.seen) < 3:
            return 503, {"retry-after": "1"}, b"{}"
        shelf(seen)
        return None  # done, and the answer is lost

    platform.script = hostile
    bench.carry_out([operation(5), operation(1)])
    assert bench.unsettled() == {}
    assert [each["sku"] for each in shelf.held.values()] == ["S0", "S5", "S1"]
    assert sum(is_number(seen, 1) and seen.method == "POST" for seen in platform.seen) == 3


def test_a_key_is_not_used_when_it_is_forgotten_meanwhile(bench: Bench, platform: Platform) -> None:
    """A pause that is longer than the platform remembers keys ends in doubt and not in a second sending."""
    bench.settings = {"idempotency": {"kept_s": 10}, "lookup": {"enabled": False}}
    bench.clock = ManualClock()
    platform.script = lambda _seen: (500, {"retry-after": "60"}, b"")
    bench.deliver(1)
    assert (len(platform.seen), bench.unsettled()) == (1, {"0": "in_doubt"})
