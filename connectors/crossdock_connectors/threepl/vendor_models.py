"""Types of the members of orders that are sent to 3PLs."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from crossdock.values.field_types import whole

Units = Annotated[
    int, BeforeValidator(whole), Field(ge=1, le=2**31 - 1, strict=True), WithJsonSchema({"type": "integer"})
]
"""A whole number of units, at least one."""
