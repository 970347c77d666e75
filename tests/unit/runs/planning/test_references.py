"""References are resolved to ids, or reported as missing."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
import xxhash

from crossdock.delta.fingerprint import key_hashes
from crossdock.resources import Reference
from crossdock.runs.planning.references import References, collect_references_in_value, stored_key_by_trimmed_key
from crossdock.state import Binding, DeadLetter, RecordIdentity, Scope, State, WaitingRecord
from crossdock.values.record_keys import key_text

AT = datetime(2026, 1, 1, tzinfo=UTC)
MEMBERS = {
    "customerId": Reference("customer", "17850"),
    "items": [
        {"productId": Reference("product", "A"), "quantity": Decimal("1.5")},
        {"productId": Reference("product", "B", "site"), "quantity": 2},
    ],
}


def wms(reference: Reference) -> tuple[str, str]:
    return reference.namespace or "wms", key_text(reference.key_parts)


def bind(state: State, scope: Scope, key: str, target_id: str) -> None:
    with state.begin() as tx:
        run = tx.runs.start(business_date="2026-01-01", at=AT)
        binding = Binding(key_hashes([key])[key], key, target_id, 1, None, "whole", {}, None, 1)
        tx.bindings.put(scope, [binding], run_id=run, at=AT)


def identified(stream: str, key: str) -> RecordIdentity:
    return RecordIdentity(stream, key, key_hashes([key])[key], 1, None, "f", 1)


def test_every_reference_is_found_and_resolved(state: State) -> None:
    """References at any depth become ids, each in its own namespace; other members stay."""
    bind(state, Scope("platform", "customer", "wms"), "17850", "cus_1")
    bind(state, Scope("platform", "product", "wms"), "A", "prd_1")
    references = References("platform")
    keys = references.scoped_keys(collect_references_in_value(MEMBERS), wms)
    with state.begin() as tx:
        references.look_up(keys, tx)
    assert references.missing(keys) == [(Scope("platform", "product", "site"), "B")]
    bind(state, Scope("platform", "product", "site"), "B", "prd_2")
    with state.begin() as tx:
        references.look_up(keys, tx)
    assert references.missing(keys) == []
    assert references.resolve(MEMBERS, wms) == {
        "customerId": "cus_1",
        "items": [{"productId": "prd_1", "quantity": Decimal("1.5")}, {"productId": "prd_2", "quantity": 2}],
    }


def test_a_plan_resolves_a_planned_record_to_a_placeholder(state: State) -> None:
    """A record that the same plan creates is not missing: its id is shown as a placeholder."""
    scope = Scope("platform", "customer", "wms")
    references = References("platform", {(scope, key_hashes(["17850"])["17850"])})
    reference = {"customerId": Reference("customer", "17850")}
    with state.begin() as tx:
        references.look_up(references.scoped_keys(collect_references_in_value(reference), wms), tx)
    assert references.resolve(reference, wms) == {"customerId": "<customer wms:17850>"}


def test_dates_and_times_become_the_text_that_the_state_stores() -> None:
    """A date or an instant equals the payload that was accepted before, so it is not a change."""
    east = timezone(timedelta(hours=2))
    members = {"expiresOn": date(2026, 3, 29), "placedAt": datetime(2026, 3, 29, 3, tzinfo=east)}
    assert References("platform").resolve(members, wms) == {
        "expiresOn": "2026-03-29",
        "placedAt": "2026-03-29T01:00:00Z",
    }


def test_each_key_is_listed_once_and_hashed_like_a_column() -> None:
    """Repeated references count once; no keys give no hashes."""
    references = References("platform")
    twice = [Reference("product", "A"), Reference("product", "A", "wms"), Reference("product", "B")]
    assert [key for _, key in references.scoped_keys(twice, wms)] == ["A", "B"]
    assert key_hashes([]) == {}
    assert key_hashes(["A"]) == {"A": xxhash.xxh3_128_intdigest(b"A")}


@pytest.mark.parametrize("parts", [("gid://shopify/Customer/1",), ("a|b",), ("a", "b"), ("50%", "\0"), ("ä",)])
def test_a_reference_points_to_the_key_text_of_a_record(parts: tuple[str, ...]) -> None:
    """Its key is encoded as the key of a record is, whatever its characters; one part may be given as text."""
    references = References("platform")
    for key in {parts, parts[0] if len(parts) == 1 else parts}:
        ((_, found),) = references.scoped_keys([Reference("customer", key)], wms)
        assert found == key_text(parts)


def test_a_reference_finds_a_record_that_was_stored_before_keys_were_trimmed(state: State) -> None:
    """It keeps its name; one that is stored under its trimmed key too has that one. So do rejected and waiting ones."""
    scope = Scope("platform", "product", "wms")
    for key, target_id in (("%200017", "prd_1"), ("0018%C2%A0", "prd_2"), ("0018", "prd_3"), ("a%20b", "prd_4")):
        bind(state, scope, key, target_id)
    references = References("platform")
    wanted = {"items": [Reference("product", key) for key in ("0017", "0018", "a b")]}
    rejected = [identified(*each) for each in (("wms.products", "%09L1"), ("wms.products", "L2"), ("other", "L3%20"))]
    with state.begin() as tx:
        references.look_up(references.scoped_keys(collect_references_in_value(wanted), wms), tx)
        assert stored_key_by_trimmed_key(tx, scope) == {"0017": "%200017"}
        run = tx.runs.start(business_date="2026-01-01", at=AT)
        letters = [DeadLetter(each, "mapping", "bad_value", None, "", {}, None) for each in rejected]
        tx.dead_letters.put(letters, run_id=run, at=AT)
        waits = WaitingRecord(identified("wms.products", "L4%20"), [], {})
        tx.waiting_records.put([waits], run_id=run, at=AT)
        assert stored_key_by_trimmed_key(tx, scope, "wms.products") == {"0017": "%200017", "L1": "%09L1", "L4": "L4%20"}
    assert references.resolve(wanted, wms) == {"items": ["prd_1", "prd_3", "prd_4"]}
