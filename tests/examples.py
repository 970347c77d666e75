"""How many examples of a property are tried: few in the suite, all of them by ``tests/long/test_properties.py``."""

from __future__ import annotations

from hypothesis import settings

SHARE = 0.1
FEW, ALL = "crossdock", "all-examples"  # profiles of hypothesis


def examples(number: int) -> int:
    """*number* with the profile `ALL_RECORDS`, and a share of it in the suite."""
    return number if settings.get_current_profile_name() == ALL else round(number * SHARE)
