"""Digests recognise exactly the contents that were added."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crossdock.state import (
    PackedDigests,
)


@given(st.lists(st.lists(st.text(max_size=3), max_size=20), max_size=5), st.text(max_size=3))
def test_digests_know_what_was_put_in(parts: list[list[str]], other: str) -> None:
    """In whatever parts and however often contents are put in, exactly they are known, each in 16 bytes."""
    known = PackedDigests()
    for part in parts:
        known = known.with_more(part)
    contents = {content for part in parts for content in part}
    assert all(content in known for content in contents)
    assert (other in known) == (other in contents)
    assert len(known.packed) == 16 * len(contents)
    assert bool(known) == bool(contents)
