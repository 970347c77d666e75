from __future__ import annotations

from typing import get_args

import click
import pytest

from crossdock.cli import sandbox as command
from crossdock.sandbox import Fault, FaultSet
from crossdock.sandbox.app import Profile
from crossdock.sandbox.fault_injection import FaultName
from crossdock.sandbox.rate_limiter import RateLimitHeaderDialect


def test_the_command_offers_what_the_sandbox_supports() -> None:
    """The choices of the command are those of the sandbox."""
    assert get_args(FaultName) == command._FAULTS
    assert get_args(Profile) == command._PROFILES
    assert get_args(RateLimitHeaderDialect) == command._DIALECTS


def test_faults_are_read_from_the_command_line() -> None:
    """Name and probability of each, with the seed of all."""
    expected = FaultSet(faults=(Fault(name="slow", probability=0), Fault(name="lost_answer", probability=0.1)), seed=7)
    assert command._parse_fault_options(("slow=0", "lost_answer=0.1"), 7) == expected


@pytest.mark.parametrize("text", ["", "slow", "slow=", "slow=x", "slow=2", "slow=-1", "slow=nan", "fast=0.5"])
def test_a_malformed_fault_is_refused(text: str) -> None:
    """The message shows the form and the names."""
    with pytest.raises(click.BadParameter, match="a probability from 0 to 1, as in lost_answer=0.1; names are reset_"):
        command._parse_fault_options((text,), 0)
