"""The variant of a target under test that does not wait."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.testing.target_connector import DepotSettings, OrderTarget, connector

from crossdock.sources import RateLimit
from crossdock.testing.record_source_for_target_tests import connector_whose_target_never_waits
from crossdock.values.config_base_types import Secret

SETTINGS = DepotSettings(kind="depot", base_url="https://depot.example", token=Secret("env:DEPOT_TOKEN", Path()))


@pytest.mark.parametrize(("rate", "most"), [(RateLimit(per_minute=60), 600_000), (RateLimit(), None)])
def test_a_rate_limit_that_a_connector_sets_is_lifted(rate: RateLimit, most: int | None) -> None:
    """Acceptances would wait for it; one that is learned stays, since the fake of the partner reports none."""
    given = replace(connector(OrderTarget), api=lambda own: own.api(rate=rate))
    api = connector_whose_target_never_waits(given).api
    assert api is not None
    made = api(SETTINGS)
    assert isinstance(made.rate, RateLimit)
    assert made.rate.per_minute == most
