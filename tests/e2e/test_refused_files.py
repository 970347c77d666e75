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


@pytest.mark.nightly(but=["corrected-another zone than before", "removed-two zones"])
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


@pytest.mark.nightly(but=["True-1-False"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("rows", [1, 3_000])
@pytest.mark.parametrize("removed", [False, True])
def test_a_file_that_one_stream_refuses_is_delivered_by_another(
    tmp_path: Path, platform: SandboxServer, rows: int, *, shared: bool, removed: bool
) -> None:
    """What the refusing stream read first is still there for the other one, and both go on when it is mended."""
    files = "out/S_*.csv"
    products = table(files, ["SKU"], resource="product", map={"sku": "SKU", "name": "NAME"})
    customers = table(files, ["NO"], resource="customer", map={"name": "WHO", "email": "MAIL"})
    wms = {"kind": "folder_warehouse", "path": ".", "settle_s": 0}
    if shared:
        source = {key: products.pop(key) for key in ("files", "format")}
        wms |= {"sources": {"s": source}}
        products["source"] = "s"
        customers = {key: value for key, value in customers.items() if key not in source} | {"source": "s"}
    project = FolderProject(
        tmp_path, platform, {"wms": {**wms, "streams": {"products": products, "customers": customers}}}
    )
    assert project.run("init").exit_code == 0
    project.write("S_1.csv", "SKU;NAME;NO;WHO;MAIL\nP0;Bolt;C0;Ada;a@b.example\n")
    project.sync()
    lines = [f"P{number};Nut;C{number};Ada;a@b.example\n" for number in range(1, rows + 1)]
    project.write("S_2.csv", "".join(["SKU;NAME;NO;WHO;MAILS\n", *lines]))
    night = project.sync(4)
    assert night["streams"]["wms.products"]["records"]["created"] == rows
    if removed:
        (project.folder / "out" / "S_2.csv").unlink()
    else:
        project.write("S_2.csv", "".join(["SKU;NAME;NO;WHO;MAIL\n", *lines]))
    mended = project.sync()["streams"]
    assert mended["wms.customers"]["records"]["created"] == (0 if removed else rows)
    project.write("S_3.csv", "SKU;NAME;NO;WHO;MAIL\nP9999;Bolt;C9999;Ada;a@b.example\n")
    assert [each["records"]["created"] for each in project.sync()["streams"].values()] == [1, 1]
