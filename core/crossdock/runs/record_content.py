"""The content of records: whether it is as wanted, when it changed, and how to recognize one without an external id."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from crossdock.values import exact_json
from crossdock.writing.targets.merge_patch import holds


def content_of(payload: Mapping[str, Any]) -> str:
    """Return a text that is equal for records of the same customer with the same items."""
    items = payload.get("items")
    lines = [
        [_text(each.get(name)) for name in ("productId", "quantity", "unitPrice")]
        for each in (items if isinstance(items, list) else [])
        if isinstance(each, Mapping)
    ]
    facts = [payload.get("customerId"), payload.get("currency"), lines]
    return hashlib.blake2b(exact_json.dumps(facts), digest_size=16).hexdigest()


def _text(value: Any) -> str:
    return exact_json.decimal_text(value) if isinstance(value, Decimal) else str(value)


def holds_member(held: Mapping[str, Any], name: str, wanted: Any) -> bool:
    """Return whether a member has the *wanted* value. None equals a missing member."""
    return (wanted is None and held.get(name) is None) or (name in held and holds(held[name], wanted))


def changed_since(held: Mapping[str, Any], began: datetime, member: str = "updatedAt") -> bool:
    changed = held.get(member)
    try:
        return not isinstance(changed, str) or datetime.fromisoformat(changed) >= began
    except (ValueError, TypeError):
        return True
