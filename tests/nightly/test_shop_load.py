"""The first load of a Shopify shop and what follows it, in small; the full size is in tests/long."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.shop_judge import faults
from tests.chaos.shop_load import loaded, shop_load

Effects = list[dict[str, Any]]


def test_a_first_load_that_is_killed_ends_as_one_that_is_not(tmp_path: Path) -> None:
    """Sums are equal to the cent, nothing is there twice, and later only what changed is read and sent."""
    print(shop_load(tmp_path / "killed", seed=chaos_seed(), orders=100, kills=2, currency="shop"))


def test_sums_are_equal_in_the_currency_of_the_buyer(tmp_path: Path) -> None:
    """The same with the amounts that buyers saw, in euros, dollars, yens and dinars."""
    print(shop_load(tmp_path / "buyers", seed=chaos_seed() + 1, orders=100, kills=0, currency="presentment"))


def _lost(effects: Effects) -> None:
    effects.remove(next(each for each in effects if each["resource"] == "invoice"))


def _doubled(effects: Effects) -> None:
    invoice = next(each for each in effects if each["resource"] == "invoice")
    effects.append({**invoice, "id": "another"})


def _stale(effects: Effects) -> None:
    order = next(each for each in effects if each["resource"] == "order")
    order["body"]["status"] = "on_hold"


def _a_cent_off(effects: Effects) -> None:
    line = next(each for each in effects if each["resource"] == "order")["body"]["items"][0]
    line["unitPrice"] = str(float(line["unitPrice"]) + 0.01)


def _another_customer(effects: Effects) -> None:
    first, second = [each for each in effects if each["resource"] == "customer"][:2]
    first["body"]["externalId"], second["body"]["externalId"] = (
        second["body"]["externalId"],
        first["body"]["externalId"],
    )


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Effects]:
    """A shop and what happened at the platform, between which the judge finds no difference."""
    return loaded(tmp_path_factory.mktemp("judged"), seed=chaos_seed(), orders=20)


@pytest.mark.parametrize("damage", [_lost, _doubled, _stale, _a_cent_off, _another_customer])
def test_the_judge_notices(judged: tuple[Any, Effects], damage: Callable[[Effects], None]) -> None:
    """A record that is lost, doubled, stale, a cent off or at another customer is a difference."""
    shop, effects = judged
    assert faults(shop, effects, 0) == []
    damaged = deepcopy(effects)
    damage(damaged)
    assert faults(shop, damaged, 0)
