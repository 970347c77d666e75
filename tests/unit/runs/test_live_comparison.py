"""The platform's pages are compared with the state, whatever their order and however often a record is listed."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import PIN
from tests.examples import examples
from tests.unit.state.samples import AT, binding, intent, start

from crossdock.delta.fingerprint import key_hashes
from crossdock.runs.platform_and_state_comparison import ComparedResource, InDoubtResult, TargetRecordComparison
from crossdock.state import Binding, Scope, State, parse_database_url

PRODUCTS, INVOICES = Scope("platform", "product", "wms"), Scope("platform", "invoice", "wms")
BEGAN = datetime(2026, 3, 29, 12, tzinfo=UTC)
OLD, NEW = "2026-03-28T00:00:00Z", "2026-03-29T12:00:30Z"


def bound(key: str, target_id: str, payload: dict[str, Any]) -> Binding:
    return binding(key_hashes([key])[key], key=key, target_id=target_id, payload=payload)


def product(key: str, name: str = "Bolt") -> Binding:
    return bound(key, f"prd_{key}", {"externalId": f"wms:{key}", "name": name})


def live(key: str, name: str = "Bolt", at: str = OLD, **more: Any) -> dict[str, Any]:
    return {"id": f"prd_{key}", "externalId": f"wms:{key}", "name": name, "updatedAt": at, **more}


def invoice(key: str, quantity: int) -> Binding:
    return bound(key, f"inv_{key}", {"customerId": "c", "currency": "EUR", "items": lines(quantity)})


def lines(quantity: int | Decimal) -> list[dict[str, Any]]:
    return [{"productId": "p", "quantity": quantity, "unitPrice": Decimal("0.5")}]


def comparison(
    state: State, scope: Scope, bindings: Iterable[Binding], unsettled: Iterable[tuple[Scope, int]] = ()
) -> TargetRecordComparison:
    run_id = start(state)
    with state.begin() as tx:
        tx.bindings.put(scope, list(bindings), run_id=run_id, at=AT)
    has_names = scope.resource != "invoice"
    resource = ComparedResource(scope.resource, has_external_ids=has_names, write_once=not has_names)
    return TargetRecordComparison(state, resource, {"wms"}, set(unsettled), began=BEGAN)


def found(compared: TargetRecordComparison) -> dict[str, str]:
    return {each.key: each.difference for each in compared.differences.values()}


def absent(_: str) -> None:
    return None


def test_a_record_that_is_listed_again_counts_as_listed_last(state: State) -> None:
    """One that changes while the list is read moves to its end: only what it holds then is compared."""
    compared = comparison(state, PRODUCTS, [product("1"), product("2")])
    compared.compare_page([live("1", name="Nail", at=OLD), live("2", at=OLD)])
    compared.compare_page([live("1", name="Bolt", at=NEW), live("2", name="Nut", at=NEW)])
    compared.compare_unlisted_bindings(absent)
    assert found(compared) == {"2": "diverged"}
    assert [each.key for each in compared.corrections.values()] == ["2"]


def test_a_record_that_moved_within_the_list_is_looked_up(state: State) -> None:
    """It is missing in the list and exists: no false alarm."""
    compared = comparison(state, PRODUCTS, [product("1"), product("2")])
    compared.compare_page([])
    compared.compare_unlisted_bindings(lambda target_id: live("1") if target_id == "prd_1" else None)
    assert found(compared) == {"2": "missing"}


def test_members_of_others_are_no_difference(state: State) -> None:
    """What the platform adds, and what was never written, is not compared; null is as good as absent."""
    one = bound("1", "prd_1", {"externalId": "wms:1", "name": "Bolt", "barcode": None})
    compared = comparison(state, PRODUCTS, [one])
    compared.compare_page([live("1", description="new", unitPrice=Decimal(3))])
    compared.compare_unlisted_bindings(absent)
    assert found(compared) == {}


def test_the_form_of_an_instant_is_no_difference(state: State) -> None:
    """The platform lists what was sent with milliseconds, or with an offset."""
    sent = {"externalId": "wms:1", "placedAt": "2026-11-20T08:15:00Z"}
    compared = comparison(
        state, PRODUCTS, [bound("1", "prd_1", sent), bound("2", "prd_2", {**sent, "externalId": "wms:2"})]
    )
    compared.compare_page(
        [live("1", placedAt="2026-11-20T08:15:00.000Z"), live("2", placedAt="2026-11-20T09:15:01+01:00")]
    )
    compared.compare_unlisted_bindings(absent)
    assert found(compared) == {"2": "diverged"}


def test_what_is_unsettled_is_left_out(state: State) -> None:
    """It may have been carried out or not; the list says what became of it."""
    key_hash = key_hashes(["1"])["1"]
    compared = comparison(state, PRODUCTS, [product("1")], [(PRODUCTS, key_hash)])
    update = {"operation": "update", "before": {"name": "Bolt"}, "after": {"name": "Nut"}, "target_id": "prd_1"}
    asked = intent(key_hash, key="1", namespace="wms", **update)
    for name, outcome in (("Nut", "delivered"), ("Bolt", "not delivered"), ("Nail", "unknown")):
        compared.compare_page([live("1", name=name, at=NEW)])
        compared.compare_unlisted_bindings(absent)
        assert found(compared) == {}
        assert compared.outcome_of_doubtful_operation(asked).outcome == outcome


@pytest.mark.parametrize(
    ("listed", "outcome"),
    [([], InDoubtResult("not delivered")), ([live("9")], InDoubtResult("delivered", "prd_9"))],
)
def test_a_create_in_doubt_is_found_by_its_name(
    state: State, listed: list[dict[str, Any]], outcome: InDoubtResult
) -> None:
    """The complete list shows whether it was carried out, and with which id."""
    key_hash = key_hashes(["9"])["9"]
    compared = comparison(state, PRODUCTS, [product("1")], [(PRODUCTS, key_hash)])
    compared.compare_page([live("1"), *listed])
    compared.compare_unlisted_bindings(absent)
    assert found(compared) == {}
    assert compared.outcome_of_doubtful_operation(intent(key_hash, key="9", body=b'{"name":"Bolt"}')) == outcome


@pytest.mark.parametrize(("copies", "outcome"), [(0, "not delivered"), (1, "delivered"), (2, "unknown")])
def test_an_invoice_in_doubt_is_found_by_what_it_holds(state: State, copies: int, outcome: str) -> None:
    """If several hold the same, a person decides."""
    key_hash = key_hashes(["9"])["9"]
    compared = comparison(state, INVOICES, [invoice("1", 1)], [(INVOICES, key_hash)])
    held = [{"id": f"inv_x{each}", "customerId": "c", "currency": "EUR", "items": lines(7)} for each in range(copies)]
    compared.compare_page([{"id": "inv_1", "customerId": "c", "currency": "EUR", "items": lines(1)}, *held])
    compared.compare_unlisted_bindings(absent)
    body = b'{"customerId":"c","currency":"EUR","items":[{"productId":"p","quantity":7.0,"unitPrice":0.50}]}'
    asked = intent(key_hash, key="9", resource="invoice", body=body)
    assert compared.outcome_of_doubtful_operation(asked).outcome == outcome


@pytest.mark.parametrize("known", [True, False])
def test_a_list_without_items_does_not_show_what_was_carried_out(state: State, known: bool) -> None:
    """The invoice in doubt may be one whose items are left out: it must not be sent again because of this list."""
    key_hash = key_hashes(["9"])["9"]
    compared = comparison(state, INVOICES, [invoice("1", 1)] if known else [], [(INVOICES, key_hash)])
    compared.compare_page([{"id": "inv_1", "customerId": "c", "currency": "EUR", "items": []}])
    compared.compare_unlisted_bindings(absent)
    body = b'{"customerId":"c","currency":"EUR","items":[{"productId":"p","quantity":7.0,"unitPrice":0.50}]}'
    asked = intent(key_hash, key="9", resource="invoice", body=body)
    assert compared.outcome_of_doubtful_operation(asked).outcome == "unknown"


_FATES = st.sampled_from(["same", "changed", "gone", "added"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(40))
@given(fates=st.lists(_FATES, max_size=12), size=st.integers(1, 5), seed=st.randoms(use_true_random=False))
def test_exactly_what_differs_is_found(
    empty_state: Path, tmp_path_factory: Any, fates: list[str], size: int, seed: Any
) -> None:
    """Any mixture of records, in pages of any size and order: the totals and differences of a plain comparison."""
    file = shutil.copy(empty_state, tmp_path_factory.mktemp("state") / "state.db")
    with closing(State(parse_database_url(f"sqlite:///{file}", Path()), PIN)) as state:
        records = {f"{number}": fate for number, fate in enumerate(fates)}
        known = [bound(k, f"lot_{k}", _lot(k, 5)) for k, fate in records.items() if fate != "added"]
        scope = Scope("platform", "inventory_lot", "wms")
        compared = comparison(state, scope, known)
        held = [
            {"id": f"lot_{k}", "updatedAt": OLD, **_lot(k, 6 if fate == "changed" else 5)}
            for k, fate in records.items()
            if fate != "gone"
        ]
        seed.shuffle(held)
        for place in range(0, len(held), size):
            compared.compare_page(held[place : place + size])
        compared.compare_unlisted_bindings(absent)
        names = {"changed": "diverged", "gone": "missing", "added": "extra"}
        assert found(compared) == {k: names[fate] for k, fate in records.items() if fate != "same"}
        totals = compared.platform_totals
        assert (totals.records, totals.quantity) == (len(held), sum(each["quantity"] for each in held))


def _lot(key: str, quantity: int) -> dict[str, Any]:
    return {"externalId": f"wms:{key}", "productId": f"p{int(key) % 3}", "quantity": quantity}
