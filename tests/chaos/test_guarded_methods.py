"""Methods of authors that raise end no run, hide no message and lose nothing; `tests/long` has more of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos import guarded_methods
from tests.chaos.guarded_target import STREAM, TARGET

from crossdock.state import parse_url


@pytest.mark.nightly
def test_any_methods_raise_at_random(tmp_path: Path) -> None:
    """Methods of a target and of a stream raise at random: no exit 70, no hidden message, nothing is sent twice."""
    raised = guarded_methods.any_methods(tmp_path, parse_url("sqlite:///state.db", tmp_path), range(4, 6))
    assert len(raised) > 5, raised


@pytest.mark.nightly(but=["client", "look_up"])
@pytest.mark.parametrize("name", ["found", "client", "look_up"])
def test_a_method_that_always_raises(tmp_path: Path, name: str) -> None:
    """What is undecided after a lost answer is in doubt and not sent again; the other streams are delivered."""
    raised = guarded_methods.each_method(tmp_path, parse_url("sqlite:///state.db", tmp_path), [name], of_stream=False)
    assert set(raised) == {name}


def test_the_methods_are_those_of_the_classes() -> None:
    """A method that is added to a class is one that these tests let raise."""
    assert {"create", "outcome", "found", "name_of", "check_key", "with_key", "limit", "send", "client"} <= TARGET
    assert {"pull", "existing", "fetch", "finished", "to_resource"} <= STREAM
