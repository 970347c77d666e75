"""What is renamed works for one more minor release, with a warning. The names are made up: none is deprecated yet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest
import yaml
from tests.e2e.folder_project import FolderProject, table

import crossdock
from crossdock.errors import ConfigError
from crossdock.platform.platform_config import Profile
from crossdock.sandbox import SandboxServer
from crossdock.values.config_base_types import ConfigModel
from crossdock.values.config_file import Document, read_config_with_overrides


class Part(ConfigModel):
    renamed_keys: ClassVar[Mapping[str, str]] = {"title": "name"}

    name: str


class Whole(ConfigModel):
    parts: list[Part]


def document(folder: Path, text: str) -> Document:
    (folder / "c.yaml").write_text(text, encoding="utf-8")
    return read_config_with_overrides(folder / "c.yaml")


def test_a_renamed_key_works_with_a_warning_at_its_place(tmp_path: Path) -> None:
    """The warning names file, line, column, and the present name."""
    found = document(tmp_path, "parts:\n- name: one\n- title: two\n")
    assert [part.name for part in found.validated_as_model(Whole, found.data).parts] == ["one", "two"]
    (warning,) = found.warnings
    assert warning.startswith(f"{tmp_path / 'c.yaml'}:3:3: parts.1.title: is called 'name' now; rename it")


def test_both_names_of_a_key_are_refused(tmp_path: Path) -> None:
    """Otherwise one of the values would be ignored."""
    found = document(tmp_path, "parts:\n- {name: one, title: two}\n")
    with pytest.raises(ConfigError, match="is the former name of 'name', which is set as well: remove one of them"):
        found.validated_as_model(Whole, found.data)


def test_checks_and_runs_warn_about_a_renamed_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run keeps the warning, with file and line, and is as good as without."""
    monkeypatch.setattr(Profile, "renamed_keys", {"organisation": "tenant"})
    mapped = {"sku": "SKU", "name": "SKU", "unitPrice": {"const": 1}, "currency": {"const": "EUR"}}
    stream = table("ITEM_*.csv", ["SKU"], resource="product", map=mapped)
    connections = {"wms": {"kind": "folder_warehouse", "path": "out", "streams": {"items": stream}}}
    with SandboxServer(tmp_path / "sandbox") as platform:
        project = FolderProject(tmp_path, platform, connections)
        config = yaml.safe_load(project.config.read_text(encoding="utf-8"))
        config["platform"]["organisation"] = config["platform"].pop("tenant")
        project.config.write_text(yaml.safe_dump(config), encoding="utf-8")
        project.write("ITEM_1.csv", "SKU\nA\n")
        assert project.run("init").exit_code == 0
        (message,) = project.sync()["messages"]
        place = f"{project.config}:{1 + config_line(project.config, 'organisation')}:3"
        warning = f"{place}: platform.organisation: is called 'tenant' now"
        assert (message["level"], message["message"].startswith(warning)) == ("warning", True)
        assert warning in project.run("check").stdout.replace("\n", "")


def config_line(config: Path, key: str) -> int:
    lines = config.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines) if key in line)


def test_a_renamed_name_works_with_a_warning_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The warning is about the line of the user, and says what to use."""
    monkeypatch.setitem(crossdock._RENAMED, "Row", "crossdock.Record")
    with pytest.warns(DeprecationWarning, match=r"crossdock\.Row is deprecated .*; use crossdock\.Record") as told:
        from crossdock import Row  # type: ignore[attr-defined]  # it is made up
    assert Row is crossdock.Record
    assert told[0].filename == __file__
