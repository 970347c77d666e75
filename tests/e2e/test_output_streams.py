"""A command's exit code says what it did, whoever reads its output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CROSSDOCK = [sys.executable, "-m", "crossdock"]
FULL = Path("/dev/full")


@pytest.mark.nightly(but=["--help"])
@pytest.mark.parametrize("command", ["--help", "schema"])
@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_an_output_that_cannot_be_written_is_no_success(command: str) -> None:
    """A full disk under the output is said in a sentence, with exit code 3 in place of 0 and no other."""
    with FULL.open("w") as full:
        done = subprocess.run([*CROSSDOCK, command], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 3
        assert done.stderr.startswith("crossdock: the output cannot be written (No space left on device)")
        failed = subprocess.run([*CROSSDOCK, "-C", "none.yaml", "plan"], stdout=full, stderr=full, check=False)
        assert failed.returncode == 2


@pytest.mark.nightly
@pytest.mark.parametrize(("command", "code"), [(["schema"], 0), (["-C", "none.yaml", "plan"], 2)])
def test_a_reader_that_has_gone_changes_no_exit_code(command: list[str], code: int) -> None:
    """A closed pipe, as after ``| head -1``, or one of a log that has ended, takes what is written to it."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([*CROSSDOCK, *command], stdout=writer, stderr=writer, check=False)
    finally:
        os.close(writer)
    assert done.returncode == code
