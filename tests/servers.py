"""Real servers that a machine may or may not have."""

from __future__ import annotations

import os

import pytest


def require(available: bool, what: str) -> None:
    """Skip the test without *what*; in continuous integration its absence is a failure, not a reason to skip."""
    if available:
        return
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing on this machine, and CI must not skip")
    pytest.skip(f"{what} is not installed")
