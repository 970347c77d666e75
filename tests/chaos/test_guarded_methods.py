"""Methods of authors that raise end no run, hide no message and lose nothing; `tests/long` has more of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos import guarded_methods
from tests.chaos.guarded_methods import Part
from tests.chaos.guarded_target import STREAM, TARGET

from crossdock.state import parse_database_url


@pytest.mark.nightly
def test_any_methods_raise_at_random(tmp_path: Path) -> None:
    """Methods of a target, a stream or an API raise at random: no exit 70, no hidden message, nothing sent twice."""
    raised = guarded_methods.any_methods(tmp_path, parse_database_url("sqlite:///state.db", tmp_path), range(3, 6))
    assert len(raised) > 5, raised


@pytest.mark.nightly(but=["target-client", "target-look_up", "api-close", "api-estimate", "api-at_end"])
@pytest.mark.parametrize(
    ("part", "name"),
    [
        pytest.param(part, name, id=f"{part}-{name}")
        for part, names in {"target": ["found", "client", "look_up"], "api": ["close", "estimate", "at_end"]}.items()
        for name in names
    ],
)
def test_a_method_that_always_raises(tmp_path: Path, part: Part, name: str) -> None:
    """What is undecided after a lost answer is in doubt and not sent again; the other streams are delivered."""
    raised = guarded_methods.each_method(tmp_path, parse_database_url("sqlite:///state.db", tmp_path), [name], part)
    assert set(raised) == {name}


def test_the_methods_are_those_of_the_classes() -> None:
    """A method that is added to a class is one that these tests let raise."""
    assert {"create", "outcome", "found", "name_of", "check_key", "with_key", "limit", "send", "client"} <= TARGET
    assert {"pull", "existing", "fetch", "finished", "to_resource"} <= STREAM
