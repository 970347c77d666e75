"""Bindings, intents and runs for the tests of the state."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from msgspec import structs

from crossdock.state import (
    Binding,
    Intent,
    RecordIdentity,
    Scope,
    State,
)

AT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
SCOPE = Scope("platform", "product", "wms")


def start(state: State) -> int:
    with state.begin() as tx:
        return tx.runs.start(business_date="2026-03-29", at=AT)


def binding(number: int, **changes: Any) -> Binding:
    facts: dict[str, Any] = {
        "key_hash": number,
        "key": f"K{number}",
        "target_id": f"prd_{number}",
        "fingerprint": 10 + number,
        "position": None,
        "step": "whole",
        "payload": {"name": "x", "unitPrice": Decimal("0.1")},
        "etag": None,
        "counter": 1,
    }
    return Binding(**(facts | changes))


def intent(number: int, **changes: Any) -> Intent:
    facts: dict[str, Any] = {
        "identity": RecordIdentity("wms.products", f"K{number}", number, 5, None, "f.csv", 2),
        "scope": SCOPE,
        "operation": "create",
        "step": "whole",
        "counter": 1,
        "idempotency_key": f"key-{number}",
        "method": "POST",
        "path": "/p",
        "body": b'{"name":"\xc3\xa9"}',
        "before": None,
        "after": None,
        "raw": {"columns": ["A"], "rows": [["0017"]], "lines": [2]},
    }
    return Intent(**_changed(facts, changes))


def _changed(facts: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """*facts* with *changes*, some of which may be of the identity or the scope."""
    identity = {name: changes.pop(name) for name in RecordIdentity._fields if name in changes}
    scope = {name: changes.pop(name) for name in Scope.__struct_fields__ if name in changes}
    whole = {"identity": facts["identity"]._replace(**identity), "scope": structs.replace(facts["scope"], **scope)}
    return facts | whole | changes
