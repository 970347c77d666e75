"""Secrets of an example are found wherever they are shown or stored."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.testing.reference_connector import TOKEN, OrdersContract


def test_a_secret_in_a_file_is_found(tmp_path: Path) -> None:
    """Also in one that is not text, in any folder below; the error has its variable and not its value."""
    case = OrdersContract()
    (tmp_path / "below").mkdir()
    case.no_secret_in_files(tmp_path)
    (tmp_path / "below" / "state.db").write_bytes(b"\xff\x00" + TOKEN.encode() + b"\xfe")
    with pytest.raises(AssertionError, match=r"the file state\.db contains the secret SHOP_TOKEN") as found:
        case.no_secret_in_files(tmp_path)
    assert TOKEN not in str(found.value)
