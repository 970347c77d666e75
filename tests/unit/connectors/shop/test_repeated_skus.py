"""Variants with the same SKU are told, once for each."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from crossdock import Context
from crossdock_connectors.shop.streams import MAX_WARNED, RepeatedSkuWarner


class _Run:
    def __init__(self) -> None:
        self.warned: list[str] = []

    def warn(self, stream: str, text: str, *, code: str) -> None:
        self.warned.append(f"{stream}: {text}")


def _skus() -> tuple[RepeatedSkuWarner, _Run]:
    run = _Run()
    return RepeatedSkuWarner(cast("Context[Any]", SimpleNamespace(connection="shop", run=run))), run


def test_another_variant_with_the_same_sku_is_told() -> None:
    """The same variant, which may be read twice, is not; neither is a variant without a SKU."""
    skus, run = _skus()
    skus.warn_of_repeated([("LAMP", "1"), ("CHAIR", "2"), ("LAMP", "1"), (None, "3"), (None, "4")])
    assert run.warned == []
    skus.warn_of_repeated([("LAMP", "5")])
    assert run.warned == [
        "shop.products: several variants have the SKU LAMP: they are one product, and the last one counts"
    ]


def test_a_shop_that_repeats_all_skus_is_not_told_of_each() -> None:
    """The report stays readable."""
    skus, run = _skus()
    for variant in ("1", "2"):
        skus.warn_of_repeated((f"SKU-{number}", variant) for number in range(100))
    assert len(run.warned) == MAX_WARNED
