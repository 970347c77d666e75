"""What crossdock wrote to the system that a stream reads is recognized when it is read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import structs
from tests.unit.runs.planning.accounts import bound_accounts, platform_target

from crossdock.delta.changed_record_reading import KeyedRecord
from crossdock.runs.planning.contributions_and_own_writes import OriginRecord, OwnWrites
from crossdock.state import Binding, RecordIdentity, Scope, State
from crossdock.values.raw_rows_and_records import JSON, Record

AT = datetime(2026, 1, 1, tzinfo=UTC)
WRITTEN: dict[str, Any] = {"externalId": "erp:1", "code": "1", "name": "Cash", "address": {"city": "Ulm"}}


@pytest.mark.parametrize(
    ("change", "is_unchanged"),
    [
        pytest.param({}, True, id="as it was written"),
        pytest.param({"currency": "EUR"}, True, id="with what a contribution wrote"),
        pytest.param({"updatedAt": "2026-01-02", "address": {"city": "Ulm", "id": 7}}, True, id="with more"),
        pytest.param({"parentId": None}, True, id="with an empty member"),
        pytest.param({"parentId": "acc_9"}, False, id="with a member that others added"),
        pytest.param({"name": "Bank"}, False, id="with another value"),
        pytest.param({"currency": "USD"}, False, id="with another contribution"),
    ],
)
def test_a_record_is_unchanged_while_it_holds_what_was_written(
    state: State, change: dict[str, Any], is_unchanged: bool
) -> None:
    """A record of others, and one of a connection that is no origin, have no origin."""
    kind = platform_target().resources["ledger_account"]
    bound = structs.replace(
        bound_accounts(), read_target_and_type=("platform", kind), namespaces_of_target_system=frozenset({"erp"})
    )
    scopes = [Scope("platform", kind.name, namespace) for namespace in ("erp", "other")]
    with state.begin() as tx:
        run = tx.runs.start(business_date="2026-01-01", at=AT)
        for number, scope in enumerate(scopes, 1):
            found = Binding(number, f"K{number}", f"acc_{number}", 1, None, "whole", WRITTEN, None, 1)
            tx.bindings.put(scope, [found], run_id=run, at=AT)
        added = Binding(1, "K1", "acc_1", 1, None, "whole", {"currency": "EUR"}, None, 1)
        tx.bindings.put(scopes[0].contribution_scope_of_stream("shop.currencies"), [added], run_id=run, at=AT)
    reads = [read(f"acc_{number}", {**WRITTEN, "currency": "EUR", **change}) for number in (1, 2, 3)]
    assert OwnWrites(bound).origins_by_key_hash(state, reads) == {
        reads[0].identity.key_hash: OriginRecord("K1", is_unchanged)
    }


def read(target_id: str, held: dict[str, Any]) -> KeyedRecord:
    record = Record(target_id, ({JSON: json.dumps({"id": target_id, **held})},), "/accounts", (1,))
    return KeyedRecord(record, RecordIdentity("w.accounts", target_id, hash(target_id), 1, None, "/accounts", 1))
