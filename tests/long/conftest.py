"""How the tests of this folder open states: as those of `tests.chaos`."""

from __future__ import annotations

from tests.chaos.conftest import states_are_quick

__all__ = ["states_are_quick"]  # a fixture
