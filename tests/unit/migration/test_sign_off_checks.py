"""What keeps a migration from being signed off, one fact at a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.report_page import AT, dead_letter, waiting
from tests.unit.migration.loaded_migration import LATER, SOURCES, LoadedMigration, freeze, reconciliation
from tests.unit.state.samples import intent

from crossdock.migration.sign_off import SignOffIncompleteError, SignOffObstacle, obstacle_if_exceptions_unaccepted
from crossdock.state import Transaction

Change = Callable[[LoadedMigration, Transaction], object]


def test_nothing_is_in_the_way(ready: LoadedMigration) -> None:
    """All waves are loaded, and the sources frozen and reconciled."""
    assert ready.obstacles() == []
    assert list(obstacle_if_exceptions_unaccepted(ready.report()["exceptions"], None)) == []


def _load_again(ready: LoadedMigration, tx: Transaction, status: str = "done") -> None:
    ready.run(tx, "products", status=status)


def _reconciled(**changes: object) -> Change:
    return lambda ready, tx: tx.migrations.store_reconciliation(ready.migration_id, reconciliation(**changes))


def _frozen(**changes: object) -> Change:
    return lambda ready, tx: tx.migrations.store_freeze_check(ready.migration_id, freeze(**changes))


def _undone(ready: LoadedMigration, tx: Transaction) -> None:
    tx.migrations.add_run(ready.migration_id, tx.runs.start(business_date="2026-03-29", at=AT), "undo", None)


def _unsettled(status: str) -> Change:
    return lambda _, tx: tx.intents.add([intent(9, status=status)], run_id=1, fence=1, at=AT)


def _rejected(_: LoadedMigration, tx: Transaction) -> None:
    tx.dead_letters.put([dead_letter(5, stream="wms.products")], run_id=1, at=AT)


@pytest.mark.parametrize(
    ("change", "what", "hint"),
    [
        pytest.param(
            lambda ready, tx: tx.migrations.pause(ready.migration_id, at=LATER, by="cy"),
            ["it is paused by cy"],
            "resume",
            id="paused",
        ),
        pytest.param(
            _undone,
            ["wave 1 of 2: customers: not begun", "wave 2 of 2: products: not begun", "not reconciled since"],
            "load",
            id="undone",
        ),
        pytest.param(
            lambda ready, tx: _load_again(ready, tx, "incomplete"),
            ["wave 2 of 2: products: incomplete", "not reconciled since the last load"],
            "load",
            id="a load did not reach its end",
        ),
        pytest.param(_load_again, ["not reconciled since the last load"], "reconcile", id="loaded since"),
        pytest.param(
            _rejected, ["wave 2 of 2: products: the gate is closed: 1 of 3"], "migrate go products", id="gate"
        ),
        pytest.param(
            _unsettled("pending"),
            ["wave 2 of 2: products: the gate is closed", "wave 2 of 2: products: 1 operations are pending"],
            "load",
            id="pending",
        ),
        pytest.param(
            _unsettled("in_doubt"),
            ["wave 2 of 2: products: the gate is closed", "wave 2 of 2: products: 1 operations are in doubt"],
            "resolve",
            id="in doubt",
        ),
        pytest.param(
            lambda ready, tx: tx.migrations._write_columns(ready.migration_id, freeze=None),
            ["no freeze check has passed"],
            "freeze",
            id="not frozen",
        ),
        pytest.param(
            _frozen(sources=SOURCES | {"wms.products": "00" * 32}),
            ["sources changed since the freeze check of 2026-03-29 03:29:00Z: wms.products"],
            "freeze",
            id="a source has changed",
        ),
        pytest.param(
            _frozen(at=AT.isoformat()),
            ["loads have delivered records since the freeze check of 2026-03-29 01:30:00Z: wms.customers, "],
            "freeze",
            id="a changed source was loaded",
        ),
        pytest.param(
            _frozen(sources={"wms.products": SOURCES["wms.products"]}),
            ["sources changed since the freeze check of 2026-03-29 03:29:00Z: wms.customers"],
            "freeze",
            id="a stream was added",
        ),
        pytest.param(
            _frozen(since=(LATER + timedelta(seconds=1)).isoformat()),
            ["reconciled before 2026-03-29 03:30:01Z"],
            "reconcile",
            id="frozen after the reconciliation",
        ),
        pytest.param(
            _reconciled(sources={"wms.products": "00"}),
            ["not reconciled: wms.customers"],
            "reconcile",
            id="a stream was not reconciled",
        ),
        pytest.param(
            lambda _, tx: tx.intents.add(
                [intent(9, status="delivered")], run_id=1, fence=1, at=LATER + timedelta(seconds=1)
            ),
            ["operations since the reconciliation of 2026-03-29 03:30:00Z: 1"],
            "reconcile",
            id="an ordinary sync since",
        ),
    ],
)
def test_a_missing_fact(ready: LoadedMigration, change: Change, what: list[str], hint: str) -> None:
    """Each is named with what to do about it, and no other one is."""
    with ready.state.begin() as tx:
        change(ready, tx)
    found = ready.obstacles()
    assert len(found) == len(what)
    for each, begins in zip(found, what, strict=True):
        assert each.what.startswith(begins)
    assert any(hint in each.hint for each in found)


@pytest.mark.parametrize(("number", "requests"), [(1, "1 request"), (3, "3 requests")])
def test_what_a_load_would_send(ready: LoadedMigration, number: int, requests: str) -> None:
    """A source that has something new is not loaded."""
    ready.now.operations["create"] = number
    (found,) = ready.obstacles()
    assert found.what == f"a load would still send {requests}"


def test_an_undo_is_not_called_a_change_of_the_sources(ready: LoadedMigration) -> None:
    """A load reads them from their beginning after it, though no file has changed."""
    ready.now.sources["wms.products"] = "other"
    assert "sources changed since the freeze check of" in ready.obstacles()[0].what
    with ready.state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=LATER)
        tx.migrations.add_run(ready.migration_id, run, "undo", None)
    said = [each.what for each in ready.obstacles()]
    assert any(each.startswith("it was undone after the freeze check of") for each in said)
    assert not any("sources changed" in each for each in said)


def test_exceptions_need_a_reason(ready: LoadedMigration) -> None:
    """Differences, rejected and waiting records are counted once each, and one who accepts them lets them through."""
    differences = [
        {"resource": "product", "class": "diverged", "records": 2},
        {"resource": "customer", "class": "rejected", "records": 1},
    ]
    with ready.state.begin() as tx:
        tx.migrations.store_reconciliation(ready.migration_id, reconciliation(differences=differences))
        tx.dead_letters.put([dead_letter(number, stream="wms.customers") for number in (1, 2)], run_id=1, at=AT)
        tx.waiting_records.put([waiting(3, stream="wms.customers")], run_id=1, at=AT)
    (found,) = obstacle_if_exceptions_unaccepted(ready.report()["exceptions"], None)
    assert found.what == "exceptions: 2 diverged, 2 rejected, 1 waiting"
    assert "--accept-exceptions" in found.hint
    assert list(obstacle_if_exceptions_unaccepted(ready.report()["exceptions"], "they are test data")) == []


def test_all_obstacles_are_shown() -> None:
    """Each on two lines, with exit code 4."""
    error = SignOffIncompleteError(
        "acme", [SignOffObstacle("paused", "resume"), SignOffObstacle("not frozen", "freeze")]
    )
    assert str(error).splitlines() == [
        "acme cannot be signed off:",
        "- paused",
        "  resume",
        "- not frozen",
        "  freeze",
    ]
    assert error.exit_code == 4
