"""What a killed process was reading is found in the file that it has left."""

from __future__ import annotations

from pathlib import Path

import pytest

from crossdock.state.tables import inputs_of_streams
from crossdock.state.tables.inputs_of_streams import CrashMark, CrashMarks

MARK = CrashMark("wms.p", "P.csv", "a5", 7)


def left(path: Path) -> CrashMarks:
    """Marks of a process that has read the second of two inputs, and was killed."""
    marks = CrashMarks(path, "state 1")
    marks.open()
    marks.write_mark(1, MARK)
    marks.write_mark(2, MARK)
    marks.write_mark(1, None)
    return marks


def test_the_last_marks_are_found(tmp_path: Path) -> None:
    """Of the same state; a process that ends normally leaves none."""
    path = tmp_path / "keys" / "reading.json"
    marks = left(path)
    assert CrashMarks(path, "state 1").marks_of_killed_process() == [MARK]
    assert CrashMarks(path, "state 2").marks_of_killed_process() == []
    assert path.stat().st_mode & 0o777 == 0o600
    marks.close_and_remove()
    assert CrashMarks(path, "state 1").marks_of_killed_process() == ()


def test_a_restart_of_the_machine_says_nothing_about_an_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was being read when it stopped."""
    boot = tmp_path / "boot_id"
    monkeypatch.setattr(inputs_of_streams, "_BOOT", boot)
    boot.write_text("first\n")
    path = tmp_path / "reading.json"
    marks = left(path)
    assert CrashMarks(path, "state 1").marks_of_killed_process() == [MARK]
    boot.write_text("second\n")
    assert CrashMarks(path, "state 1").marks_of_killed_process() == []
    marks.close_and_remove()


@pytest.mark.parametrize("content", [b"", b"x" * 9_000, b"null".ljust(4096) + b"[1]", b"\xff" * 4096])
def test_a_damaged_file_has_no_marks(tmp_path: Path, content: bytes) -> None:
    """It is an extra check, and the next run writes it again."""
    path = tmp_path / "reading.json"
    path.write_bytes(content)
    assert list(CrashMarks(path, "state 1").marks_of_killed_process()) == []


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    """The run goes on without marks."""
    (tmp_path / "file").write_bytes(b"")
    marks = CrashMarks(tmp_path / "file" / "reading.json", "state 1")
    marks.open()
    marks.write_mark(1, MARK)
    marks.close_and_remove()
