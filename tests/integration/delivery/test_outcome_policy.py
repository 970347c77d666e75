"""What the policy decides about new intents, earlier intents and answers."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.integration.delivery.harness import (
    PRODUCTS,
    SCOPE,
    VERIFY,
    Answer,
    Batch,
    Bench,
    Platform,
    Seen,
    Shelf,
    created,
    deleting,
    invoice,
    is_number,
    operation,
    updating,
)

from crossdock.errors import RefusedError, RemoteError, StoppedError, UnauthorizedError, UnavailableError
from crossdock.state import Scope, StateUrl, parse_database_url
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.author_code_errors import AuthorCodeError
from crossdock.writing.delivery.dispatcher import Dispatcher
from crossdock.writing.delivery.send_queue_and_threads import WATCHED

INVOICES = Scope("platform", "invoice", "wms")


@pytest.fixture
def state_url(tmp_path: Path) -> StateUrl:
    """One database is enough here: the other tests show that both keep the same."""
    return parse_database_url("sqlite:///state.db", tmp_path)


def test_a_delete_whose_answer_was_lost_is_verified(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """Without keys a delete in doubt is looked up: sent again if the record is there, done if it is not."""
    bench.settings, bench.clock = VERIFY, ManualClock()
    bench.deliver(2)
    here, there = bench.binding(0), bench.binding(1)
    lost: set[str] = set()

    def lose(seen: Seen) -> Answer:
        if seen.method != "DELETE" or seen.path in lost:
            return shelf(seen)
        lost.add(seen.path)
        if here.target_id in seen.path:
            shelf(seen)  # it happens, and only the answer is lost
        return None

    platform.script = lose
    bench.carry_out([deleting(here), deleting(there)])
    assert Counter(platform.told()) == {"POST": 2, "DELETE": 3, "GET": 3}, "and a list, as the look-up says 404"
    assert (shelf.held, bench.bound(), bench.unsettled()) == ({}, 0, {})


def test_a_server_that_finds_nothing_shows_no_record_to_be_gone(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """Also if each of its answers is another one, with its path and time, as those of Spring and Express are."""
    bench.clock = ManualClock()
    platform.script = shelf
    bench.deliver(2)
    platform.script = lambda seen: (404, {}, b'{"status": 404, "path": "%s"}' % seen.path.encode())
    changed = updating(bound := bench.binding(1), {**bound.payload, "name": "new"})
    with pytest.raises(UnavailableError, match="HTTP 404"):
        bench.carry_out([deleting(bench.binding(0)), changed])
    assert (bench.bound(), sorted(bench.unsettled())) == (2, ["0", "1"])
    platform.script = shelf
    bench.resume()
    assert (bench.bound(), bench.unsettled(), bench.dead_letters()) == (1, {}, {})


@pytest.mark.nightly(but=["307"])
@pytest.mark.parametrize("status", [301, 307, 308])
def test_a_redirect_ends_the_delivery_with_nothing_in_doubt(
    bench: Bench, platform: Platform, shelf: Shelf, status: int
) -> None:
    """All is sent once the address is right, and each record once."""
    bench.clock = ManualClock()
    platform.script = lambda seen: (status, {"location": f"https://new.example/v2{seen.path}"}, b"")
    with pytest.raises(RemoteError) as ended:
        bench.carry_out([operation(number) for number in range(100)])
    at = "https://new.example/v2"
    assert ended.value.message == f"redirects to {at}{PRODUCTS}, which is {PRODUCTS} below {at} (HTTP {status})"
    assert "platform.base_url" in (ended.value.hint or "")
    assert Counter(bench.unsettled().values()) == {"pending": 100}
    platform.script = shelf
    bench.resume()
    assert (len(shelf.held), bench.unsettled(), bench.dead_letters()) == (100, {}, {})


@pytest.mark.parametrize("status", [301, 302, 303])
def test_redirected_look_ups_are_no_outage_that_passes(bench: Bench, platform: Platform, status: int) -> None:
    """The error says where they lead and what to correct, and not to try again."""
    bench.settings, bench.clock = VERIFY, ManualClock()
    moved = (status, {"location": "https://new.example/v2"}, b"")
    platform.script = lambda seen: None if seen.method == "POST" else moved
    with pytest.raises(UnavailableError, match="redirects to https://new.example/v2: HTTP") as ended:
        bench.deliver(1)
    assert "platform.base_url" in (ended.value.hint or "")
    assert "run again" not in (ended.value.hint or "")


def test_changes_that_answers_deny_are_no_outage(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """Each is looked up: it is delivered if the target has changed the record, and else a dead letter; all are sent."""
    bench.settings, bench.clock = VERIFY, ManualClock()
    bench.deliver(2 * WATCHED)
    changes = [updating(bound := bench.binding(n), {**bound.payload, "name": "new"}) for n in range(2 * WATCHED)]

    def deny(seen: Seen) -> Answer:
        if seen.method != "PATCH":
            return shelf(seen)
        if int(shelf.held[seen.path.rpartition("/")[2]]["externalId"].removeprefix("wms:")) < WATCHED:
            shelf(seen)
        return 200, {}, b"null"

    platform.script = deny
    bench.carry_out(changes)
    assert Counter(platform.told()) == {"POST": 2 * WATCHED, "PATCH": 2 * WATCHED, "GET": 2 * WATCHED}
    assert bench.dead_letters() == {f"{number}": "rejected" for number in range(WATCHED, 2 * WATCHED)}
    assert (bench.warnings, bench.unsettled()) == ([], {})


def test_what_is_written_once_goes_last(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """What an earlier run left unsent begins with what shows whether the state is a forgetful one."""
    bench.clock = ManualClock()
    platform.script = lambda _seen: (503, {"retry-after": "0"}, b"")
    with pytest.raises(UnavailableError):
        bench.carry_out([*map(invoice, range(10, 15)), *map(operation, range(5))])
    assert set(bench.unsettled().values()) == {"pending"}
    platform.script = shelf
    shelf.put(operation(4).after)
    already = len(platform.seen)
    with pytest.raises(RefusedError):
        bench.resume()
    assert {seen.path.partition("?")[0] for seen in platform.seen[already:]} == {PRODUCTS}
    assert {f"{number}" for number in range(10, 15)} < bench.unsettled().keys()


def test_success_without_an_id_is_no_success(bench: Bench, platform: Platform) -> None:
    """A platform that names no id for any create ends the run; nothing is bound, nothing lost, nothing sent anew."""
    bench.clock = ManualClock()
    platform.script = lambda _seen: (200, {}, b"{}")
    with pytest.raises(UnavailableError, match="success without an id"):
        bench.deliver(30)
    assert (bench.bound(), bench.dead_letters(), len(bench.unsettled())) == (0, {}, 30)
    platform.script = created
    bench.resume()
    assert bench.bound() == 30
    assert len({seen.key for seen in platform.of("POST")}) == 30


def test_what_nobody_foresaw_ends_the_run_and_loses_nothing(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """A defect below a sender is raised; its intent is in doubt, the others are settled or pending."""
    bench.settings = {"in_flight": 2}
    bench.breaks = lambda body: b'"wms:7"' in body
    with pytest.raises(ZeroDivisionError):
        bench.deliver(40)
    unsettled = bench.unsettled()
    assert unsettled["7"] == "in_doubt"
    assert {status for key, status in unsettled.items() if key != "7"} == {"pending"}
    assert bench.bound() + len(unsettled) == len(bench.settled) == 40
    bench.breaks = lambda _body: False
    bench.resume()
    assert (bench.bound(), len(shelf.held), bench.unsettled()) == (40, 40, {})


@pytest.mark.parametrize(("method", "status"), [("send", "in_doubt"), ("headers", "rejected")])
def test_code_of_an_author_that_fails_concerns_its_record(
    bench: Bench, platform: Platform, method: str, status: str
) -> None:
    """What fails in sending may have been sent; what fails before was not."""
    bench.breaks, bench.failure = lambda body: b'"wms:7"' in body, AuthorCodeError(method, "raised KeyError")
    bench.deliver(9)
    assert bench.statuses() == {"delivered": 8, status: 1}
    assert bench.dead_letters() == ({} if status == "in_doubt" else {"7": "target_failed"})


def test_a_refused_credential_leaves_doubt_where_it_was(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """A 401 does not turn what may have happened into what never was sent."""

    def locked(seen: Seen) -> Answer:
        if is_number(seen, 0) and seen.turn == 1:
            shelf(seen)
            return None
        return (401, {}, b"{}") if is_number(seen, 0) or is_number(seen, 1) else shelf(seen)

    platform.script = locked
    with pytest.raises(UnauthorizedError):
        bench.deliver(1)
    assert bench.unsettled() == {"0": "in_doubt"}
    platform.script = lambda _seen: (401, {}, b"{}")
    with pytest.raises(UnauthorizedError):
        bench.resume()
    assert bench.unsettled() == {"0": "in_doubt"}
    with pytest.raises(UnauthorizedError):
        bench.carry_out([operation(1)])
    assert bench.unsettled() == {"0": "in_doubt", "1": "pending"}
    platform.script = shelf
    bench.resume()
    assert (len(shelf.held), bench.bound(), bench.unsettled()) == (2, 2, {})


def test_a_restored_state_looks_before_it_creates(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """What has a name of ours is looked up: bound if it is there, changed if it reads otherwise, else created."""
    bench.state_restored = True
    equal, other = shelf.put(operation(0).after), shelf.put(operation(1).after | {"name": "of another day"})
    bench.deliver(3)
    assert platform.told()[0] == "GET"
    assert Counter(platform.told()) == {"GET": 3, "PATCH": 1, "POST": 1}
    assert is_number(platform.of("POST")[0], 2)
    assert [bench.binding(n).target_id for n in (0, 1)] == [equal, other]
    assert {each["name"] for each in shelf.held.values()} == {"x"}
    assert (bench.bound(), bench.unsettled()) == (3, {})


def test_a_restored_state_sends_no_invoice(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """An invoice cannot be looked up, so all of them are in doubt without a request, also in the next run."""
    bench.state_restored = True
    bench.settings = {"idempotency": {"enabled": False}}
    bench.carry_out([invoice(n) for n in range(3)])
    assert bench.unsettled() == dict.fromkeys("012", "in_doubt")
    assert len(bench.resume()) == 3
    bench.state_restored = False
    assert len(bench.resume()) == 3, "also once everything else was compared"
    assert platform.seen == []
    assert bench.story(0, INVOICES) == [("create", "in_doubt", 1)]
    assert shelf.held == {}


def test_a_restored_state_sends_no_invoice_with_keys_either(bench: Bench, platform: Platform) -> None:
    """Its idempotency key may be older than the restored state knows, so the key is no excuse for the first run."""
    bench.state_restored = True
    bench.carry_out([invoice(0)])
    assert (platform.seen, bench.unsettled()) == ([], {"0": "in_doubt"})


@pytest.mark.parametrize("reads", ["x", "of another day"])
def test_an_interrupted_look_up_is_made_again(bench: Bench, platform: Platform, shelf: Shelf, reads: str) -> None:
    """Creates that a restored state did not get to look up are looked up by the next run, not sent blindly."""
    bench.state_restored = True
    shelf.put(operation(0).after | {"name": reads})
    platform.script = lambda _seen: (401, {}, b"{}")
    with pytest.raises(UnauthorizedError):
        bench.deliver(2)
    platform.script = shelf
    before = len(platform.seen)
    bench.resume()
    assert [seen.method for seen in platform.seen[before:]][:2] == ["GET", "GET"]
    assert (bench.dead_letters(), bench.bound(), len(shelf.held)) == ({}, 2, 2)
    assert {each["name"] for each in shelf.held.values()} == {"x"}


def test_what_was_pending_in_a_backup_is_looked_up(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """An intent that the backup knows as never sent may have been sent since: it is looked up, no invoice is sent."""
    bench.settings = {"in_flight": 1}
    bench.interrupt.set()
    with pytest.raises(StoppedError):
        bench.carry_out([operation(0), operation(1), invoice(2), invoice(3)])
    bench.interrupt.clear()
    assert set(bench.unsettled().values()) == {"pending"}
    shelf.put(operation(1).after)
    before = len(platform.seen)
    bench.state_restored = True
    bench.resume()
    assert not [seen for seen in platform.seen[before:] if "invoices" in seen.path]
    assert not [seen for seen in platform.seen[before:] if seen.method == "POST" and is_number(seen, 1)]
    assert len([each for each in shelf.held.values() if each["externalId"] == "wms:1"]) == 1


def test_a_run_waits_for_what_an_earlier_one_sent(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """The time to settle is counted from the first sending, also over the end of a run."""
    clock = ManualClock()
    bench.settings, bench.clock = VERIFY | {"lookup": {"settle_s": 100.0}}, clock
    asked: list[float] = []

    def away(seen: Seen) -> Answer:
        if seen.method == "GET":
            asked.append(clock.monotonic())
            return shelf(seen)
        bench.interrupt.set()
        return None

    platform.script = away
    with pytest.raises(StoppedError):
        bench.deliver(1)
    assert bench.unsettled() == {"0": "in_doubt"}
    with bench.state.begin() as tx:
        (left,) = tx.intents.unsettled()
    assert left.first_sent_at is not None
    clock.advance(30.0)
    bench.interrupt.clear()
    platform.script = lambda seen: away(seen) if seen.method == "GET" else shelf(seen)
    bench.resume()
    sent = (left.first_sent_at - ManualClock().now()) / timedelta(seconds=1)
    assert 100.0 <= asked[0] - sent < 102.0
    assert (len(shelf.held), bench.bound()) == (1, 1)


def test_keys_are_never_used_for_other_bytes(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """Over creates, new decisions, deletes and new creates each key stands for one method, path and body."""
    bench.deliver(1)
    for turn in range(3):
        binding = bench.binding(0)
        shelf.edit(binding.target_id, color=str(turn))
        bench.carry_out([updating(binding, binding.payload | {"name": f"n{turn % 2}"}, fingerprint=turn)])
        bench.carry_out([deleting(bench.binding(0))])
        bench.carry_out([structs.replace(operation(0), identity=operation(0).identity._replace(fingerprint=turn))])
    bytes_of: dict[str, set[tuple[str, str, bytes]]] = {}
    for seen in platform.of("POST", "PATCH", "DELETE"):
        bytes_of.setdefault(seen.key, set()).add((seen.method, seen.path, seen.body))
    assert all(len(variants) == 1 for variants in bytes_of.values())
    counters = [counter for _, _, counter in bench.story(0, SCOPE)]
    assert all(before < after for before, after in pairwise(counters))
    assert bench.unsettled() == {}


def test_answers_on_their_way_are_kept_when_the_next_chunk_fails(bench: Bench, platform: Platform) -> None:
    """A defect of a mapping ends the run after everything that was sent has been settled."""

    def chunks() -> Any:
        yield Batch([operation(number) for number in range(20)])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bench.run(lambda dispatcher: dispatcher.deliver(chunks()))
    with bench.state.begin() as tx:
        assert {intent.status for intent in tx.intents.unsettled()} <= {"pending"}
    assert bench.bound() == len(platform.seen)
    assert len(bench.settled) == 20


def test_leftovers_that_are_forbidden_stop_nobody_else(bench: Bench, platform: Platform) -> None:
    """Of two streams of an earlier run one is forbidden now: the other goes through, and the run goes on."""
    platform.script = lambda _seen: (401, {}, b"{}")
    with pytest.raises(UnauthorizedError):
        bench.carry_out([invoice(1), operation(2)])
    platform.script = lambda seen: (403, {}, b"{}") if "invoices" in seen.path else created(seen)
    bench.settled.clear()
    assert [error.code for error in bench.resume_to_end()] == ["target_forbidden"]
    assert bench.statuses() == {"pending": 1, "delivered": 1}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [((403, {}, b"{}"), "forbidden"), ((308, {"location": "https://other.example/7"}, b""), "rejected")],
)
def test_one_refused_record_that_came_first_is_a_dead_letter_of_the_next_run(
    bench: Bench, platform: Platform, shelf: Shelf, answer: Answer, reason: str
) -> None:
    """It is decided after the others: they show that the refusal is its own, and it does not stay for ever."""
    bench.settings = {"in_flight": 1}
    platform.script = shelf
    bench.deliver(3)
    platform.script = lambda seen: answer if b"first" in seen.body else shelf(seen)
    changes = [
        updating(bound := bench.binding(n), {**bound.payload, "name": name}) for n, name in ((0, "first"), (1, "b"))
    ]
    with pytest.raises(RemoteError):
        bench.carry_out(changes)
    bench.resume_to_end()
    assert bench.unsettled() == {}
    assert bench.dead_letters() == {"0": reason}


def test_a_refusal_that_may_concern_all_is_named_when_nothing_shows_otherwise(
    bench: Bench, platform: Platform, shelf: Shelf
) -> None:
    """A run that only sends what the last one left says why that cannot be delivered, and leaves it to the next."""
    platform.script = shelf
    bench.deliver(1)
    platform.script = lambda seen: (308, {"location": f"https://new.example{seen.path}"}, b"")
    bound = bench.binding(0)
    with pytest.raises(RemoteError):
        bench.carry_out([updating(bound, {**bound.payload, "name": "new"})])
    assert [error.code for error in bench.resume_to_end()] == ["redirect_refused"]
    assert bench.unsettled() == {"0": "pending"}


def test_a_mended_path_is_kept(bench: Bench, platform: Platform) -> None:
    """What was sent to a wrong path and then to the right one goes to the right one from then on."""
    bench.settings = {"paths": {"product": "/wrong"}}
    platform.script = lambda seen: (404, {}, b"{}") if "wrong" in seen.path else (500, {}, b"")
    with pytest.raises(RemoteError):
        bench.deliver(1)
    bench.settings = {}
    with pytest.raises(UnavailableError):
        bench.resume()
    platform.script = created
    bench.resume()
    assert bench.bound() == 1


def test_a_record_that_is_always_answered_429_keeps_no_others_from_delivery(
    bench: Bench, platform: Platform, shelf: Shelf
) -> None:
    """Of a limit of its own, such as of an operation a day: it is left to the next run, which sends what is new."""
    bench.settings, bench.clock = {"in_flight": 1}, ManualClock()
    platform.script = lambda seen: (429, {"retry-after": "60"}, b"{}") if is_number(seen, 0) else shelf(seen)
    bench.deliver(3)
    assert (bench.bound(), bench.unsettled()) == (2, {"0": "pending"})
    with bench.state.begin() as tx:
        left = tx.intents.unsettled()

    def night(dispatcher: Dispatcher) -> None:
        list(dispatcher.resume_unsettled_intents(left))
        assert dispatcher.deliver(iter([Batch([operation(3)])]))
        assert dispatcher.deliver_held_back_operations()

    bench.run(night)
    assert (bench.bound(), bench.unsettled()) == (3, {"0": "pending"})
    assert "is postponed: answered only 429" in bench.warnings[-1]


def test_nothing_but_429_ends_some_time(bench: Bench, platform: Platform) -> None:
    """Waiting for the allowance is no failure, and yet it has an end."""
    bench.clock = ManualClock()
    platform.script = lambda _seen: (429, {"retry-after": "900"}, b"{}")
    with pytest.raises(UnavailableError, match="only 429"):
        bench.deliver(1)
    assert bench.unsettled() == {"0": "pending"}
