"""Texts of platforms at full size, on both databases."""

from __future__ import annotations

import pytest
from tests.integration.delivery.harness import Bench, Platform
from tests.integration.delivery.test_odd_texts import refuse_anything
from tests.servers import served

from crossdock.state import State


def test_any_refusal_is_settled(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever texts refusals hold, each record is settled as a dead letter."""
    with served(Platform()) as platform:
        refuse_anything(Bench(state, platform.server_port, monkeypatch), platform, 400)
