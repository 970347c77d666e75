"""The example configs in ``configs/`` are valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from crossdock.config.project import project

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_config_loads(path: Path) -> None:
    """Every key is known and has a valid value, also in `notify`."""
    assert project.load(path).connections


def test_there_is_an_example_of_each_kind() -> None:
    """The README promises examples for these."""
    assert {path.stem for path in CONFIGS} >= {
        "folder",
        "sftp",
        "http_json",
        "schedule",
        "postgresql",
        "oauth",
        "retail",
        "shipbob",
        "amazon_mcf",
        "migration",
    }


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_sample_files_exist(path: Path) -> None:
    """Each file pattern of a folder matches one of the sample files, unless files may be missing."""
    for connection in project.load(path).connections:
        settings = connection.settings.model_dump()
        if "path" in settings:
            parts = [*settings["streams"].values(), *settings["sources"].values()]
            needed = [each["files"] for each in parts if each["files"] and each["required"] is not False]
            assert all(list(settings["path"].glob(files)) for files in needed)
