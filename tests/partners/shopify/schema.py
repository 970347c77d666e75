"""The part of Shopify's Admin schema that the fake answers, version 2026-10; ``schema.graphql`` has it.

A test compares it with the published schema: a query that it accepts is one that Shopify accepts.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from graphql import GraphQLScalarType, GraphQLSchema, build_schema
from tests.partners.shopify.records import shown

VERSION = "2026-10"
_FILE = Path(__file__).with_name("schema.graphql")


@lru_cache(maxsize=1)
def admin_schema() -> GraphQLSchema:
    schema = build_schema(_FILE.read_text(encoding="utf-8"))
    for name, serialize in _SCALARS.items():
        cast("GraphQLScalarType", schema.type_map[name]).coerce_output_value = serialize
    return schema


def _date_time(value: Any) -> str:
    return shown(value) if isinstance(value, datetime) else str(value)


def _decimal(value: Any) -> str:
    """Without zeros at the end but for one after the point, such as "10.0" and "598.94"."""
    plain = f"{Decimal(value).normalize():f}"
    return plain if "." in plain else f"{plain}.0"


def _money(value: Any) -> str:
    """With two decimals, such as "10.00"."""
    return f"{Decimal(value):.2f}"


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "DateTime": _date_time,
    "Decimal": _decimal,
    "Money": _money,
    "UnsignedInt64": str,
}
