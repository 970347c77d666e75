"""What the target has only accepted (202) is delivered once a look-up shows it, and never sent again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.integration.delivery.harness import (
    VERIFY,
    Answer,
    Bench,
    Platform,
    Seen,
    Shelf,
    deleting,
    invoice,
    operation,
    updating,
)

from crossdock.errors import UnavailableError
from crossdock.state import StateUrl, parse_database_url
from crossdock.testing.manual_clock import ManualClock

LATER: Answer = (202, {}, b'{"id": "job_1"}')
KEYS = {"idempotency": {"enabled": True}}


@pytest.fixture
def state_url(tmp_path: Path) -> StateUrl:
    """One database is enough here: the other tests show that both keep the same."""
    return parse_database_url("sqlite:///state.db", tmp_path)


@pytest.mark.parametrize("body", [b'{"id": "job_1"}', b""])
@pytest.mark.parametrize("settings", [VERIFY, KEYS])
def test_a_record_that_the_target_makes_later_has_the_id_of_a_look_up(
    bench: Bench, platform: Platform, shelf: Shelf, settings: dict[str, object], body: bytes
) -> None:
    """The id in the answer is that of a job."""
    bench.settings, bench.clock = settings, ManualClock()

    def queue(seen: Seen) -> Answer:
        answer = shelf(seen)
        return (202, {}, body) if seen.method == "POST" else answer

    platform.script = queue
    bench.deliver(1)
    assert (bench.statuses(), platform.told()) == ({"delivered": 1}, ["POST", "GET"])
    assert bench.binding(0).target_id in shelf.held


@pytest.mark.parametrize("settings", [VERIFY, KEYS])
def test_a_record_that_was_accepted_and_is_not_there_is_never_sent_again(
    bench: Bench, platform: Platform, shelf: Shelf, settings: dict[str, object]
) -> None:
    """Each run looks again, also after one that could not; a person may decide that it was refused."""
    bench.settings, bench.clock = settings, ManualClock()
    platform.script = lambda seen: LATER if seen.method == "POST" else shelf(seen)
    bench.deliver(1)
    assert bench.unsettled() == {"0": "in_doubt"}
    platform.script = lambda seen: (500, {}, b"") if "externalId" in seen.path else shelf(seen)
    with pytest.raises(UnavailableError):
        bench.resume()
    platform.script = shelf
    bench.resume()
    assert bench.unsettled() == {"0": "in_doubt"}
    assert len(platform.of("POST")) == 1
    shelf.put(operation(0).after)
    assert bench.resume() == []
    assert (bench.bound(), len(platform.of("POST")), bench.unsettled()) == (1, 1, {})


def test_the_state_knows_what_was_accepted_before_it_is_looked_up(
    bench: Bench, platform: Platform, shelf: Shelf
) -> None:
    """A kill while it waits for the look-up does not have it sent again."""
    bench.settings, bench.clock = VERIFY, ManualClock()
    known = list[int | None]()

    def queue(seen: Seen) -> Answer:
        if seen.method == "POST":
            return LATER
        with bench.state.begin() as tx:
            known.extend(each.http_status for each in tx.intents.unsettled())
        return shelf(seen)

    platform.script = queue
    bench.deliver(1)
    assert set(known) == {202}


def test_an_accepted_change_or_delete_is_in_doubt_until_it_shows(
    bench: Bench, platform: Platform, shelf: Shelf
) -> None:
    """Neither is sent again; both are delivered by the run that sees them."""
    bench.settings, bench.clock = VERIFY, ManualClock()
    bench.deliver(2)
    here, there = bench.binding(0), bench.binding(1)
    queued = list[Seen]()

    def queue(seen: Seen) -> Answer:
        if seen.method in {"PATCH", "DELETE"}:
            queued.append(seen)
            return 202, {}, b"{}"
        return shelf(seen)

    platform.script = queue
    bench.carry_out([updating(here, here.payload | {"name": "y"}), deleting(there)])
    bench.resume()
    assert bench.unsettled() == {"0": "in_doubt", "1": "in_doubt"}
    for seen in queued:
        shelf(seen)
    bench.resume()
    assert (bench.unsettled(), bench.bound(), len(queued)) == ({}, 1, 2)


def test_what_cannot_be_looked_up_is_left_to_a_person(bench: Bench, platform: Platform) -> None:
    """An invoice has no look-up; with an idempotency key, too, it is sent once."""
    platform.script = lambda _seen: LATER
    bench.carry_out([invoice(1)])
    bench.resume()
    assert (bench.unsettled(), platform.told()) == ({"1": "in_doubt"}, ["POST"])
    with bench.state.begin() as tx:
        (text,) = tx.intents.latest_attempt_messages(tx.intents.unsettled()).values()
    assert "declare a look-up, or accepted" in text


def test_a_delete_that_is_refused_may_have_been_made_by_others(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """A record that is gone needs no delete; one that is there is a dead letter with the reason of the refusal."""
    bench.clock = ManualClock()
    bench.deliver(2)
    here, there = bench.binding(0), bench.binding(1)
    del shelf.held[there.target_id]
    refusal: Answer = (422, {}, b'{"detail": "is cancelled already"}')
    platform.script = lambda seen: refusal if seen.method == "DELETE" else shelf(seen)
    bench.carry_out([deleting(here), deleting(there)])
    assert (bench.dead_letters(), bench.bound()) == ({"0": "rejected"}, 1)
    assert Counter(platform.told())["DELETE"] == 2
