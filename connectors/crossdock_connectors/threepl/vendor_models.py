"""Types of the members of orders that are sent to 3PLs."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema


def _whole(value: Any) -> Any:
    """A decimal without a fraction as an integer; other values are left to pydantic."""
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return int(value)
    return value


Units = Annotated[
    int, BeforeValidator(_whole), Field(ge=1, le=2**31 - 1, strict=True), WithJsonSchema({"type": "integer"})
]
"""A whole number of units, at least one."""
