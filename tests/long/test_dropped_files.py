"""Sixty nights of warehouses with thirty naming schemes: ``pytest tests/long/test_dropped_files.py -n 2 -rP``, an hour.

``CROSSDOCK_CHAOS_SEED`` gives other nights; ``-rP`` shows how many runs ended with each exit code.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.dropped_files import FOLDER, SCHEMES, serving, the_newest_row_wins

from crossdock.state import parse_database_url

PARTS, CASES, NIGHTS = 6, 10, 60


@pytest.mark.parametrize("store", ["sftp", "folder"])
@pytest.mark.parametrize("part", range(PARTS))
def test_the_newest_row_wins(tmp_path: Path, part: int, store: str) -> None:
    """As in the short form, with every naming scheme twice, from a folder and from an OpenSSH server."""
    assert len(SCHEMES) * 2 == PARTS * CASES
    url = parse_database_url("sqlite:///state.db", tmp_path)
    opened: AbstractContextManager[Mapping[str, object]] = nullcontext(FOLDER)
    with serving(tmp_path) if store == "sftp" else opened as connection:
        told = the_newest_row_wins(tmp_path, url, chaos_seed() + part * CASES, CASES, NIGHTS, connection)
    print(f"{CASES} warehouses, runs by exit code: {dict(told)}")
    assert told[0]
    assert told[4]
