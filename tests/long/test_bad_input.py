"""Each bad file alone: ``pytest tests/long/test_bad_input.py``, half a minute."""

from __future__ import annotations

import pytest
from tests.e2e.conftest import platform, site
from tests.e2e.test_bad_input import BAD_FILES, bad_files_never_enter
from tests.e2e.warehouse import Site

__all__ = ["platform", "site"]  # fixtures


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_never_enters(site: Site, name: str) -> None:
    """A damaged file is refused as a whole with exit 4 and its place, the others go on; mended it is delivered."""
    bad_files_never_enter(site, {name: BAD_FILES[name]})
