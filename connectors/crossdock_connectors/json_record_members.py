"""Rows made of the records of an API."""

from __future__ import annotations

from typing import Any


def with_members(item: Any, **members: Any) -> Any:
    """Return a record with more *members*. What is no object stays, so that its row is rejected."""
    return {**item, **members} if isinstance(item, dict) else item
