"""configs/extensiv.yaml as it is: orders go out, change and are cancelled; items, stock and parcels come back."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from pathlib import Path

import pytest
from tests.partners.extensiv import CLIENT, OTHER, Extensiv
from tests.partners.recipe import Recipe, now, opened, requests_of

from crossdock.testing.sandbox_syncs import write_private_file


@pytest.fixture
def recipe(tmp_path: Path) -> Iterator[Recipe]:
    clock = now()
    names = {"client_id": write_private_file(tmp_path / "id", CLIENT[0])}
    auth = {
        "token_url": "URL/AuthServer/api/Token",
        "client_secret": write_private_file(tmp_path / "secret", CLIENT[1]),
    }
    fake = Extensiv(clock)
    fake.receive("LAMP", Decimal("40.5"))
    changes = {"extensiv": {"base_url": "URL", "auth": auth | names}}
    with opened(tmp_path, "extensiv.yaml", fake, clock, changes) as made:
        yield made


def vendor(recipe: Recipe) -> Extensiv:
    assert isinstance(recipe.server.partner, Extensiv)
    return recipe.server.partner


def test_an_order_goes_out_and_comes_back_shipped(recipe: Recipe) -> None:
    """It is created once, others are left alone, its parcels and stock arrive; then all is quiet."""
    fake = vendor(recipe)
    order = recipe.released_order("A-1")
    recipe.check()
    recipe.sync()
    (effect,) = fake.effects
    assert (effect["kind"], effect["body"]["referenceNum"]) == ("order_created", f"erp-{order}")
    assert [(each["itemIdentifier"]["sku"], each["qty"]) for each in effect["body"]["orderItems"]] == [("LAMP", 3)]
    told = [effect["body"]["shipTo"][name] for name in ("address2", "state", "phoneNumber")]
    assert told == ["Flat 4", "HH", "+49 40 123"]
    lots = [each["body"] for each in recipe.effects() if each["resource"] == "inventory_lot"]
    assert [(each["quantity"], each["status"]) for each in lots] == [(40.5, "available")]
    recipe.quiet()
    for other in (fake.of_another(order), fake.of_another(f"erp-{order}", OTHER)):
        fake.ship(other, "theirs")
    fake.ship(effect["id"], "1Z-A", "1Z-B")
    fake.stock[0]["onHand"] = Decimal("37.5")
    recipe.sync()
    stored = recipe.stored(f"sales/orders/{order}")
    assert stored["status"] == "shipped"
    assert [(each["carrier"], each["number"]) for each in stored["tracking"]] == [("UPS", "1Z-A"), ("UPS", "1Z-B")]
    last = [each for each in recipe.effects() if each["resource"] == "inventory_lot"][-1]
    assert (last["operation"], last["body"]["quantity"]) == ("update", 37.5)
    recipe.quiet()
    assert len(fake.effects) == 1


def test_a_change_is_made_of_the_version_that_the_3pl_has(recipe: Recipe) -> None:
    """Although the warehouse works on the order meanwhile, even between our look-up and our change, it is made once."""
    fake = vendor(recipe)
    order = recipe.released_order("A-1")
    recipe.sync()
    (number,) = fake.orders
    line = recipe.stored(f"sales/orders/{order}")["items"][0]
    recipe.changed(f"sales/orders/{order}", items=[line | {"quantity": 5}])
    works = iter([number] * 2)

    def work() -> None:
        for each in islice(works, 1):
            fake.touch(each)

    fake.before_change = work
    recipe.sync()
    assert [each["kind"] for each in fake.effects] == ["order_created", "order_replaced"]
    assert [each["qty"] for each in fake.orders[number]["orderItems"]] == [5]
    statuses = [fault for _, fault in requests_of(recipe.server, "PUT", f"/orders/{number}")]
    assert len(statuses) == 3
    recipe.quiet()


@pytest.mark.nightly(but=["us"])
@pytest.mark.parametrize("by", ["us", "them"])
def test_an_order_is_cancelled_once(recipe: Recipe, by: str) -> None:
    """By the platform with a reason, or by the 3PL; then nothing is cancelled once more, and nothing is refused."""
    fake = vendor(recipe)
    order, *_ = (recipe.released_order(f"A-{number}") for number in range(20))  # at most 5 % may go without approval
    recipe.sync()
    (number,) = [each["id"] for each in fake.effects if each["body"]["referenceNum"] == f"erp-{order}"]
    if by == "us":
        recipe.changed(f"sales/orders/{order}", status="cancelled")
    else:
        fake.cancel(number)
    recipe.sync()
    recipe.sync()
    assert fake.orders[number]["readOnly"]["status"] == 2
    assert recipe.stored(f"sales/orders/{order}")["status"] == "cancelled"
    cancelled = [each["body"] for each in fake.effects if each["kind"] == "order_cancelled"]
    assert cancelled == ([{"reason": "Cancelled by the merchant"}] if by == "us" else [])
    recipe.quiet()


def test_lost_answers_create_nothing_twice(recipe: Recipe) -> None:
    """Extensiv accepts a second order of the same name, so each create in doubt is looked up before it is resent."""
    fake = vendor(recipe)
    orders = [recipe.released_order(f"A-{number}") for number in range(6)]
    recipe.server.chosen = lambda request: request.method == "POST" and request.path == "/orders"
    recipe.server.faults = {"lost_answer": 0.4, "refused": 0.2}
    recipe.sync()
    names = [each["body"]["referenceNum"] for each in fake.effects]
    assert sorted(names) == sorted(f"erp-{order}" for order in orders)
    assert {fault for _, fault in requests_of(recipe.server, "POST", "/orders")} == {"none", "lost_answer", "refused"}
    recipe.server.faults = {}
    recipe.quiet()


def test_a_429_is_waited_for(recipe: Recipe) -> None:
    """Both for reading and for writing, and tokens are renewed after an hour."""
    fake = vendor(recipe)
    recipe.released_order("A-1")
    recipe.server.chosen = lambda request: not request.path.startswith("/AuthServer")
    recipe.server.faults = {"throttled": 0.4}
    began = recipe.clock.monotonic()
    recipe.sync(0)
    assert recipe.clock.monotonic() - began >= 19
    assert [each["kind"] for each in fake.effects] == ["order_created"]
    recipe.server.faults = {}
    before = fake.tokens
    recipe.sync(7200)
    assert fake.tokens > before
