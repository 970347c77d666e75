"""Texts of partners, files, configs and people in a real browser: they are shown, and are nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.console_hostility import show_hostile_texts
from tests.hostile_texts import PAYLOADS

pytestmark = pytest.mark.nightly


def test_no_text_becomes_a_part_of_a_page(tmp_path: Path) -> None:
    """More than 200 payloads, in turn in all texts of a state, and each page that links lead to."""
    assert len(PAYLOADS) > 200
    show_hostile_texts(tmp_path, PAYLOADS)
