"""A file of changes that is refused is not taken in: its sender corrects or removes it, and the next night goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.folder_project import FolderProject, table

from crossdock.sandbox import SandboxServer

BEFORE, AFTER = "P3;Cap;2026-11-03T08:00:00Z\n", "P4;Cap;2026-11-03T08:00:00+01:00\n"
GOOD, NEXT = "SKU;NAME;AT\nP1;Bolt;2026-11-01T08:00:00Z\n", "SKU;NAME;AT\nP2;Nut;2026-11-02T08:00:00Z\n"
ORDERED = {"order_by": ["AT"]}


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox") as running:
        yield running


@pytest.fixture(params=["removed", "corrected", "corrected as another"])
def mends(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(
    ("bad", "more"),
    [
        pytest.param("SKU;NAMES;AT\nP3;Cap;2026-11-03T08:00:00Z\n", {}, id="without a column"),
        pytest.param("SKU,NAME,AT\nP3,Cap,2026-11-03T08:00:00Z\n", {}, id="another delimiter"),
        pytest.param(f"SKU;NAME;AT\n{BEFORE}{AFTER}", ORDERED, id="two zones"),
        pytest.param(f"SKU;NAME;AT\n{AFTER}".replace("P4", "P1"), ORDERED, id="another zone than before"),
    ],
)
def test_a_refused_file_does_not_stay(
    tmp_path: Path, platform: SandboxServer, bad: str, more: dict[str, object], mends: str
) -> None:
    """Whatever it was refused for: once it is corrected or removed, it and the files after it are delivered."""
    map_ = {"sku": "SKU", "name": "NAME"}
    order = {"order": {"name": "ITEM_{number}.csv"}}  # a corrected file is younger than those after it
    products = table("out/ITEM_*.csv", ["SKU"], resource="product", map=map_, **order, **more)
    wms = {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": {"products": products}}
    project = FolderProject(tmp_path, platform, {"wms": wms})
    assert project.run("init").exit_code == 0
    project.write("ITEM_1.csv", GOOD)
    project.sync()
    project.write("ITEM_2.csv", bad)
    for _ in range(2):
        refused = project.run("sync")
        assert refused.exit_code == 4
        assert "ITEM_2.csv (" not in refused.stdout  # it was not read
    project.write("ITEM_3.csv", NEXT)
    project.sync(4)
    if mends == "corrected":
        project.write("ITEM_2.csv", GOOD.replace("P1", "P3"))
    else:
        (project.folder / "out" / "ITEM_2.csv").unlink()
    if mends == "corrected as another":
        project.write("ITEM_4.csv", GOOD.replace("P1", "P3"))
    night = project.sync()
    assert night["streams"]["wms.products"]["records"]["created"] == 1 + (mends != "removed")
    assert project.sync()["streams"]["wms.products"]["records"]["read"] == 0
