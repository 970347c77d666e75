from __future__ import annotations

import time
from pathlib import Path

import pytest

from crossdock.errors import ConfigError
from crossdock.testing.demo import demo_folder_and_servers


def test_exports_are_old_enough_to_be_read_at_once(tmp_path: Path) -> None:
    """A run waits while a file may still grow, so the files get an earlier modification time."""
    demo_folder_and_servers.write_sample_exports_of_day(1, tmp_path / "new" / "out")
    ages = [time.time() - path.stat().st_mtime for path in (tmp_path / "new" / "out").iterdir()]
    assert len(ages) == 5
    assert min(ages) > 200


def test_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    """The error names --folder and --serve."""
    (tmp_path / "file").write_text("mine")
    with (
        pytest.raises(ConfigError, match="not empty\n.*--folder.*--serve"),
        demo_folder_and_servers.create_and_serve_demo(tmp_path),
    ):
        pytest.fail("the folder was used")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    """The error has the reason."""
    (tmp_path / "file").write_text("")
    below = tmp_path / "file" / "x"
    with (
        pytest.raises(ConfigError, match="cannot be created: Not a directory"),
        demo_folder_and_servers.create_and_serve_demo(below),
    ):
        pytest.fail("the folder was used")


def test_only_a_demo_folder_can_be_served(tmp_path: Path) -> None:
    """A folder without the demo's config is refused before a server starts."""
    with pytest.raises(ConfigError, match="is not a demo folder"):
        demo_folder_and_servers.serve_existing_demo(tmp_path, lambda _: pytest.fail("it was served"))
