"""What is promised of hostile texts and servers, at full size: ``pytest tests/long/test_fuzz.py``, some minutes."""

from __future__ import annotations

import pytest
from tests.fuzz import hungry, raw_answers, readers


def test_json_bytes() -> None:
    """Bytes are a value that comes back, or a ValueError that quotes nothing of them."""
    readers.json_bytes(20_000)


def test_header_fields() -> None:
    """Fields of rate limits and pauses are read within their bounds or passed over."""
    readers.header_fields(20_000)


def test_link_fields() -> None:
    """A Link field is read or refused, and hides no link that stands before it."""
    readers.link_fields(20_000)


def test_answers() -> None:
    """Any answer has one meaning with bounded texts."""
    readers.answers(10_000)


@pytest.mark.parametrize("seed", range(5))
def test_raw_answers(seed: int) -> None:
    """Whatever bytes come as an answer, it is read whole or fails with an error of ours that quotes none of them."""
    raw_answers.raw_answers(2_000, seed)


@pytest.mark.parametrize("name", [*hungry.BODIES, *hungry.ANSWERS])
def test_memory(name: str) -> None:
    """No text or answer that is made to fill memory takes more than 400 MiB, with all that Python needs."""
    assert hungry.most_mib([name]) <= 400
