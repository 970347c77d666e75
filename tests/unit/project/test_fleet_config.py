"""The section `fleet`."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from crossdock.config.project.project import FleetConfig


def test_its_defaults() -> None:
    """A few runs at once, and a file beside the config."""
    config = FleetConfig()
    assert (config.database, config.at_once, config.per_host, config.folder) == ("sqlite:///fleet.db", 4, 2, None)


@pytest.mark.parametrize("key", ["at_once", "per_host"])
@pytest.mark.parametrize("value", [0, -1, 1001, "many"])
def test_limits_have_bounds(key: str, value: object) -> None:
    """From 1 to 1,000."""
    with pytest.raises(ValidationError):
        FleetConfig.model_validate({key: value})
