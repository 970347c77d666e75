"""Files of changes with content that came before: the newest file counts, in whatever runs they are read."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.folder_project import FolderProject, table

from crossdock.sandbox import SandboxServer

HEADER = "SKU;NAME\n"


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox") as running:
        yield running


@pytest.mark.parametrize("name", ["ITEM_{number}.csv", "ITEM_20260101_{number}.csv", "202601{number:02}/ITEM.csv"])
@pytest.mark.parametrize("seed", range(2, 6))
def test_the_newest_file_counts(tmp_path: Path, platform: SandboxServer, name: str, seed: int) -> None:
    """A night may bring several files, some without rows; values return to what they were, and files are sent again."""
    chance = random.Random(f"{seed} {name}")
    is_dated, archive = "/" in name, seed % 2 == 1 and "/" not in name
    files = "out/*/ITEM.csv" if is_dated else "out/ITEM_*.csv"
    more = {"archive": "done"} if archive else {}
    products = table(files, ["SKU"], resource="product", map={"sku": "SKU", "name": "NAME"}, **more)
    wms = {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": {"products": products}}
    for folder in ("done", "out"):
        (tmp_path / folder).mkdir()
    project = FolderProject(tmp_path, platform, {"wms": wms})
    assert project.run("init").exit_code == 0
    truth, sent = dict[str, str](), list[str]()
    number = 1
    for _ in range(6):
        for _ in range(chance.randint(0, 3)):
            rows = {"P": chance.choice("AAB")} if chance.random() < 0.9 else {}
            truth |= rows
            sent.append(name.format(number=number))
            (tmp_path / "out" / sent[-1]).parent.mkdir(parents=True, exist_ok=True)
            project.write(sent[-1], HEADER + "".join(f"{sku};{text}\n" for sku, text in rows.items()))
            os.utime(tmp_path / "out" / sent[-1], (1_767_225_600 + number * 60,) * 2)
            number += 1
        project.sync()
        assert latest(project) == truth
    if archive:
        assert {path.name for path in (tmp_path / "done").iterdir()} == set(sent)


def latest(project: FolderProject) -> dict[str, str]:
    """The name that the platform has of each product, by SKU, as its effects tell."""
    skus, names = dict[str, str](), dict[str, str]()
    for effect in project.effects():
        skus.setdefault(effect["id"], effect["body"].get("sku", ""))
        names[skus[effect["id"]]] = effect["body"]["name"]
    return names
