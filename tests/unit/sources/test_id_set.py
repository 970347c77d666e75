"""An id set knows exactly the ids that were added."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.reading.sources import compact_id_set
from crossdock.reading.sources.compact_id_set import IdSet

_IDS = st.lists(st.text(max_size=12))


@given(pages=st.lists(_IDS, max_size=6), asked=_IDS)
def test_those_that_were_added_are_found(pages: list[list[str]], asked: list[str]) -> None:
    """However they come in pages, each id is new once, and what else is asked for is not found."""
    ids, before = IdSet(), set[str]()
    for page in pages:
        assert ids.add(page) == len({*page} - before)
        before |= {*page}
        assert len(ids) == len(before)
    added = {each for page in pages for each in page}
    wanted = [*asked, *added]
    assert ids.known_ids_among(wanted) == added & {*wanted}
    assert ids.known_ids_among([]) == set()


def test_many_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """More ids than are kept apart are found as well, also those that were added after the first question."""
    monkeypatch.setattr(compact_id_set, "_RECENT", 10)
    ids = IdSet()
    for number in range(100):
        ids.add([f"prd_{number}"])
        assert ids.known_ids_among([f"prd_{number}", f"prd_{number + 1}"]) == {f"prd_{number}"}
