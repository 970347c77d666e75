"""What an answer means for a record: decided again, taken over, looked up, left in doubt, or the end of the run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.integration.delivery.harness import (
    PROBE,
    PRODUCTS,
    SCOPE,
    Answer,
    Batch,
    Bench,
    Platform,
    Seen,
    Shelf,
    created,
    deleting,
    invoice,
    operation,
    updating,
)

from crossdock.delivery.turn_writer import AFTER_RESTORE
from crossdock.errors import RefusedError, RemoteError, StoppedError, UnauthorizedError, UnavailableError
from crossdock.state import Scope, StateUrl, parse_url
from crossdock.testing.manual_clock import ManualClock

STREAM = "wms.products"
INVOICES = Scope("platform", "invoice", "wms")
VERIFY = {"idempotency": {"enabled": False}}


@pytest.fixture
def state_url(tmp_path: Path) -> StateUrl:
    """One database is enough here: the other tests show that both keep the same."""
    return parse_url("sqlite:///state.db", tmp_path)


@pytest.fixture
def shelf(platform: Platform) -> Shelf:
    platform.script = shelf = Shelf()
    return shelf


def is_number(seen: Seen, number: int) -> bool:
    return b'"wms:%d"' % number in seen.body


# ---- a version that somebody else has changed


def test_another_version_is_looked_at_and_decided_again(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """A 412 leads to a look at the record and a new intent, under a new key, of only what differs still."""
    bench.deliver(1)
    (name,) = shelf.held
    binding = bench.binding(0)
    shelf.edit(name, color="red", sku="S0-new")
    bench.carry_out([updating(binding, binding.payload | {"sku": "S0-new", "name": "y"})])
    _, refused, look, update = platform.seen
    assert (refused.method, refused.if_match) == ("PATCH", f'"{name}-0"')
    assert refused.body == b'{"name":"y","sku":"S0-new"}'
    assert (look.method, look.path, look.key) == ("GET", f"{PRODUCTS}/{name}", "")
    assert (update.method, update.if_match, update.body) == ("PATCH", f'"{name}-1"', b'{"name":"y"}')
    assert len({seen.key for seen in (platform.seen[0], refused, update)}) == 3
    assert (shelf.held[name]["color"], shelf.held[name]["name"]) == ("red", "y")
    assert bench.story(0) == [("create", "delivered", 1), ("update", "replaced", 2), ("update", "delivered", 3)]
    now = bench.binding(0)
    assert (now.payload["name"], now.counter, now.etag) == ("y", 3, shelf.tag(name))
    assert "color" not in now.payload
    assert bench.statuses() == {"delivered": 2}


def test_a_strange_member_inside_a_member_survives(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """What others added inside an object that we write in part is not taken away by the new decision."""
    bench.deliver(1)
    (name,) = shelf.held
    binding = bench.binding(0)
    shelf.edit(name, size={"height": 3, "width": 4})
    bench.carry_out([updating(binding, binding.payload | {"size": {"height": 5}})])
    assert platform.seen[-1].body == b'{"size":{"height":5}}'
    assert shelf.held[name]["size"] == {"height": 5, "width": 4}


def test_a_member_that_we_gave_up_is_taken_away(bench: Bench, shelf: Shelf) -> None:
    """A member that our record has lost is taken away by the new decision too, also inside an object."""
    shelf_before = {"size": {"height": 3, "width": 4}, "color": "red"}
    bench.deliver(1)
    (name,) = shelf.held
    binding = bench.binding(0)
    bench.carry_out([updating(binding, binding.payload | shelf_before)])
    binding = bench.binding(0)
    shelf.edit(name, note="by hand")
    after = {member: value for member, value in binding.payload.items() if member != "color"}
    bench.carry_out([updating(binding, after | {"size": {"height": 3}})])
    assert shelf.held[name]["size"] == {"height": 3}
    assert "color" not in shelf.held[name]
    assert shelf.held[name]["note"] == "by hand"


def test_what_is_there_already_is_not_written(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """A 412 for a change that the platform holds already is settled without another write."""
    bench.deliver(1)
    (name,) = shelf.held
    binding = bench.binding(0)
    shelf.edit(name, name="y")
    bench.carry_out([updating(binding, binding.payload | {"name": "y"})])
    assert platform.told() == ["POST", "PATCH", "GET"]
    assert bench.settled[-1].untouched
    assert bench.story(0)[-1] == ("update", "delivered", 2)
    now = bench.binding(0)
    assert (now.payload["name"], now.etag, now.fingerprint) == ("y", shelf.tag(name), 77)


def test_a_record_that_others_change_again_and_again_is_a_conflict(
    bench: Bench, platform: Platform, shelf: Shelf
) -> None:
    """After as many new decisions as attempts are allowed it is a dead letter, and each had a key of its own."""
    bench.deliver(2)
    names = {each["externalId"]: name for name, each in shelf.held.items()}

    def busy(seen: Seen) -> Answer:
        if seen.method == "PATCH" and names["wms:0"] in seen.path:
            shelf.edit(names["wms:0"], color=str(len(platform.seen)))
        return shelf(seen)

    platform.script = busy
    bench.carry_out([updating(b, b.payload | {"name": "y"}) for b in (bench.binding(0), bench.binding(1))])
    sent = [seen for seen in platform.of("PATCH") if names["wms:0"] in seen.path]
    assert len(sent) == len({seen.key for seen in sent}) == 1 + 3
    assert bench.dead_letters() == {"0": "conflict"}
    assert bench.unsettled() == {}
    assert [status for _, status, _ in bench.story(0)] == ["delivered", *["replaced"] * 3, "rejected"]
    assert (shelf.held[names["wms:0"]]["name"], shelf.held[names["wms:1"]]["name"]) == ("x", "y")


@pytest.mark.parametrize("status", [404, 410])
def test_an_update_of_what_is_gone_is_a_dead_letter(
    bench: Bench, platform: Platform, shelf: Shelf, status: int
) -> None:
    """A record that the platform has no longer when it is looked at is refused as missing, and not made anew."""
    bench.clock = ManualClock()
    bench.deliver(2)
    binding = bench.binding(0)
    name = binding.platform_id

    def gone(seen: Seen) -> Answer:
        if name not in seen.path:
            return shelf(seen)
        return (412, {}, b"{}") if seen.method == "PATCH" else (status, {}, b"{}")

    platform.script = gone
    bench.carry_out([updating(binding, binding.payload | {"name": "y"})])
    assert platform.told() == ["POST", "POST", "PATCH", "GET"]
    assert bench.dead_letters() == {"0": "missing"}
    assert bench.unsettled() == {}


# ---- deletes


@pytest.mark.parametrize("gone_before", [False, True])
def test_a_delete(bench: Bench, platform: Platform, shelf: Shelf, *, gone_before: bool) -> None:
    """A delete is delivered, also of what is gone; a record that comes back is created under a key never used."""
    bench.deliver(1)
    (name,) = shelf.held
    if gone_before:
        shelf.held.clear()
    bench.carry_out([deleting(bench.binding(0))])
    assert (shelf.held, bench.bound()) == ({}, 0)
    assert platform.seen[-1].method == "DELETE"
    assert platform.seen[-1].path == f"{PRODUCTS}/{name}"
    bench.deliver(1)
    assert bench.story(0) == [("create", "delivered", 1), ("delete", "delivered", 2), ("create", "delivered", 3)]
    assert len({seen.key for seen in platform.seen}) == 3
    assert (bench.bound(), bench.binding(0).counter) == (1, 3)
    assert bench.dead_letters() == {}


def test_a_delete_of_what_others_changed_ends(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """A delete that meets another version looks at it and is sent under a new key; it does not go round for ever."""
    bench.deliver(1)
    (name,) = shelf.held
    shelf.edit(name, color="red")
    stopper(bench, platform, 20)
    bench.carry_out([deleting(bench.binding(0))])
    assert platform.told() == ["POST", "DELETE", "GET", "DELETE"]
    first, second = platform.of("DELETE")
    assert first.key != second.key
    assert second.if_match == f'"{name}-1"'
    assert (shelf.held, bench.bound()) == ({}, 0)


def stopper(bench: Bench, platform: Platform, number: int) -> None:
    """Interrupt the run at the *number*-th request, so that a test of what could last for ever ends."""
    script = platform.script

    def count(seen: Seen) -> Answer:
        if len(platform.seen) >= number:
            bench.interrupt.set()
        return script(seen)

    platform.script = count


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
        if here.platform_id in seen.path:
            shelf(seen)  # it happens, and only the answer is lost
        return None

    platform.script = lose
    bench.carry_out([deleting(here), deleting(there)])
    assert Counter(platform.told()) == {"POST": 2, "DELETE": 3, "GET": 2}
    assert (shelf.held, bench.bound(), bench.unsettled()) == ({}, 0, {})


# ---- records that are there already


def test_an_equal_record_is_taken_over_without_a_write(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """Where a stream adopts, a 409 leads to a look-up, and a record that is as ours would be is bound as it is."""
    bench.adopting = frozenset({STREAM})
    name = shelf.put(operation(0).after | {"color": "red"})
    bench.deliver(1)
    assert platform.told() == ["POST", "GET"]
    assert "externalId=wms%3A0" in platform.seen[1].path
    assert [item.untouched for item in bench.settled] == [True]
    assert bench.binding(0).platform_id == name
    assert bench.binding(0).etag is None, "the tag of a list is no record's"


def test_a_record_that_differs_is_taken_over_and_changed(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """A record that reads otherwise is bound and sent only what differs; what we do not know stays."""
    bench.adopting = frozenset({STREAM})
    name = shelf.put(operation(0).after | {"color": "red", "name": "old"})
    bench.deliver(1)
    assert platform.told() == ["POST", "GET", "PATCH"]
    create, _, update = platform.seen
    assert (update.path, update.body) == (f"{PRODUCTS}/{name}", b'{"name":"x"}')
    assert update.key != create.key
    assert (shelf.held[name]["name"], shelf.held[name]["color"]) == ("x", "red")
    assert bench.story(0) == [("create", "replaced", 1), ("update", "delivered", 2)]
    assert (bench.binding(0).platform_id, bench.binding(0).counter) == (name, 2)


def test_a_conflict_with_nothing_to_be_found_is_a_dead_letter(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """A 409 for another reason than our name is told in the platform's words."""
    bench.adopting = frozenset({STREAM})
    taken: Answer = (409, {}, b'{"detail":"this sku is taken"}')
    platform.script = lambda seen: taken if seen.method == "POST" and is_number(seen, 0) else shelf(seen)
    bench.deliver(2)
    assert bench.dead_letters() == {"0": "conflict"}
    with bench.state.begin() as tx:
        assert tx.dead_letters.listed(limit=1)[0]["message"] == "this sku is taken"
    assert bench.bound() == 1


def test_a_new_record_that_the_platform_has_under_our_name_stops_the_run(
    bench: Bench, platform: Platform, shelf: Shelf
) -> None:
    """The state has forgotten it, so it may have forgotten what cannot be looked up: nothing of that is sent."""
    shelf.put(operation(0).after)
    with pytest.raises(RefusedError, match="the state has no record of sending it") as told:
        bench.deliver(1)
    assert "crossdock state restored" in (told.value.hint or "")
    assert told.value.exit_code == 4
    assert platform.told() == ["POST", "GET"]
    assert (bench.dead_letters(), bench.bound(), len(shelf.held)) == ({}, 0, 1)
    assert set(bench.unsettled().values()) <= {"pending"}


@pytest.mark.parametrize("how", ["adopt", "restored"])
def test_a_person_says_what_becomes_of_records_that_are_there(bench: Bench, shelf: Shelf, how: str) -> None:
    """Where its stream takes records over, or the state was declared restored, the run binds the record and goes on."""
    shelf.put(operation(0).after)
    bench.adopting = frozenset({STREAM}) if how == "adopt" else frozenset()
    bench.state_restored = how == "restored"
    bench.deliver(3)
    assert (bench.bound(), len(shelf.held)) == (3, 3)


def test_what_was_tried_once_is_no_sign_of_a_forgetful_state(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """A creation that was carried out but answered as refused is found and updated when its corrected record comes."""

    def script(seen: Seen) -> Answer:
        answer = shelf(seen)
        return (422, {}, b'{"errors":[{"pointer":"#/name"}]}') if seen.method == "POST" and not refused else answer

    refused: list[int] = []
    platform.script = script
    bench.deliver(1)
    assert bench.dead_letters() == {"0": "rejected"}
    refused.append(0)
    payload = operation(0).after | {"name": "y"}
    bench.carry_out([replace(operation(0), after=payload, changes=payload)])
    (held,) = shelf.held.values()
    assert (held["name"], bench.bound(), bench.dead_letters()) == ("y", 1, {})


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


# ---- records that fail, while others get through or not


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

    def night(dispatcher: Any) -> None:
        dispatcher.resume(unsettled)
        dispatcher.deliver(iter([]))

    bench.run(night)
    assert bench.statuses() == {"in_doubt": 1}


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
    """A platform that fails for all does not put one record after the other in doubt until none is left."""
    bench.settings = {"idempotency": {"enabled": False}, "after_ambiguous": "park", "in_flight": 4}
    bench.clock = ManualClock()
    platform.script = lambda _seen: (500, {}, b"")
    with pytest.raises(UnavailableError):
        bench.deliver(200)
    assert len(platform.seen) < 30
    assert Counter(bench.unsettled().values())["pending"] > 170


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


# ---- a restored state


def test_a_restored_state_looks_before_it_creates(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """What has a name of ours is looked up: bound if it is there, changed if it reads otherwise, else created."""
    bench.state_restored = True
    equal, other = shelf.put(operation(0).after), shelf.put(operation(1).after | {"name": "of another day"})
    bench.deliver(3)
    assert platform.told()[:3] == ["GET"] * 3
    assert Counter(platform.told()) == {"GET": 3, "PATCH": 1, "POST": 1}
    assert is_number(platform.of("POST")[0], 2)
    assert [bench.binding(n).platform_id for n in (0, 1)] == [equal, other]
    assert {each["name"] for each in shelf.held.values()} == {"x"}
    assert (bench.bound(), bench.unsettled()) == (3, {})


def test_a_restored_state_sends_no_invoice(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """An invoice cannot be looked up, so all of them are in doubt without a request, also in the next run."""
    bench.state_restored = True
    bench.settings = {"idempotency": {"enabled": False}}
    bench.carry_out([invoice(n) for n in range(3)])
    assert bench.unsettled() == dict.fromkeys("012", "in_doubt")
    assert len(bench.resume()) == 3
    assert platform.seen == []
    assert bench.story(0, INVOICES) == [("create", "in_doubt", AFTER_RESTORE)]
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


# ---- verifying


def test_what_may_have_happened_is_looked_up_when_it_has_settled(
    bench: Bench, platform: Platform, shelf: Shelf
) -> None:
    """Without keys a lost answer is followed by a look-up after the time to settle; what is found is not sent again."""
    clock = ManualClock()
    bench.settings, bench.clock = VERIFY | {"lookup": {"settle_s": 40.0}}, clock
    times: list[tuple[str, float]] = []

    def lose(seen: Seen) -> Answer:
        if PROBE not in seen.path:
            times.append((seen.method, clock.monotonic()))
        answer = shelf(seen)
        return None if seen.method == "POST" else answer

    platform.script = lose
    bench.deliver(1)
    (first, sent), (second, asked) = times
    assert (first, second) == ("POST", "GET")
    assert 40.0 <= asked - sent < 45.0
    assert (len(shelf.held), bench.bound(), bench.statuses()) == (1, 1, {"delivered": 1})
    assert not bench.settled[0].untouched
    assert bench.binding(0).platform_id in shelf.held


def test_what_did_not_happen_is_sent_once_more(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """What a look-up does not find is sent again, once, with the same key and bytes."""
    bench.settings, bench.clock = {"after_ambiguous": "verify"}, ManualClock()
    platform.script = lambda seen: (504, {}, b"") if seen.method == "POST" and seen.turn == 1 else shelf(seen)
    bench.deliver(1)
    assert platform.told() == ["POST", "GET", "POST"]
    first, second = platform.of("POST")
    assert (first.key, first.body) == (second.key, second.body)
    assert (len(shelf.held), bench.bound()) == (1, 1)


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


def test_an_update_in_doubt_is_looked_at(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """An update whose answer was lost is compared with what the platform holds, and sent only if it is not there."""
    bench.settings, bench.clock = VERIFY, ManualClock()
    bench.deliver(2)
    done, undone = bench.binding(0), bench.binding(1)
    lost: set[str] = set()

    def lose(seen: Seen) -> Answer:
        if seen.method != "PATCH" or seen.path in lost:
            return shelf(seen)
        lost.add(seen.path)
        if done.platform_id in seen.path:
            shelf(seen)
        return None

    platform.script = lose
    bench.carry_out([updating(each, each.payload | {"name": "y"}) for each in (done, undone)])
    assert Counter(seen.path for seen in platform.of("PATCH")) == {
        f"{PRODUCTS}/{done.platform_id}": 1,
        f"{PRODUCTS}/{undone.platform_id}": 2,
    }
    assert {each["name"] for each in shelf.held.values()} == {"y"}
    assert bench.statuses() == {"delivered": 4}


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


def test_keys_are_never_used_for_other_bytes(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """Over creates, new decisions, deletes and new creates each key stands for one method, path and body."""
    bench.deliver(1)
    for turn in range(3):
        binding = bench.binding(0)
        shelf.edit(binding.platform_id, color=str(turn))
        bench.carry_out([updating(binding, binding.payload | {"name": f"n{turn % 2}"}, fingerprint=turn)])
        bench.carry_out([deleting(bench.binding(0))])
        bench.carry_out([replace(operation(0), identity=operation(0).identity._replace(fingerprint=turn))])
    bytes_of: dict[str, set[tuple[str, str, bytes]]] = {}
    for seen in platform.of("POST", "PATCH", "DELETE"):
        bytes_of.setdefault(seen.key, set()).add((seen.method, seen.path, seen.body))
    assert all(len(variants) == 1 for variants in bytes_of.values())
    counters = [counter for _, _, counter in bench.story(0, SCOPE)]
    assert all(before < after for before, after in pairwise(counters))
    assert bench.unsettled() == {}


# ---- found by a review


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
    assert bench.resume() == []
    assert bench.statuses() == {"pending": 1, "delivered": 1}


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


def test_nothing_but_429_ends_some_time(bench: Bench, platform: Platform) -> None:
    """Waiting for the allowance is no failure, and yet it has an end."""
    bench.clock = ManualClock()
    platform.script = lambda _seen: (429, {"retry-after": "900"}, b"{}")
    with pytest.raises(UnavailableError, match="only 429"):
        bench.deliver(1)
    assert bench.unsettled() == {"0": "pending"}
