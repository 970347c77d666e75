"""The first record that claims a value keeps it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crossdock.runs.planning.adoptable_records import ClaimedValues

_CLAIMS = st.lists(st.tuples(st.text(max_size=2), st.integers(0, 2**128 - 1) | st.integers(0, 3)))


@given(claims=_CLAIMS)
def test_it_is_the_first(claims: list[tuple[str, int]]) -> None:
    """As a dictionary would have it, for any texts and key hashes, however often they come again."""
    values, first = ClaimedValues(), dict[str, int]()
    for value, key_hash in claims:
        owner = first.setdefault(value, key_hash)
        assert values.claim(value, key_hash) is (owner == key_hash or owner % 2**64 == key_hash % 2**64)
    assert len(values) == len(first)


def test_many_are_kept() -> None:
    """Beyond its first size it grows and forgets none."""
    values = ClaimedValues()
    assert all(values.claim(f"SKU-{number}", number) for number in range(20_000))
    assert all(values.claim(f"SKU-{number}", number) for number in range(20_000))
    assert not any(values.claim(f"SKU-{number}", number + 1) for number in range(20_000))
    assert len(values) == 20_000
