"""Hashes of 128 bits for hypothesis: the whole range, and most often where a sign or a half begins."""

from __future__ import annotations

from hypothesis import strategies as st

_EDGES = [0, 2**31, 2**32, 2**63, 2**64, 2**95, 2**96, 2**127, 2**128]
NEAR_EDGES = sorted({edge + step for edge in _EDGES for step in (-1, 0, 1) if 0 <= edge + step < 2**128})

_HALVES = st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)
HASHES: st.SearchStrategy[int] = (
    st.sampled_from(NEAR_EDGES)
    | st.integers(0, 2**128 - 1)
    | st.builds(lambda high, low: high << 64 | low, _HALVES, _HALVES)
)
