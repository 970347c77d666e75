"""Retention, and the order of jobs."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from crossdock.config.project.project import Retention

ADAPTER: TypeAdapter[str] = TypeAdapter(Retention)


@pytest.mark.parametrize(("written", "kept"), [("7d", "7d"), ("36525d", "36525d"), ("off", "off"), (False, "off")])
def test_retention(written: object, kept: str) -> None:
    """A number of days within the bounds, or off, which YAML reads as false."""
    assert ADAPTER.validate_python(written) == kept


@pytest.mark.parametrize("written", ["6d", "36526d", "12h", "", 90, True, None, ["90d"]])
def test_other_retentions_are_refused(written: object) -> None:
    """The message says what is allowed."""
    with pytest.raises(ValidationError, match="must be a number of days from 7d to 36525d, or off; not "):
        ADAPTER.validate_python(written)
