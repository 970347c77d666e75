"""Versions of mappings, which decide when the records of a stream are mapped again."""

from __future__ import annotations

import hashlib

from crossdock.values import exact_json
from crossdock_connectors.shop.settings import ShopSettings

_MAPPED = {
    "charges", "currency", "guests", "invoices", "locations", "lot", "price_currency", "product_key",
    "product_namespace", "progress", "refunds", "statuses", "stock_quantity", "tracking_carriers", "unit_of_measure",
    "warehouse",
}  # fmt: skip


def version_of(settings: ShopSettings, mapping: int) -> str:
    """Return the version of a mapping: the number *mapping* of its code, and a hash of the settings that it uses."""
    facts = settings.model_dump(mode="json", include=_MAPPED)
    return f"{mapping}:{hashlib.sha256(exact_json.dumps(facts)).hexdigest()[:32]}"
