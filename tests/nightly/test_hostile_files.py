"""Exports that try to take the memory, and a spool folder that is not ours alone, end to end."""

from __future__ import annotations

import gzip
import json

import pytest
from tests.e2e.test_folder_warehouse import serve_folder
from tests.e2e.warehouse import Site
from tests.memory import LIMIT_MB, measured
from tests.unit.formats.hostile import HOSTILE, SIZE

NAMES = [
    "delimiters in a row",
    "short quoted rows under a wide header",
    "lines in a cell",
    "rows without a key",
    "new rows in a wide table",
    "tiny rows",
]
CONNECTION = """\
  hostile{number}:
    kind: folder_warehouse
    path: served
    settle_s: 0
    streams:
      rows:
        mode: snapshot
        files: "out/HOSTILE_{number}.gz"
        format: {layout}
        key: [{key}]
        resource: product
        map: {{sku: {key}, name: {key}}}
"""
WIDE_MB = 400  # polars takes some kilobytes per column of a frame, and a run holds several frames
REFUSALS = {
    "delimiters in a row": ":2: 9900001 columns",
    "short quoted rows under a wide header": ":2: 1 field instead of 4096",
    "rows without a key": "rows have no key, too many to keep",
}


def put(site: Site, names: list[str]) -> None:
    """One connection more for each hostile file."""
    more = ""
    for number, name in enumerate(names):
        hostile = HOSTILE[name]
        data = hostile.data(SIZE)
        site.export(f"HOSTILE_{number}.gz", gzip.compress(data, 6, mtime=0))
        key = "C0" if data.startswith(b"C0,") else "A"
        layout = json.dumps({"kind": "delimited", **hostile.layout})
        more += CONNECTION.format(number=number, layout=layout, key=key)
    site.config.write_text(site.config.read_text() + more)


@pytest.fixture
def depot(site: Site) -> Site:
    serve_folder(site)
    return site


def takes_little_memory(depot: Site, names: list[str], most_mb: int = LIMIT_MB) -> None:
    """Fails unless those of *names* that are refused are reported, and the plan takes *most_mb* at most."""
    depot.fill()
    put(depot, names)
    depot.init()
    ended = measured("crossdock", ["-C", str(depot.config), "plan"], cwd=str(depot.folder))
    assert ended.code == 4, ended.err
    assert "Traceback" not in ended.err + ended.out
    assert ended.peak_mb <= most_mb, f"{ended.peak_mb} MB"
    for name, says in REFUSALS.items():
        assert f"hostile{names.index(name)}" in ended.err
        assert says in ended.err
    assert "create wms.customers" in ended.out


def test_a_run_over_hostile_files_takes_little_memory(depot: Site) -> None:
    """Files that try to grow are refused one by one, with their place; what is in order beside them is planned."""
    takes_little_memory(depot, list(REFUSALS))


def test_a_run_over_the_widest_table_takes_little_memory(depot: Site) -> None:
    """Rows of as many columns as a table may have are in order, and are planned."""
    takes_little_memory(depot, [*REFUSALS, "new rows in a wide table"], WIDE_MB)


@pytest.mark.parametrize("link", [False, True], ids=["folder", "way in a shared folder"])
def test_an_open_spool_stops_a_run(depot: Site, link: bool) -> None:
    """No copy of an export is put where others can read it; closed, the same folder is taken."""
    spool = depot.folder / "spool"
    depot.edit("state:", "spool: spool\nstate:")
    depot.fill()
    depot.init()
    (depot.folder / "theirs" if link else spool).mkdir()
    if link:
        spool.symlink_to(depot.folder / "theirs")
    spool.chmod(0o755)
    stopped = depot.sync()
    assert stopped.code == 3
    assert f"{spool}: the folder is open to other users (mode 755)" in stopped.err
    assert f"chmod 700 {spool}" in stopped.err
    assert list(spool.iterdir()) == []
    assert depot.effects() == []
    spool.chmod(0o700)
    assert depot.sync().code == 0
    depot.assert_everything_once()
