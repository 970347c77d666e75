"""Rehearsal files: saved, loaded, and refused if they are something else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crossdock.errors import ConfigError
from crossdock.migration.rehearsal_file_and_load_check import Rehearsal, RehearsedStream, RehearsedWave

STREAM = RehearsedStream(source="a" * 64, records=3, operations=2)
REHEARSAL = Rehearsal(
    base_url="http://127.0.0.1:9",
    tenant="acme",
    waves={
        "second": RehearsedWave(streams={"wms.orders": STREAM}, requests=4),
        "first": RehearsedWave(streams={}, requests=0),
    },
)


def test_a_rehearsal_is_the_same_after_a_file(tmp_path: Path) -> None:
    """Every member comes back."""
    REHEARSAL.save(tmp_path / "rehearsal")
    assert Rehearsal.load(tmp_path / "rehearsal") == REHEARSAL


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff", b'{"base_url":"a","tenant":"b","waves":{"w":{}}}'])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """The message names the file and the command that writes one."""
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(
        ConfigError, match=r"is not a rehearsal file(.|\n)*crossdock migrate rehearse -o FILE"
    ) as raised:
        Rehearsal.load(path)
    assert raised.value.where == str(path)


def test_a_missing_file_and_one_that_cannot_be_written(tmp_path: Path) -> None:
    """Both are errors of the person who named it, with the reason of the operating system."""
    missing = tmp_path / "nowhere" / "rehearsal"
    with pytest.raises(ConfigError, match=f"the rehearsal cannot be read: {os.strerror(2)}"):
        Rehearsal.load(missing)
    with pytest.raises(ConfigError, match=f"the rehearsal cannot be written: {os.strerror(2)}"):
        REHEARSAL.save(missing)
