"""Each method that an author can write raises, always and at random, in many more nights than the suite has."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos import guarded_methods
from tests.chaos.chance import chaos_seed
from tests.chaos.guarded_methods import PARTS, Part

from crossdock.state import parse_database_url


@pytest.mark.parametrize("part", PARTS)
def test_each_method_always_raises(tmp_path: Path, part: Part) -> None:
    """One method raises whenever it is called, for two nights: the other streams are delivered, and later this one."""
    names = sorted(PARTS[part])
    url = parse_database_url("sqlite:///state.db", tmp_path)
    raised = guarded_methods.each_method(tmp_path, url, names, part)
    print(", ".join(f"{name} {number}" for name, number in raised.items()))


@pytest.mark.parametrize("part", range(6))
def test_any_methods_raise_at_random(tmp_path: Path, part: int) -> None:
    """Many methods raise at random for four nights: no exit 70, no hidden message, nothing is sent twice or lost."""
    first = chaos_seed() + 30 * part
    raised = guarded_methods.any_methods(
        tmp_path, parse_database_url("sqlite:///state.db", tmp_path), range(first, first + 30)
    )
    print(f"{raised.total():,} exceptions of {len(raised)} methods")
