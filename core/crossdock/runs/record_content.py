"""What records hold: whether it is what we want, when it changed, and how one without a name is recognized."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from crossdock.values import exact_json
from crossdock.writing.targets.merge_patch import holds


def content_of(payload: Mapping[str, Any]) -> str:
    """The same for records of the same customer with the same items."""
    items = payload.get("items")
    lines = [
        [_text(each.get(name)) for name in ("productId", "quantity", "unitPrice")]
        for each in (items if isinstance(items, list) else [])
        if isinstance(each, Mapping)
    ]
    facts = [payload.get("customerId"), payload.get("currency"), lines]
    return hashlib.blake2b(exact_json.dumps(facts), digest_size=16).hexdigest()


def _text(value: Any) -> str:
    """Equal for equal numbers."""
    return f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)


def holds_member(held: Mapping[str, Any], name: str, wanted: Any) -> bool:
    """Whether a member has the *wanted* value; None is the same as none."""
    return (wanted is None and held.get(name) is None) or (name in held and holds(held[name], wanted))


def changed_since(held: Mapping[str, Any], began: datetime, member: str = "updatedAt") -> bool:
    """Whether the record says in *member* that it is not older; True if it does not say."""
    changed = held.get(member)
    try:
        return not isinstance(changed, str) or datetime.fromisoformat(changed) >= began
    except (ValueError, TypeError):
        return True
