"""Versions of mappings, which decide when the records of a stream are mapped again."""

from __future__ import annotations

import hashlib

from crossdock.values import exact_json
from crossdock_connectors.threepl.settings import ThreePlSettings

_MAPPED = {
    "statuses", "product_namespace", "sku_aliases", "unit_of_measure", "no_lot", "stock_states", "orders",
    "stock_leaves", "receipts", "announced_lots", "bills",
}  # fmt: skip


def version_of(settings: ThreePlSettings, mapping: int) -> str:
    """Return the version of a mapping: the number *mapping* of its code, and a hash of the settings that it uses."""
    facts = settings.model_dump(mode="json", include=_MAPPED)
    return f"{mapping}:{hashlib.sha256(exact_json.dumps(facts)).hexdigest()[:32]}"
