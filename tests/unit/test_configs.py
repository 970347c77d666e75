"""The example configs in ``configs/`` are valid."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic.alias_generators import to_camel

from crossdock.config.project import project
from crossdock.resources import ShippingAddress

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


def test_an_order_that_goes_to_a_3pl_has_its_whole_address() -> None:
    """Each stream that sends members of the platform's shipping address sends all: a flat, a state and a telephone."""
    wanted = {f"shippingAddress.{to_camel(name)}" for name in ShippingAddress.model_fields}
    checked = 0
    for path in CONFIGS:
        for connection in project.load(path).connections:
            for stream in connection.streams if connection.settings.kind == "platform" else ():
                read = {column for column in stream.uses or () if column.startswith("shippingAddress.")}
                checked += bool(read)
                assert not read or read == wanted, f"{path.name}: {stream.name} lacks {sorted(wanted - read)}"
    assert checked >= 3


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_sample_files_exist(path: Path) -> None:
    """Each file pattern of a folder matches one of the sample files, unless files may be missing."""
    for connection in project.load(path).connections:
        settings = connection.settings.model_dump()
        if "path" in settings:
            parts = [*settings["streams"].values(), *settings["sources"].values()]
            needed = [each["files"] for each in parts if each["files"] and each["required"] is not False]
            assert all(list(settings["path"].glob(files)) for files in needed)
