"""Records that are taken over from the platform: looked up by id, then changed as far as they differ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.integration.delivery.harness import PRODUCTS, Answer, Bench, Platform, Seen, Shelf, operation

from crossdock.state import Intent, StateUrl, parse_database_url
from crossdock.testing.manual_clock import ManualClock

STREAM = "wms.products"
THERE = {"externalId": "erp:7", "sku": "S0", "name": "old", "color": "red", "active": True}
VERIFY = {"idempotency": {"enabled": False}}


@pytest.fixture
def state_url(tmp_path: Path) -> StateUrl:
    return parse_database_url("sqlite:///state.db", tmp_path)


def take(bench: Bench, name: str) -> None:
    bench.matching = {STREAM: "sku"}
    bench.carry_out([structs.replace(operation(0), kind="update", taken_over=name)])


def intents(bench: Bench) -> list[Intent]:
    with bench.state.begin() as tx:
        return tx.intents.intents_of_record(operation(0).scope, 0)


def once(platform: Platform, shelf: Shelf, method: str, do: Callable[[], Any], *, after: bool = False) -> None:
    """Have *do* happen at the first request of *method*, before it is answered, or after."""
    done: list[bool] = []

    def script(seen: Seen) -> Answer:
        answer = shelf(seen) if after else None
        if seen.method == method and not done:
            done.append(True)
            do()
        return answer if after else shelf(seen)

    platform.script = script


def test_only_what_differs_is_written(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """With the version that was looked up; the intent keeps what was there of what we write."""
    name = shelf.put(dict(THERE))
    take(bench, name)
    assert platform.told() == ["GET", "PATCH"]
    assert platform.seen[0].path == f"{PRODUCTS}/{name}"
    assert platform.seen[1].if_match == f'"{name}-0"'
    assert platform.seen[1].body == b'{"externalId":"wms:0","name":"x"}'
    assert shelf.held[name] == THERE | {"id": name, "externalId": "wms:0", "name": "x"}
    assert bench.story(0) == [("update", "replaced", 1), ("update", "delivered", 2)]
    assert intents(bench)[1].before == {key: THERE[key] for key in ("externalId", "sku", "name", "active")}
    assert (bench.binding(0).target_id, bench.binding(0).payload) == (name, operation(0).after)


def test_an_equal_record_is_bound_without_a_write(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """The state says that nothing was written."""
    name = shelf.put(operation(0).after | {"color": "red"})
    take(bench, name)
    assert platform.told() == ["GET"]
    assert [(each.status, each.untouched) for each in intents(bench)] == [("delivered", True)]
    assert (bench.binding(0).target_id, bench.binding(0).etag) == (name, f'"{name}-0"')


def test_what_others_change_meanwhile_is_looked_at_again(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """The record becomes as its source says, and what is kept of it is what was there last."""
    name = shelf.put(THERE | {"name": "x"})
    once(platform, shelf, "PATCH", lambda: shelf.edit(name, name="newer", color="blue"))
    take(bench, name)
    assert platform.told() == ["GET", "PATCH", "GET", "PATCH"]
    assert (shelf.held[name]["name"], shelf.held[name]["color"]) == ("x", "blue")
    assert intents(bench)[-1].before == {"externalId": "erp:7", "sku": "S0", "name": "newer", "active": True}
    assert [each.untouched for each in bench.settled] == [False]


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_record_that_is_deleted_meanwhile_is_a_dead_letter(
    bench: Bench, platform: Platform, shelf: Shelf, method: str
) -> None:
    """Nothing is created in its place before the platform was asked again."""
    name = shelf.put(dict(THERE))
    once(platform, shelf, method, shelf.held.clear)
    take(bench, name)
    assert (bench.dead_letters(), bench.bound(), shelf.held) == ({"0": "missing"}, 0, {})
    assert "POST" not in platform.told()


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_record_that_does_not_match_any_more_is_not_touched(
    bench: Bench, platform: Platform, shelf: Shelf, method: str
) -> None:
    """Somebody has given it another SKU since it was found."""
    name = shelf.put(dict(THERE))
    once(platform, shelf, method, lambda: shelf.edit(name, sku="S1"))
    take(bench, name)
    assert shelf.held[name] == THERE | {"id": name, "sku": "S1"}
    assert (bench.dead_letters(), bench.bound()) == ({"0": "conflict"}, 0)


@pytest.mark.parametrize("carried_out", [False, True])
@pytest.mark.parametrize("settings", [{}, VERIFY])
def test_a_lost_answer_ends_as_any_other(
    bench: Bench, platform: Platform, shelf: Shelf, settings: dict[str, Any], *, carried_out: bool
) -> None:
    """Whether the write was carried out or not, the record is taken over once, and its former values are kept."""
    bench.settings, bench.clock = settings, ManualClock()
    name, lost = shelf.put(dict(THERE)), list[bool]()

    def script(seen: Seen) -> Answer:
        if seen.method != "PATCH" or lost:
            return shelf(seen)
        lost.append(True)
        if carried_out:
            shelf(seen)
        return None

    platform.script = script
    take(bench, name)
    assert shelf.held[name] == THERE | {"id": name, "externalId": "wms:0", "name": "x"}
    assert (bench.bound(), bench.dead_letters(), len(shelf.held)) == (1, {}, 1)
    written = [each for each in intents(bench) if each.status == "delivered"]
    assert [(each.untouched, (each.before or {})["externalId"]) for each in written] == [(False, "erp:7")]


def test_what_a_killed_run_left_is_looked_up_first(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """An intent that was stored and never sent has all that the next run needs."""
    name = shelf.put(dict(THERE))
    bench.interrupt.set()
    with pytest.raises(Exception, match="stopped before its end"):
        take(bench, name)
    assert ("PATCH" in platform.told(), bench.unsettled()) == (False, {"0": "pending"})
    bench.interrupt.clear()
    bench.resume()
    assert platform.told()[-2:] == ["GET", "PATCH"]
    assert (bench.bound(), shelf.held[name]["externalId"]) == (1, "wms:0")


def test_a_restored_state_takes_over_what_is_its_own(bench: Bench, platform: Platform, shelf: Shelf) -> None:
    """What was delivered after the backup is found under its external id, and needs no write."""
    bench.state_restored = True
    name = shelf.put(dict(operation(0).after))
    take(bench, name)
    assert (platform.told(), bench.binding(0).target_id) == (["GET"], name)
