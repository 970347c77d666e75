"""Which members a run has changed, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.report_page import AT, sqlite_state, start
from tests.unit.state.samples import intent

from crossdock.runs import counts_of_changed_members as module
from crossdock.runs.counts_of_changed_members import count_members_changed_by_run
from crossdock.state import State
from crossdock.writing.delivery.operations_and_intents import PersonalDataMasks

BEFORE = {"name": "Bolt", "unitPrice": "1.50", "items": [{"quantity": 1}, {"quantity": 2}]}


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[State]:
    with sqlite_state(tmp_path) as state:
        yield state


def update(number: int, changes: dict[str, Any], **more: Any) -> Any:
    facts = {"operation": "update", "before": BEFORE, "after": BEFORE | changes, "status": "delivered"}
    return intent(number, **facts | more)


def test_members_are_counted_once_for_each_update(kept: State) -> None:
    """Whatever the place in a list; only delivered updates count, and those that are sent as a whole as well."""
    whole = update(4, {}, after=None, body=b'{"name":"Nut","unitPrice":"1.50","items":[{"quantity":1},{"quantity":2}]}')
    some = [
        update(1, {"unitPrice": "2.00", "items": [{"quantity": 5}, {"quantity": 6}]}),
        update(2, {"unitPrice": "3.00"}),
        update(3, {"unitPrice": "4.00"}, status="rejected"),
        whole,
        intent(5),
    ]
    with kept.begin() as tx:
        run = start(tx)
        tx.intents.add(some, run_id=run, fence=1, at=AT)
        found = count_members_changed_by_run(tx.run_details, run)
    assert [(each.member, each.times, each.examples) for each in found.members] == [
        ("/unitPrice", 2, []),
        ("/items/*/quantity", 1, []),
        ("/name", 1, []),
    ]
    assert (found.operations, found.are_all) == (5, True)


def test_examples_have_no_personal_values(kept: State) -> None:
    """Without what tells which members are personal there are none."""
    with kept.begin() as tx:
        run = start(tx)
        tx.intents.add([update(1, {"name": "Amsel", "unitPrice": "2.00"})], run_id=run, fence=1, at=AT)
        found = count_members_changed_by_run(
            tx.run_details, run, PersonalDataMasks({"wms.products": frozenset({"name"})})
        )
    examples = {each.member: each.examples[0].difference[1:] for each in found.members}
    assert examples == {"/name": ("(personal)", "(personal)"), "/unitPrice": ("1.50", "2.00")}


def test_only_the_first_operations_are_looked_at(kept: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """And it is said that there are more."""
    monkeypatch.setattr(module, "LOOKED_AT", 2)
    with kept.begin() as tx:
        run = start(tx)
        some = [update(number, {"unitPrice": "2.00"}) for number in range(1, 4)]
        tx.intents.add(some, run_id=run, fence=1, at=AT)
        found = count_members_changed_by_run(tx.run_details, run)
    assert ([each.times for each in found.members], found.operations, found.are_all) == ([2], 2, False)
