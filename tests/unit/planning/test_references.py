"""References become ids, or are told as missing."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

from crossdock.planning.references import References, found_in, key_hashes
from crossdock.resources import Reference
from crossdock.state import Binding, Scope, State

MEMBERS = {
    "customerId": Reference("customer", "17850"),
    "items": [
        {"productId": Reference("product", "A"), "quantity": Decimal("1.5")},
        {"productId": Reference("product", "B", "site"), "quantity": 2},
    ],
}


def bind(state: State, scope: Scope, key: str, platform_id: str) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    with state.begin() as tx:
        run = tx.runs.start(business_date="2026-01-01", at=at)
        binding = Binding(key_hashes([key])[key], key, platform_id, 1, None, "whole", {}, None, 1)
        tx.bindings.put(scope, [binding], run_id=run, at=at)


def test_every_reference_is_found_and_resolved(state: State) -> None:
    """References at any depth get their ids, each in its own namespace; all else stays."""
    bind(state, Scope("platform", "customer", "wms"), "17850", "cus_1")
    bind(state, Scope("platform", "product", "wms"), "A", "prd_1")
    references = References("platform")
    with state.begin() as tx:
        references.look_up(found_in(MEMBERS), "wms", tx)
    assert references.missing(found_in(MEMBERS), "wms") == [{"resource": "product", "namespace": "site", "key": "B"}]
    bind(state, Scope("platform", "product", "site"), "B", "prd_2")
    with state.begin() as tx:
        references.look_up(found_in(MEMBERS), "wms", tx)
    assert references.missing(found_in(MEMBERS), "wms") == []
    assert references.resolved(MEMBERS, "wms") == {
        "customerId": "cus_1",
        "items": [{"productId": "prd_1", "quantity": Decimal("1.5")}, {"productId": "prd_2", "quantity": 2}],
    }


def test_a_plan_resolves_what_it_would_create_to_a_symbol(state: State) -> None:
    """What the same plan creates is no missing parent; it is shown by its name."""
    scope = Scope("platform", "customer", "wms")
    references = References("platform", {(scope, key_hashes(["17850"])["17850"])})
    reference = {"customerId": Reference("customer", "17850")}
    with state.begin() as tx:
        references.look_up(found_in(reference), "wms", tx)
    assert references.resolved(reference, "wms") == {"customerId": "<customer wms:17850>"}


def test_times_become_the_text_that_the_state_gives_back() -> None:
    """A day or an instant compares equal with what was accepted before, so that it is no change."""
    east = timezone(timedelta(hours=2))
    members = {"expiresOn": date(2026, 3, 29), "placedAt": datetime(2026, 3, 29, 3, tzinfo=east)}
    assert References("platform").resolved(members, "wms") == {
        "expiresOn": "2026-03-29",
        "placedAt": "2026-03-29T01:00:00Z",
    }
