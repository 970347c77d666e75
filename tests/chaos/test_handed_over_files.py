"""Files for a warehouse: exactly once, however the wire ends. Long: `tests.long.test_handed_over_files`."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.handed_over_files import Trouble, a_copying_server, a_drop_box, orders_arrive_once
from tests.partners.file_depot import How


def test_a_drop_box(tmp_path: Path) -> None:
    """What could not be renamed is handed over by a later run; a lost answer doubles nothing that cannot be read."""
    a_drop_box(tmp_path)


def test_a_copying_server(tmp_path: Path) -> None:
    """A temporary file that is left says nothing there: what may have been taken is in doubt, and not doubled."""
    a_copying_server(tmp_path)


@pytest.mark.nightly(but=["moves"])
@pytest.mark.parametrize("how", get_args(How))
def test_orders_arrive_once(tmp_path: Path, how: How) -> None:
    """A kill at the rename, a lost answer and a full disk: no order twice, none lost, changes in their order."""
    troubles = [Trouble("done", 4, polls=True), Trouble("lost", 4, polls=True), Trouble("full", 2, polls=False)]
    met = orders_arrive_once(tmp_path, how, troubles, chaos_seed())
    assert met["done"] == met["lost"] == met["full"] == 1
