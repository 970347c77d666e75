"""Each hostile text in each place that a page shows: ``pytest tests/long/test_hostile_texts.py -n 2``, some minutes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.console_hostility import show_hostile_texts
from tests.hostile_texts import PAYLOADS


@pytest.mark.parametrize("turn", range(0, len(PAYLOADS), 9))
def test_no_text_becomes_a_part_of_a_page(tmp_path: Path, turn: int) -> None:
    """As in the short form, with other texts in each place and more pages of each kind."""
    show_hostile_texts(tmp_path, (*PAYLOADS[turn:], *PAYLOADS[:turn]), of_each=4)
