"""Random delimited files, compared with the oracle."""

from __future__ import annotations

from tests.unit.formats.fuzz import read_as_the_oracle_reads


def test_any_file_is_read_as_the_oracle_reads_it() -> None:
    """Every delimiter, quote, encoding and packing, damaged or not, gives the oracle's rows or a refusal."""
    read_as_the_oracle_reads(examples=150)
