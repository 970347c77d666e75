"""Hostile and random files, in large numbers: ``pytest tests/long/test_files.py -n 2``, some minutes."""

from __future__ import annotations

from pathlib import Path

from tests.unit.formats.fuzz import read_as_the_oracle_reads
from tests.unit.formats.hostile import HOSTILE
from tests.unit.formats.hostile_sheets import HOSTILE as HOSTILE_SHEETS
from tests.unit.formats.test_columnar_process import damaged_files
from tests.unit.formats.test_hostile import bounded
from tests.unit.formats.test_sheet_process import refused


def test_many_files_are_read_as_the_oracle_reads_them() -> None:
    """As in the short form, with many more examples."""
    read_as_the_oracle_reads(examples=20_000)


def test_all_hostile_files_take_little_memory(tmp_path: Path) -> None:
    """As in the short form, with every way to grow that is known."""
    bounded(tmp_path, list(HOSTILE))


def test_all_hostile_sheets_are_refused_in_little_memory(tmp_path: Path) -> None:
    """As in the short form, with every way to grow that is known."""
    refused(tmp_path, list(HOSTILE_SHEETS))


def test_many_damaged_parquet_and_arrow_files_are_refused() -> None:
    """As in the short form, with many more files."""
    damaged_files(1_000, 2)
