"""The target of the guide sends orders to a fake 3PL: each is there once, whatever fails on the way."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.partners.partner_transport import transport
from tests.partners.plain_3pl import API_KEY, Plain3pl
from tests.partners.plain_3pl_habits import Habits

from crossdock.connector import Connector
from crossdock.testing.target_acceptance import TargetAcceptance
from crossdock.testing.target_under_test import TargetUnderTest

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "targets" / "in_python.md"
GIVEN = ("id", "created_at", "updated_at")  # what the 3PL adds to an order
MOST_LINES = 100


@pytest.fixture
def guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of the guide's code, in a module that other processes can import."""
    text = PAGE.read_text(encoding="utf-8")
    (tmp_path / "guide_with_target.py").write_text("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)))
    monkeypatch.syspath_prepend(tmp_path)
    return vars(importlib.import_module("guide_with_target"))


@pytest.mark.nightly
@pytest.mark.usefixtures("commands_are_forked")
def test_the_target_of_the_guide_is_accepted_with_a_3pl(guide: dict[str, Any]) -> None:
    """The acceptance of the guide passes with a 3PL that its author has not written."""
    partners: list[Plain3pl] = []
    example: type[TargetUnderTest] = guide["DepotExample"]

    class WithPlain3pl(example, TargetAcceptance):  # type: ignore[misc, valid-type]  # a class of the guide's module
        environment = {"DEPOT_KEY": API_KEY}
        seed = 3

        def partner(self) -> tuple[httpx.BaseTransport, Callable[[], list[Any]]]:
            plain = Plain3pl(Habits(idempotency_keys=False, repeated_reference=422))
            plain.warehouse.add_product("acme", "0017")
            partners.append(plain)
            orders = plain.warehouse.tables["orders"]
            return transport(plain), lambda: [_shown(order.members) for order in orders.values()]

    WithPlain3pl().test_each_record_is_there_once_in_spite_of_faults_and_kills()
    calm, disturbed, *_ = ([effect["kind"] for effect in each.effects] for each in partners)
    assert calm == ["order_created"] * 12
    assert sorted(set(disturbed)) == ["order_created", "order_patched"]
    assert disturbed.count("order_created") == 12
    partners.clear()
    WithPlain3pl().test_a_record_that_is_gone_is_removed_once()
    assert [effect["kind"] for effect in partners[0].effects].count("order_cancelled") == 1


def _shown(order: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in order.items() if name not in GIVEN}


def test_the_target_of_the_guide_is_short(guide: dict[str, Any]) -> None:
    """The connector and its tests together."""
    assert isinstance(guide["DEPOT"], Connector)
    code = "".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    assert len([line for line in code.splitlines() if line.strip()]) <= MOST_LINES
