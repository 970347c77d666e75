"""configs/shipstation.yaml as it is: orders go out once, and their status and parcels come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.partners.recipe import Recipe, now, opened, requests_of
from tests.partners.shipstation import PASSWORD, RESET_S, USER, ShipStation

from crossdock.testing.sandbox_syncs import write_private_file

pytestmark = pytest.mark.nightly


@pytest.fixture
def recipe(tmp_path: Path) -> Iterator[Recipe]:
    clock = now()
    auth = {
        "user": write_private_file(tmp_path / "key", USER),
        "password": write_private_file(tmp_path / "secret", PASSWORD),
    }
    changes = {"shipstation": {"base_url": "URL", "auth": auth}}
    with opened(tmp_path, "shipstation.yaml", ShipStation(clock), clock, changes) as made:
        yield made


def vendor(recipe: Recipe) -> ShipStation:
    assert isinstance(recipe.server.partner, ShipStation)
    return recipe.server.partner


def test_an_order_goes_out_and_comes_back_shipped(recipe: Recipe) -> None:
    """It is created once under our key; its status and both parcels arrive; a voided one goes; then all is quiet."""
    fake = vendor(recipe)
    fake.ship(fake.of_others("of a shop"), "theirs")
    recipe.check()
    order = recipe.released_order("A-1")
    recipe.sync()
    (effect,) = fake.effects
    assert effect["kind"] == "order_created"
    sent = effect["body"]
    assert (sent["orderKey"], sent["orderNumber"]) == (f"erp:{order}", order)
    assert (sent["shipTo"]["street2"], sent["shipTo"]["state"]) == ("Flat 4", "HH")
    assert sent["orderDate"] == "2026-11-20 00:15:00"  # 08:15 in UTC
    assert [(each["sku"], each["quantity"]) for each in sent["items"]] == [("LAMP", 3)]
    recipe.quiet()
    fake.ship(effect["id"], "1Z-A", whole=False)
    second = fake.ship(effect["id"], "1Z-B")
    recipe.sync()
    stored = recipe.stored(f"sales/orders/{order}")
    assert stored["status"] == "shipped"
    assert [each["number"] for each in stored["tracking"]] == ["1Z-A", "1Z-B"]
    fake.void(second)
    recipe.sync()
    assert [each["number"] for each in recipe.stored(f"sales/orders/{order}")["tracking"]] == ["1Z-A"]
    recipe.quiet()
    assert len(fake.effects) == 1


def test_an_order_whose_only_label_is_voided_has_no_parcel(recipe: Recipe) -> None:
    """Its dead tracking number goes, the parcels of other orders stay, and a new label arrives."""
    fake = vendor(recipe)
    fake.ship(fake.of_others("of a shop"), "theirs")
    order, other = recipe.released_order("A-1"), recipe.released_order("A-2")
    recipe.sync()
    ids = {each["body"]["orderKey"]: each["id"] for each in fake.effects}
    label = fake.ship(ids[f"erp:{order}"], "1Z-A")
    fake.ship(ids[f"erp:{other}"], "1Z-B")
    recipe.sync()
    fake.void(label)
    recipe.sync()
    assert recipe.stored(f"sales/orders/{order}")["tracking"] == []
    assert [each["number"] for each in recipe.stored(f"sales/orders/{other}")["tracking"]] == ["1Z-B"]
    recipe.quiet()
    fake.ship(ids[f"erp:{order}"], "1Z-C")
    recipe.sync()
    assert [each["number"] for each in recipe.stored(f"sales/orders/{order}")["tracking"]] == ["1Z-C"]


def test_a_change_replaces_the_order(recipe: Recipe) -> None:
    """The whole order is sent again under its key, and a cancelled one is cancelled on the platform."""
    fake = vendor(recipe)
    fake.ship(fake.of_others("of a shop"), "theirs")
    order = recipe.released_order("A-1")
    recipe.sync()
    line = recipe.stored(f"sales/orders/{order}")["items"][0]
    recipe.changed(f"sales/orders/{order}", items=[line | {"quantity": 5}])
    recipe.sync()
    assert [each["kind"] for each in fake.effects] == ["order_created", "order_updated"]
    (number,) = {each["id"] for each in fake.effects}
    assert fake.orders[number]["items"][0]["quantity"] == 5
    fake.cancel(number)
    recipe.sync()
    assert recipe.stored(f"sales/orders/{order}")["status"] == "cancelled"
    recipe.quiet()


def test_lost_answers_create_nothing_twice(recipe: Recipe) -> None:
    """Where every second answer to a write is lost, each order is created once: its key makes the repetition safe."""
    fake = vendor(recipe)
    fake.ship(fake.of_others("of a shop"), "theirs")
    orders = [recipe.released_order(f"A-{number}") for number in range(6)]
    recipe.server.chosen, recipe.server.faults = lambda request: request.method == "POST", {"lost_answer": 0.5}
    recipe.sync()
    created = [each["body"]["orderKey"] for each in fake.effects if each["kind"] == "order_created"]
    assert sorted(created) == sorted(f"erp:{order}" for order in orders)
    assert any(fault == "lost_answer" for _, fault in requests_of(recipe.server, "POST", "/orders"))
    recipe.server.faults = {}
    recipe.quiet()
    assert len(fake.orders) == 1 + len(orders)


def test_a_429_is_waited_for_until_the_limit_is_reset(recipe: Recipe) -> None:
    """X-Rate-Limit-Reset has the seconds of the wait, for reading and for writing, and nothing is lost."""
    fake = vendor(recipe)
    fake.ship(fake.of_others("of a shop"), "theirs")
    recipe.released_order("A-1")
    recipe.server.faults = {"throttled": 0.4}
    began = recipe.clock.monotonic()
    recipe.sync(0)
    throttled = {request.method for request, fault in recipe.server.requests if fault == "throttled"}
    assert throttled
    assert recipe.clock.monotonic() - began >= RESET_S
    assert [each["kind"] for each in fake.effects] == ["order_created"]
