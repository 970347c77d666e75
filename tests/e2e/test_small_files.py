"""Many small files in one night: each costs the same, however many there are."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import pytest
from sqlalchemy import Engine, event
from tests.chaos.books import Platform
from tests.chaos.scripted import Scripted

from crossdock.config.project import project
from crossdock.runs import sync_and_replay
from crossdock.state import PinnedTenant, create_or_upgrade_state, parse_database_url
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import SilentProgress

START = datetime(2026, 11, 24, 1, tzinfo=UTC)
CONFIG = """\
platform: {{base_url: "{address}", tenant: acme, auth: {{kind: api_key, token: env:KEY}}}}
state: sqlite:///state.db
connections:
  wms:
    kind: folder_warehouse
    path: .
    settle_s: 0
    streams:
      products:
        {{mode: append, files: "P_*.csv", key: [SKU], resource: product, map: {{sku: SKU, name: NAME}}, archive: done}}
"""


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Counts SQL statements, and calls of the product's functions, in this thread. Libraries wait for other threads.

    Others look at the state from time to time, more often if the machine is slow.
    """
    steps, thread = Counter[str](), threading.get_ident()

    def statement(*_: object) -> None:
        steps["statements"] += threading.get_ident() == thread

    def call(frame: FrameType, kind: str, _argument: object) -> None:
        if kind == "call" and frame.f_globals.get("__name__", "").startswith("crossdock."):
            steps["calls"] += 1

    event.listen(Engine, "before_cursor_execute", statement)
    sys.setprofile(call)
    try:
        yield steps
    finally:
        sys.setprofile(None)
        event.remove(Engine, "before_cursor_execute", statement)


class Desk:
    """Products P0, P1 and so on, which night after night are exported again with another remark."""

    def __init__(self, folder: Path, server: Scripted) -> None:
        self._folder, self._clock = folder, ManualClock(START)
        (folder / "done").mkdir()
        (folder / "c.yaml").write_text(CONFIG.format(address=server.base_url))
        self._night = 0

    def sync(self, files: Iterable[range]) -> Counter[str]:
        """One night, with a file for each range of products; the steps that it took."""
        self._night += 1
        for number, products in enumerate(files):
            path = self._folder / f"P_{self._night}_{number:05}.csv"
            rows = "".join(f"P{each},Product {each},{self._night}\n" for each in products)
            path.write_text(f"SKU,NAME,REMARK\n{rows}")
            os.utime(path, (START.timestamp() - 9_000_000 + self._night * 1_000_000 + number,) * 2)
        self._clock.advance(86_400)
        with counted() as steps:
            report = sync_and_replay.sync(
                project.load(self._folder / "c.yaml"),
                [],
                clock=self._clock,
                progress=SilentProgress(),
                interrupt=threading.Event(),
            )
        assert report.exit_code == 0
        assert not [*self._folder.glob("P_*.csv")], "all are moved to the archive"
        return steps


def test_each_file_costs_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A night of 100 small files takes as many SQL statements as one of 25, and not more function calls for each."""
    monkeypatch.setenv("KEY", "k")
    with Scripted(Platform(keys=True).answer) as server:
        create_or_upgrade_state(
            parse_database_url("sqlite:///state.db", tmp_path), PinnedTenant(server.base_url, "acme")
        )
        desk = Desk(tmp_path, server)
        desk.sync([range(100)])
        few, more, many = (desk.sync(range(each, each + 1) for each in range(files)) for files in (25, 50, 100))
    assert few["statements"] == more["statements"] == many["statements"]
    assert (many["calls"] - more["calls"]) / 50 < 1.01 * (more["calls"] - few["calls"]) / 25
