"""Standard output that is kept when it cannot be written works as the one that it replaces."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from crossdock.cli.main import tolerate_failed_output


@pytest.mark.parametrize(("is_buffered", "written"), [(True, ""), (False, "one\n")])
def test_an_unbuffered_output_stays_unbuffered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_buffered: bool, written: str
) -> None:
    """As with ``python -u`` or PYTHONUNBUFFERED, where each line is there at once for the reader of a pipe."""
    file = tmp_path / "output"
    raw = io.FileIO(file, "w")
    stream = io.TextIOWrapper(io.BufferedWriter(raw) if is_buffered else raw, write_through=not is_buffered)
    for name in ("stdout", "__stdout__"):
        monkeypatch.setattr(sys, name, stream)
    assert tolerate_failed_output() is not None
    print("one")
    assert file.read_text() == written
    sys.stdout.flush()
    assert file.read_text() == "one\n"
    stream.close()


def test_an_output_that_was_closed_is_one_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with ``>&-``, for which Python has no stream: what a command writes goes nowhere, and does not fail."""
    for name in ("stdout", "__stdout__"):
        monkeypatch.setattr(sys, name, None)
    assert tolerate_failed_output() is None
    with sys.stdout:
        sys.stdout.write("one\n")


def test_a_log_goes_on_once_its_disk_has_room_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service writes for months: a disk that was full for a minute costs the lines of that minute only."""
    file, number = tmp_path / "log", os.open("/dev/full", os.O_WRONLY)
    stream = io.TextIOWrapper(io.BufferedWriter(io.FileIO(number, "w")), line_buffering=True)
    for name in ("stderr", "__stderr__"):
        monkeypatch.setattr(sys, name, stream)
    tolerate_failed_output()
    print("while it is full", file=sys.stderr)
    with file.open("w") as room:
        os.dup2(room.fileno(), number)
    print("after that", file=sys.stderr)
    assert file.read_text() == "after that\n"
    stream.close()
