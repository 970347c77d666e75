"""Variants of a shop with the same SKU, where the SKU is the key of products."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from crossdock import Context
from crossdock_connectors.shop.settings import ShopSettings

S = TypeVar("S", bound=ShopSettings)
MAX_WARNED = 20
"""The most warnings of one run."""


class RepeatedSkus:
    """Warns of variants with the same SKU in one run: they would be one product, and the last one would count."""

    def __init__(self, ctx: Context[S]) -> None:
        self._ctx = ctx
        self._variants: dict[int, int] = {}  # hashes, since the texts of a large shop could take a gigabyte
        self._warned = 0

    def warn_of_repeated(self, skus_with_variant_ids: Iterable[tuple[Any, Any]]) -> None:
        for sku, variant in skus_with_variant_ids:
            if not isinstance(sku, str):
                continue  # a row without a key, which is rejected
            first = self._variants.setdefault(hash(sku), hash(str(variant)))
            if first != hash(str(variant)) and self._warned < MAX_WARNED:
                self._warned += 1
                text = f"several variants have the SKU {sku}: they are one product, and the last one counts"
                self._ctx.run.warn(f"{self._ctx.connection}.products", text, code="sku_repeated")
