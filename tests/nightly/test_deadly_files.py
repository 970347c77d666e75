"""A file that kills the process that reads it is set aside, and everything else is delivered."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.e2e.folder_project import FolderProject
from tests.e2e.test_legacy_files import project, stream
from tests.ended_commands import Done

from crossdock.sandbox import SandboxServer

POISON = "SKU\n666\n"
HASH = hashlib.sha256(POISON.encode()).hexdigest()  # its name in the spool


@pytest.fixture
def site(tmp_path: Path, platform: SandboxServer) -> FolderProject:
    """Two streams, of which the first has the deadly file."""
    site = project(tmp_path, platform, {name: stream(name, {"delimiter": ";"}, ["SKU"]) for name in ("a", "b")})
    site.write("a_1.csv", POISON)
    site.write("b_1.csv", "SKU\n17\n")
    return site


def environment(site: FolderProject) -> dict[str, str]:
    """That of a process which the deadly file kills."""
    deadly = {"PYTHONPATH": str(Path(__file__).with_name("deadly_site")), "DEADLY_FILES": f"{HASH} a_1.csv"}
    return {**os.environ, "CROSSDOCK_API_KEY": site.platform.api_key, **deadly}


def command(site: FolderProject, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "crossdock", "-C", str(site.config), *arguments]


def run(site: FolderProject, *arguments: str) -> Done:
    done = subprocess.run(command(site, *arguments), env=environment(site), capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def schedule(site: FolderProject, cron: str) -> None:
    """A job that syncs both streams."""
    config = yaml.safe_load(site.config.read_text(encoding="utf-8"))
    config["jobs"] = {"both": {"streams": ["wms"], "schedule": {"time_zone": "UTC", "cron": cron}}}
    site.config.write_text(yaml.safe_dump(config), encoding="utf-8")


def test_a_file_that_kills_the_process_is_set_aside_at_the_next_start(site: FolderProject) -> None:
    """It is named with exit 4, the other stream is delivered, and a file with another content is read at once.

    The same content is read once more when this is requested, and is not suspected any more if that goes well.
    """
    assert run(site, "sync").exit_code == -signal.SIGKILL
    refused = run(site, "sync")
    assert refused.exit_code == 4
    assert "a_1.csv: is set aside, because reading it has killed the process 2 times" in refused.stderr
    report = site.sync(exit_code=4)
    assert "a_1.csv" in str(report["streams"]["wms.a"])
    assert report["streams"]["wms.b"]["records"]["read"] == 0  # delivered before
    site.write("a_1.csv", "SKU\n18\n")
    assert site.sync()["streams"]["wms.a"]["records"]["delivered"] == 1
    site.write("a_1.csv", POISON)
    assert site.sync(exit_code=4)["streams"]["wms.a"]["records"]["read"] == 0
    assert "a_1.csv" in site.run("state", "readmit").stdout
    assert site.run("state", "readmit", "wms.a").exit_code == 0
    assert site.sync()["streams"]["wms.a"]["records"]["delivered"] == 1  # this process survives it
    assert "a_1.csv" not in site.run("state", "readmit").stdout


def test_a_scheduled_night_that_a_file_has_killed_is_run_again_without_it(site: FolderProject) -> None:
    """The next start of the same night names the file, exits 4, and delivers the other stream."""
    schedule(site, "0 2 * * *")
    site.write("b_1.csv", "SKU\n27\n")  # which no other test has given to the platform
    before = len(site.effects())
    assert run(site, "schedule", "--once", "latest").exit_code == -signal.SIGKILL
    again = run(site, "schedule", "--once", "latest")
    assert again.exit_code == 4
    assert "a_1.csv: is set aside, because reading it has killed the process 2 times" in again.stderr
    assert [each["operation"] for each in site.effects()[before:]] == ["create"]
