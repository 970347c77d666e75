"""Files of changes with content that came before: the newest file counts, in whatever runs they are read."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.folder_project import FolderProject

from crossdock.sandbox import SandboxServer

HEADER = "SKU;NAME\n"
AT = 1_767_225_600


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[SandboxServer]:
    for folder in ("done", "out"):
        (tmp_path / folder).mkdir()
    with SandboxServer(tmp_path / "sandbox") as running:
        yield running


def connection(files: str, *, is_renewed: bool = False, **more: Any) -> dict[str, Any]:
    """Two streams that read the same *files*; the mapping is another one if it *is_renewed*."""
    product = {"sku": "SKU", "name": "NAME"} | ({"active": {"const": True}} if is_renewed else {})
    stream = {"source": "all", "mode": "append", "key": ["SKU"]}
    return {
        "wms": {
            "kind": "folder_warehouse",
            "path": ".",
            "settle_s": 0,
            "sources": {"all": {"files": files, "format": {"kind": "delimited", "delimiter": ";"}} | more},
            "streams": {
                "products": {**stream, "resource": "product", "map": product},
                "customers": {**stream, "resource": "customer", "map": {"name": "NAME"}},
            },
        }
    }


def write(project: FolderProject, name: str, rows: dict[str, str], second: int) -> None:
    path = project.folder / "out" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    project.write(name, HEADER + "".join(f"{sku};{text}\n" for sku, text in rows.items()))
    os.utime(path, (AT + second,) * 2)


def held(project: FolderProject) -> list[str]:
    """The names that the platform has of the customer and the product P, as its effects tell."""
    return [each["body"]["name"] for _, each in sorted({each["resource"]: each for each in project.effects()}.items())]


@pytest.mark.nightly(but=["2-202601{number:02}/ITEM.csv", "5-ITEM_20260101_{number}.csv"])
@pytest.mark.parametrize("name", ["ITEM_{number}.csv", "ITEM_20260101_{number}.csv", "202601{number:02}/ITEM.csv"])
@pytest.mark.parametrize("seed", range(2, 6))
def test_the_newest_file_counts(tmp_path: Path, platform: SandboxServer, name: str, seed: int) -> None:
    """A night may bring several files, or another mapping, or the former one; values return to what they were."""
    chance = random.Random(f"{seed} {name}")
    files, archives = "out/*/ITEM.csv" if "/" in name else "out/ITEM_*.csv", seed % 2 == 1 and "/" not in name
    more: dict[str, Any] = {"archive": "done"} if archives else {}
    project = FolderProject(tmp_path, platform, connection(files, **more))
    assert project.run("init").exit_code == 0
    truth, sent = dict[str, str](), list[str]()
    for _ in range(6):
        for _ in range(chance.randint(0, 3)):
            rows = {"P": chance.choice("AAB")} if chance.random() < 0.9 else {}
            truth |= rows
            sent.append(name.format(number=len(sent) + 1))
            write(project, sent[-1], rows, len(sent) * 60)
        if chance.random() < 0.3:
            project = FolderProject(tmp_path, platform, connection(files, is_renewed=chance.random() < 0.5, **more))
        project.sync()
        assert held(project) == [*truth.values()] * 2
    if archives:
        assert {path.name for path in (tmp_path / "done").iterdir()} == set(sent)


def test_a_mapping_that_returns_maps_again(tmp_path: Path, platform: SandboxServer) -> None:
    """The files are the same as when it was used first, and were mapped in another way since."""
    for number, column in enumerate(["NAME", "SKU", "NAME"]):
        connections = connection("out/ITEM_*.csv")
        connections["wms"]["streams"]["customers"]["map"]["name"] = column
        project = FolderProject(tmp_path, platform, connections)
        if not number:
            assert project.run("init").exit_code == 0
            write(project, "ITEM_1.csv", {"P": "A"}, 0)
        project.sync()
        assert held(project)[0] == {"NAME": "A", "SKU": "P"}[column]


@pytest.mark.nightly(but=["names0"])
@pytest.mark.parametrize(
    "names",
    [
        ["HAM_20261125.csv", "BRE_20261126.csv", "HAM_20261127.csv"],
        ["ITEM_1.csv", "ITEM_2.csv", "ITEM_2-CORR.csv"],
        ["ITEM_20261125.csv", "ITEM_20261125_1.csv", "ITEM_20261126.csv"],
    ],
)
def test_names_of_several_forms(tmp_path: Path, platform: SandboxServer, names: list[str]) -> None:
    """A value that returns counts where the times decide, and a file that stays listed is no new one."""
    project = FolderProject(tmp_path, platform, connection("out/*.csv", expect={"every": "1d"}))
    assert project.run("init").exit_code == 0
    for number, (name, text) in enumerate(zip(names, "ABA", strict=True)):
        write(project, name, {"P": text}, number * 60)
        project.run("sync")
    assert held(project) == ["A", "A"]
    assert project.run("sync").exit_code == 3, "no file has come for a day"


def test_a_file_that_is_rewritten_with_the_content_of_a_newer_one(tmp_path: Path, platform: SandboxServer) -> None:
    """It is passed over, and stays so; other files, and another mapping, are not refused because of it."""
    project = FolderProject(tmp_path, platform, connection("out/ITEM_*.csv"))
    assert project.run("init").exit_code == 0
    for night in ({1: "A"}, {1: "B", 2: "B"}, {}, {3: "C"}, {3: "D"}):
        for number, text in night.items():
            write(project, f"ITEM_{number}.csv", {"P": text}, number * 60 + ord(text))
        project.sync()
    assert held(project) == ["D", "D"]
    renewed = FolderProject(tmp_path, platform, connection("out/ITEM_*.csv", is_renewed=True))
    renewed.sync()
    assert held(renewed) == ["D", "D"]


BY_NAME = {"name": "{text}_{date:%Y%m%d}.csv"}


@pytest.mark.nightly(but=["derived", "by time"])
@pytest.mark.parametrize(
    ("order", "left"),
    [
        pytest.param(None, 4, id="derived"),
        pytest.param(None, 3, id="derived, older backup"),
        pytest.param(BY_NAME, 4, id="by name"),
        pytest.param(BY_NAME, 3, id="by name, older backup"),
        pytest.param("modified", 4, id="by time"),
    ],
)
def test_a_copied_folder_brings_nothing(tmp_path: Path, platform: SandboxServer, order: Any, left: int) -> None:
    """A move to another server or a restored backup gives known files new times, in whatever order they were copied."""
    more = {"order": order} if order else {}
    project = FolderProject(tmp_path, platform, connection("out/*.csv", **more))
    assert project.run("init").exit_code == 0
    names = ["BRE_20261124.csv", "HAM_20261124.csv", "HAM_20261125.csv", "BRE_20261125.csv"]
    for number, (name, text) in enumerate(zip(names, "ABCD", strict=True)):
        write(project, name, {"P": text}, number * 60)
        project.sync()
    for number, (name, text) in enumerate(sorted(zip(names, "ABCD", strict=True))):
        write(project, name, {"P": text}, 86_400 + number * 60)
    for name in names[left:]:
        (project.folder / "out" / name).unlink()
    before = project.effects()
    project.sync()
    assert project.effects() == before
    write(project, "HAM_20261126.csv", {"P": "A"}, 2 * 86_400)
    project.sync()
    assert held(project) == ["A", "A"]
