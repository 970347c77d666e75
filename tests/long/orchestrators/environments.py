"""Environments of their own for orchestrators, and the files of the pages that show how they run crossdock."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.servers import require
from tests.waiting import WITHIN_S

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs" / "how_to" / "deploy"
OFFLINE = {"DO_NOT_TRACK": "1", "NO_PROXY": "*", "PYTHONDONTWRITEBYTECODE": "1"}


def installed(folder: Path, *packages: str) -> Path:
    """The folder with the programs of a new environment in *folder*; skips without PyPI."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
    done = subprocess.run(command, check=False, env=variables())
    require(done.returncode == 0, f"{packages[0]} from PyPI", optional_by="CROSSDOCK_PYPI_OPTIONAL")
    return folder / "bin"


def variables(**more: str) -> dict[str, str]:
    """The environment of a process that does not see the packages of this one."""
    return {name: text for name, text in os.environ.items() if name != "PYTHONPATH"} | OFFLINE | more


def own_program(folder: Path) -> Path:
    """A folder with the program ``crossdock`` of this process, which notes its parents and arguments in ``calls``."""
    folder.mkdir()
    program = folder / "crossdock"
    path = os.environ.get("PYTHONPATH", "")
    program.write_text(
        f'#!/bin/sh\necho $PPID "$@" >> {folder}/calls\nPYTHONPATH={path} exec {sys.executable} -m crossdock "$@"\n'
    )
    program.chmod(0o755)
    return folder


def page_files(page: str) -> Mapping[str, str]:
    """The blocks of a page that name a file in their first line, by name."""
    blocks = re.findall(r"^```\w+\n(.*?)^```", (PAGES / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    named = ((re.match(r"# (\S+\.\w+)\n", block), block) for block in blocks)
    return {found[1]: block for found, block in named if found}


def write_page_files(page: str, folder: Path) -> None:
    for name, text in page_files(page).items():
        (folder / name).write_text(text, encoding="utf-8")


@contextmanager
def process(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs in *folder* while the block lasts, with its output in a file there."""
    name = f"{Path(command[0]).name}_{Path(command[1]).name}"
    with (folder / f"{name}.log").open("wb") as log:
        started = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(WITHIN_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)  # what it has left
