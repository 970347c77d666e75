"""Streams that list changes: what the source deleted is removed, however it says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos import deletes
from tests.chaos.deletes import Way

from crossdock.mapping.stream_declaration import OnGone
from crossdock.state import parse_database_url


@pytest.mark.parametrize(
    ("way", "on_gone", "seed"),
    [  # the first seed reads in parts, the second one does not
        ("marked", "delete", 1),
        ("marked", "archive", 2),
        ("named", "delete", 2),
        ("named", "archive", 1),
        ("listed", "delete", 1),
        ("listed", "archive", 2),
    ],
)
def test_nothing_deleted_stays(tmp_path: Path, way: Way, on_gone: OnGone, seed: int) -> None:
    """Records are deleted and created again between runs and within pages, and pages fail."""
    url = parse_database_url("sqlite:///state.db", tmp_path)
    happened = deletes.nothing_deleted_stays(tmp_path, url, way=way, on_gone=on_gone, seed=seed)
    assert happened["create"]
