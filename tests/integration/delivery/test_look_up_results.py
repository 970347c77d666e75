"""Records that the platform already has, or no longer has: conflicts, adoption and look-ups."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.integration.delivery.harness import (
    PROBE,
    PRODUCTS,
    VERIFY,
    Answer,
    Batch,
    Bench,
    Platform,
    Seen,
    Shelf,
    created,
    deleting,
    is_number,
    operation,
    updating,
)

from crossdock.errors import RefusedError, UnavailableError
from crossdock.state import StateUrl, Unchanged, parse_database_url
from crossdock.targets import EndpointProfile
from crossdock.testing.manual_clock import ManualClock
from crossdock.writing.delivery.dispatcher import Dispatcher
from crossdock.writing.targets import platform_target

STREAM = "wms.products"


@pytest.fixture
def state_url(tmp_path: Path) -> StateUrl:
    """One database is enough here: the other tests show that both keep the same."""
    return parse_database_url("sqlite:///state.db", tmp_path)


def stopper(bench: Bench, platform: Platform, number: int) -> None:
    """Interrupt the run at the *number*-th request, so that a test of what could last for ever ends."""
    script = platform.script

    def count(seen: Seen) -> Answer:
        if len(platform.seen) >= number:
            bench.interrupt.set()
        return script(seen)

    platform.script = count


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


def test_each_version_that_others_change_once_is_delivered(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """A run of `listen` delivers many versions of a record, and a rule of the platform changes it after each."""
    bench.deliver(1)
    (name,) = shelf.held

    def deliver_versions(dispatcher: Dispatcher) -> None:
        for number in range(6):
            bound = bench.binding(0)
            shelf.edit(name, checked=number)
            dispatcher.deliver(iter([Batch([updating(bound, bound.payload | {"name": f"version {number}"})])]))

    bench.run(deliver_versions)
    assert (bench.dead_letters(), shelf.held[name]["name"], shelf.held[name]["checked"]) == ({}, "version 5", 5)


class CompressedShelf(Shelf):
    """A shelf behind a server that compresses answers, and marks their entity tags; the shelf knows its own alone."""

    def __init__(self, marked: str) -> None:
        super().__init__()
        self._marked = marked

    def __call__(self, seen: Seen) -> Answer:
        answer = super().__call__(seen)
        assert answer is not None
        status, headers, content = answer
        tag = headers.get("etag")
        return status, {} if tag is None else {"etag": self._marked.format(tag.strip('"'))}, content


@pytest.mark.parametrize("only_unchanged", [None, "record", "members"])
@pytest.mark.parametrize("marked", ['W/"{}"', '"{}-gzip"', '"{}--gzip"', 'W/"{}--gzip"'])
def test_a_tag_that_a_server_on_the_way_has_marked_is_no_change_of_others(
    bench: Bench, platform: Platform, marked: str, only_unchanged: Unchanged | None
) -> None:
    """nginx, Apache and Jetty mark the tags of compressed answers, which the target then takes for other versions."""
    platform.script = shelf = CompressedShelf(marked)
    bench.deliver(2)
    bench.only_unchanged = only_unchanged
    edited, left = (bench.binding(number) for number in range(2))
    if only_unchanged is not None:
        shelf.edit(edited.target_id, name="of others")
    bench.carry_out([updating(each, each.payload | {"name": "y"}) for each in (edited, left)])
    assert shelf.held[left.target_id]["name"] == "y"
    assert bench.dead_letters() == ({} if only_unchanged is None else {"0": "conflict"})
    assert shelf.held[edited.target_id]["name"] == ("y" if only_unchanged is None else "of others")
    assert platform.seen[-1].if_match in {None, f'"{left.target_id}-0"', f'"{edited.target_id}-0"'}


class MillisecondShelf(Shelf):
    """A shelf that writes instants with milliseconds, as JavaScript does, whatever form they came in."""

    def __call__(self, seen: Seen) -> Answer:
        answer = super().__call__(seen)
        assert answer is not None
        return answer[0], answer[1], answer[2].replace(b':00Z"', b':00.000Z"')


@pytest.mark.parametrize("way", ["taken over", "rejecting"])
def test_an_instant_in_the_form_of_the_target_is_no_old_value_and_no_change(
    bench: Bench, platform: Platform, way: str
) -> None:
    """A record is taken over, and a change of it is delivered; a dead letter of either would be one in each run."""
    platform.script = shelf = MillisecondShelf()
    at = {"at": "2026-11-20T08:15:00Z"}
    if way == "taken over":
        bench.adopting = frozenset({"wms.products"})
        name = shelf.put({"externalId": "wms:0", "sku": "by hand", **at})
        wanted = operation(0).after | at
        bench.carry_out([structs.replace(operation(0), after=wanted, changes=wanted)])
    else:
        bench.rejecting = frozenset({"wms.products"})
        wanted = operation(0).after | at
        bench.carry_out([structs.replace(operation(0), after=wanted, changes=wanted)])
        (name,) = shelf.held
        bound = bench.binding(0)
        shelf.edit(name, color="red")
        bench.carry_out([updating(bound, bound.payload | {"at": "2026-11-21T08:15:00Z"})])
    assert (bench.dead_letters(), bench.bound(), bench.unsettled()) == ({}, 1, {})
    assert shelf.held[name]["at"] == ("2026-11-20T08:15:00Z" if way == "taken over" else "2026-11-21T08:15:00Z")


@pytest.mark.parametrize("status", [404, 410])
def test_an_update_of_what_is_gone_is_a_dead_letter(
    bench: Bench, platform: Platform, shelf: Shelf, status: int
) -> None:
    """A record that the platform has no longer when it is looked at is refused as missing, and not made anew."""
    bench.clock = ManualClock()
    bench.deliver(2)
    binding = bench.binding(0)
    name = binding.target_id

    def gone(seen: Seen) -> Answer:
        if name not in seen.path:
            return shelf(seen)
        return (412, {}, b"{}") if seen.method == "PATCH" else (status, {}, b"{}")

    platform.script = gone
    bench.carry_out([updating(binding, binding.payload | {"name": "y"})])
    assert platform.told() == ["POST", "POST", "PATCH", "GET", "GET"], "and a list, as the look-up says 404"
    assert bench.dead_letters() == {"0": "missing"}
    assert bench.unsettled() == {}


@pytest.mark.parametrize("gone_before", [False, True])
def test_a_delete(bench: Bench, platform: Platform, shelf: Shelf, *, gone_before: bool) -> None:
    """A delete is delivered, also of what is gone; a record that comes back is created under a key never used."""
    bench.deliver(1)
    (name,) = shelf.held
    if gone_before:
        shelf.held.clear()
    bench.carry_out([deleting(bench.binding(0))])
    assert (shelf.held, bench.bound()) == ({}, 0)
    (sent,) = platform.of("DELETE")
    assert sent.path == f"{PRODUCTS}/{name}"
    assert platform.told() == ["POST", "DELETE", *["GET", "GET"] * gone_before]
    bench.deliver(1)
    assert bench.story(0) == [("create", "delivered", 1), ("delete", "delivered", 2), ("create", "delivered", 3)]
    assert len({seen.key for seen in platform.of("POST", "DELETE")}) == 3
    assert (bench.bound(), bench.binding(0).counter) == (1, 3)
    assert bench.dead_letters() == {}


@pytest.mark.parametrize("status", [404, 410])
def test_a_delete_that_never_arrived_is_a_dead_letter(
    bench: Bench, platform: Platform, shelf: Shelf, status: int
) -> None:
    """A 404 of a wrong path or a gateway deletes nothing: the look-up finds the record, and nothing is sent again."""
    bench.deliver(1)
    platform.script = lambda seen: (status, {}, b"<html>") if seen.method == "DELETE" else shelf(seen)
    bench.carry_out([deleting(bench.binding(0))])
    assert platform.told() == ["POST", "DELETE", "GET"]
    assert (len(shelf.held), bench.bound(), bench.unsettled()) == (1, 1, {})
    assert bench.dead_letters() == {"0": "rejected"}
    path = f"{PRODUCTS}/{bench.binding(0).target_id}"
    assert (
        f"HTTP {status}, in answer to DELETE {path}, although the target still has" in bench.settled[-1].outcome.message
    )


def test_a_gateway_that_answers_404_to_everything_proves_no_delete(
    bench: Bench, platform: Platform, shelf: Shelf
) -> None:
    """Then a look-up by the id shows nothing: the delete is left open, and carried out once the target answers."""
    bench.clock = ManualClock()
    bench.deliver(1)
    platform.script = lambda _seen: (404, {}, b"404 page not found")
    with pytest.raises(UnavailableError, match="HTTP 404 to GET /api/v1/catalog/products, too"):
        bench.carry_out([deleting(bench.binding(0))])
    assert (bench.bound(), len(bench.unsettled())) == (1, 1)
    platform.script = shelf
    bench.resume()
    assert (shelf.held, bench.bound(), bench.unsettled()) == ({}, 0, {})


def test_a_gateway_that_answers_404_to_everything_makes_no_record_missing(
    bench: Bench, platform: Platform, shelf: Shelf
) -> None:
    """Such as one whose routes are loaded anew: the updates are left open, and carried out once the target answers."""
    bench.clock = ManualClock()
    bench.deliver(3)
    changes = [updating(bound := bench.binding(number), {**bound.payload, "name": "new"}) for number in range(3)]
    platform.script = lambda _seen: (404, {}, b"404 page not found")
    with pytest.raises(UnavailableError, match="HTTP 404 to GET /api/v1/catalog/products, too"):
        bench.carry_out(changes)
    assert (bench.dead_letters(), len(bench.unsettled())) == ({}, 3)
    platform.script = shelf
    bench.resume()
    assert ({each["name"] for each in shelf.held.values()}, bench.unsettled()) == ({"new"}, {})


@pytest.mark.parametrize("status", [404, 410])
def test_a_change_that_never_arrived_does_not_make_its_record_missing(
    bench: Bench, platform: Platform, shelf: Shelf, status: int
) -> None:
    """The target still has it, so the request may be wrong: the dead letter says which one."""
    bench.deliver(1)
    bound = bench.binding(0)
    platform.script = lambda seen: (status, {}, b"<html>") if seen.method == "PATCH" else shelf(seen)
    bench.carry_out([updating(bound, bound.payload | {"name": "y"})])
    assert bench.dead_letters() == {"0": "rejected"}
    path = f"{PRODUCTS}/{bound.target_id}"
    assert (
        f"HTTP {status}, in answer to PATCH {path}, although the target still has" in bench.settled[-1].outcome.message
    )


def test_a_404_to_a_delete_is_in_doubt_where_nothing_can_be_read(
    bench: Bench, platform: Platform, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person decides, since the target cannot be asked whether the record is gone."""
    bench.deliver(1)
    monkeypatch.setattr(platform_target, "EndpointProfile", partial(EndpointProfile, reads=False))
    platform.script = lambda seen: (404, {}, b"{}") if seen.method == "DELETE" else shelf(seen)
    bench.carry_out([deleting(bench.binding(0))])
    assert platform.told() == ["POST", "DELETE"]
    assert (bench.bound(), bench.unsettled()) == (1, {"0": "in_doubt"})


REFUSED = b'{"success": false, "id": "prd_9", "message": "unknown SKU"}'


@pytest.mark.parametrize("settings", [{}, VERIFY], ids=["keys", "no keys"])
def test_a_create_that_is_refused_beside_an_id_is_a_dead_letter(
    bench: Bench, platform: Platform, shelf: Shelf, settings: dict[str, Any]
) -> None:
    """The look-up by name shows that nothing was made; the same request would only be answered alike."""
    bench.settings, bench.clock = settings, ManualClock()
    platform.script = lambda seen: (200, {}, REFUSED) if seen.method == "POST" else shelf(seen)
    bench.deliver(1)
    assert platform.told() == ["POST", "GET"]
    assert (bench.bound(), bench.dead_letters(), bench.unsettled()) == (0, {"0": "rejected"}, {})
    assert bench.settled[-1].outcome.message == "answered success with an error: unknown SKU"


def test_a_create_that_is_made_in_spite_of_an_error_is_delivered(
    bench: Bench, platform: Platform, shelf: Shelf
) -> None:
    """Such as one that is not yet indexed: the look-up shows the record, which is bound and not made again."""
    bench.clock = ManualClock()

    def reports(seen: Seen) -> Answer:
        status, headers, body = shelf(seen) or (0, {}, b"")
        return (
            status,
            headers,
            body.replace(b"{", b'{"errors": ["not indexed yet"], ', 1 if seen.method == "POST" else 0),
        )

    platform.script = reports
    bench.deliver(1)
    assert platform.told() == ["POST", "GET"]
    assert (bench.bound(), len(shelf.held), bench.unsettled(), bench.dead_letters()) == (1, 1, {}, {})


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_change_that_reports_an_error_is_looked_up(
    bench: Bench, platform: Platform, shelf: Shelf, method: str, *, is_done: bool
) -> None:
    """It is delivered if the target shows it, and otherwise a dead letter; it is not sent again in either case."""
    bench.clock = ManualClock()
    bench.deliver(1)
    binding = bench.binding(0)

    def refuses(seen: Seen) -> Answer:
        if seen.method != method:
            return shelf(seen)
        if is_done:
            shelf(seen)
        return 200, {}, b'{"status": "error", "message": "locked"}'

    platform.script = refuses
    bench.carry_out([deleting(binding) if method == "DELETE" else updating(binding, binding.payload | {"name": "y"})])
    assert len(platform.of(method)) == 1
    assert (bench.dead_letters(), bench.unsettled()) == ({} if is_done else {"0": "rejected"}, {})


CACHED = ({"age": "600"}, {"x-cache": "HIT"})
NO_LIST = (b'{"success": false, "data": []}', b'{"data": [], "total": 1}', b'{"data": [], "next_cursor": "abc"}')


@pytest.mark.parametrize(
    ("headers", "body"),
    [*[(each, b'{"data": []}') for each in CACHED], *[({}, each) for each in NO_LIST]],
    ids=str,
)
def test_a_look_up_that_fails_in_a_200_makes_nothing_twice(
    bench: Bench, platform: Platform, shelf: Shelf, headers: dict[str, str], body: bytes
) -> None:
    """The answer to a create is lost, and two look-ups say nothing: the third one finds the product."""
    bench.settings, bench.clock = VERIFY | {"retry": {"attempts": 5, "base_s": 0.001}}, ManualClock()
    fails = [True, True]

    def script(seen: Seen) -> Answer:
        if seen.method == "GET" and PROBE not in seen.path and fails:
            fails.pop()
            return 200, headers, body
        answer = shelf(seen)
        return None if seen.method == "POST" else answer

    platform.script = script
    bench.deliver(1)
    assert (platform.told(), fails) == (["POST", "GET", "GET", "GET"], [])
    assert (bench.bound(), len(shelf.held), bench.unsettled()) == (1, 1, {})


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


def test_an_equal_record_is_taken_over_without_a_write(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """Where a stream adopts, a 409 leads to a look-up, and a record that is as ours would be is bound as it is."""
    bench.adopting = frozenset({STREAM})
    name = shelf.put(operation(0).after | {"color": "red"})
    bench.deliver(1)
    assert platform.told() == ["POST", "GET"]
    assert "externalId=wms%3A0" in platform.seen[1].path
    assert [item.untouched for item in bench.settled] == [True]
    assert bench.binding(0).target_id == name
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
    assert (bench.binding(0).target_id, bench.binding(0).counter) == (name, 2)


def test_a_conflict_with_nothing_to_be_found_is_a_dead_letter(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """A 409 for another reason than the external id is told in the platform's words."""
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


@pytest.mark.parametrize("member", ["externalId", "sku"])
def test_a_conflict_that_cannot_be_looked_up_is_decided_by_what_it_names(
    bench: Bench, platform: Platform, member: str
) -> None:
    """About the external id it shows a forgetful state, which sends nothing more; about another member, bad data."""
    bench.settings = {"lookup": {"enabled": False}}
    problem = b'{"errors":[{"pointer":"/%s","detail":"is taken"}]}' % member.encode()
    platform.script = lambda seen: (409, {}, problem) if is_number(seen, 0) else created(seen)
    if member == "sku":
        bench.deliver(2)
        assert (bench.dead_letters(), bench.bound()) == ({"0": "conflict"}, 1)
        return
    with pytest.raises(RefusedError, match="the state has no record of sending it"):
        bench.deliver(1)
    assert (bench.dead_letters(), bench.unsettled()) == ({}, {"0": "pending"})


def test_a_record_of_others_under_our_name_is_a_dead_letter(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """It holds something else, so it is no sign of a forgetful state: it stays, and the others are delivered."""
    body = {"externalId": "wms:0", "sku": "other", "name": "of others"}
    name = shelf.put(body)
    bench.deliver(3)
    assert (bench.dead_letters(), bench.bound(), bench.unsettled()) == ({"0": "conflict"}, 2, {})
    assert {member: shelf.held[name][member] for member in body} == body
    with bench.state.begin() as tx:
        message = tx.dead_letters.listed(limit=1)[0]["message"]
    assert f"has another record under this name, {name}, which was not sent from this state" in message
    assert [seen.method for seen in platform.seen if seen.method == "PATCH"] == []


def test_a_record_of_others_stays_when_ours_is_sent_again(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """A replay, or the next version from the source, meets the same record of others: it is a dead letter again."""
    body = {"externalId": "wms:0", "sku": "other", "name": "of others"}
    name = shelf.put(body)
    bench.deliver(1)
    for wanted in ("x", "another version"):
        payload = operation(0).after | {"name": wanted}
        bench.carry_out([structs.replace(operation(0), after=payload, changes=payload)])
        assert (bench.dead_letters(), bench.bound(), bench.unsettled()) == ({"0": "conflict"}, 0, {})
    assert {member: shelf.held[name][member] for member in body} == body
    assert platform.of("PATCH") == []


def test_many_records_of_others_stop_the_run(bench: Bench, shelf: Shelf) -> None:
    """They show that the state is another one; those that were not decided about stay pending."""
    for number in range(20):
        shelf.put({"externalId": f"wms:{number}", "sku": "other", "name": "of others"})
    with pytest.raises(RefusedError, match="records under names that this run would give") as told:
        bench.deliver(20)
    assert told.value.exit_code == 4
    assert set(bench.dead_letters().values()) == {"conflict"}
    assert len(bench.dead_letters()) == 10
    assert (bench.bound(), set(bench.unsettled().values())) == (0, {"pending"})


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
    bench.carry_out([structs.replace(operation(0), after=payload, changes=payload)])
    (held,) = shelf.held.values()
    assert (held["name"], bench.bound(), bench.dead_letters()) == ("y", 1, {})


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
        if done.target_id in seen.path:
            shelf(seen)
        return None

    platform.script = lose
    bench.carry_out([updating(each, each.payload | {"name": "y"}) for each in (done, undone)])
    assert Counter(seen.path for seen in platform.of("PATCH")) == {
        f"{PRODUCTS}/{done.target_id}": 1,
        f"{PRODUCTS}/{undone.target_id}": 2,
    }
    assert {each["name"] for each in shelf.held.values()} == {"y"}
    assert bench.statuses() == {"delivered": 4}


@pytest.mark.parametrize("is_edited", [False, True])
def test_an_undo_in_doubt_is_sent_again_only_for_the_version_that_it_is_for(
    bench: Bench, platform: Platform, shelf: Shelf, *, is_edited: bool
) -> None:
    """Its request was lost. It is refused if others have changed any member since, also one that was never written."""
    bench.settings, bench.clock, bench.only_unchanged = VERIFY, ManualClock(), "record"
    bench.deliver(1)
    (name,) = shelf.held

    def lose(seen: Seen) -> Answer:
        if seen.method != "PATCH" or len(platform.of("PATCH")) > 1:
            return shelf(seen)
        if is_edited:
            shelf.edit(name, color="red")
        return None

    platform.script = lose
    binding = bench.binding(0)
    bench.carry_out([updating(binding, binding.payload | {"name": "y"})])
    assert bench.dead_letters() == ({"0": "conflict"} if is_edited else {})
    assert shelf.held[name]["name"] == ("x" if is_edited else "y")


def test_a_create_that_is_always_answered_with_412_is_refused(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """It is looked up once, since a record may be the reason; without one it is a dead letter, and others go on."""

    def picky(seen: Seen) -> Answer:
        is_refused = seen.method == "POST" and is_number(seen, 0)
        return (412, {}, b'{"detail":"the customer has no mandate"}') if is_refused else shelf(seen)

    platform.script = picky
    stopper(bench, platform, 20)
    bench.deliver(3)
    assert Counter(platform.told()) == {"POST": 3, "GET": 1}
    assert (bench.statuses(), bench.dead_letters()) == ({"rejected": 1, "delivered": 2}, {"0": "conflict"})
    theirs = {"externalId": "wms:9", "sku": "other", "name": "theirs", "active": False}
    shelf.put(theirs)
    platform.script = lambda seen: (412, {}, b"{}") if seen.method == "POST" else shelf(seen)
    bench.carry_out([operation(9)])
    assert bench.dead_letters() == {"0": "conflict", "9": "conflict"}
    assert [each["sku"] for each in shelf.held.values() if each["externalId"] == "wms:9"] == ["other"]


def test_a_record_of_others_is_not_ours_because_an_answer_was_lost(
    bench: Bench, platform: Platform, shelf: Shelf
) -> None:
    """One with other content stays in doubt over runs; one that shows what was sent, or nothing of it, is ours."""
    bench.settings, bench.clock = VERIFY, ManualClock()
    shown: dict[int, dict[str, Any]] = {
        0: {"sku": "S-1", "name": "theirs", "active": True},
        2: {},
        3: {"name": "x"},
    }
    shown[1] = {"sku": "S1", "name": "y", "active": True}
    for number, members in shown.items():
        shelf.put({"externalId": f"wms:{number}", **members})
    platform.script = lambda seen: None if seen.method == "POST" else shelf(seen)
    bench.deliver(4)
    assert (bench.statuses(), bench.unsettled()) == ({"in_doubt": 1, "delivered": 3}, {"0": "in_doubt"})
    bench.clock = ManualClock()
    assert [intent.identity.key for intent in bench.resume()] == ["0"]
    assert shelf.held["prd_1"]["name"] == "theirs"
