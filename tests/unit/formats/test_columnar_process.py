"""The process that reads Parquet and Arrow files: whatever a file is, it ends, and what it did not read is refused."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import polars as pl
import pytest
from tests.unit.formats.parquet import with_footer
from tests.unit.formats.test_columnar_files import GOLDEN, SMALL, TEXTS, arrow, parquet, read, refused, replaced

from crossdock.errors import RefusedError
from crossdock.reading.formats import parquet_and_arrow_files
from crossdock.reading.formats.limited_process import ProcessLimits


def test_files_are_read_in_a_process() -> None:
    """In frames; and types at which polars panics are refused, though it ends without an error."""
    assert read((GOLDEN / "pyarrow.parquet").read_bytes(), 2, columns=["text"])["text"].to_list() == TEXTS["text"]
    assert refused((GOLDEN / "twice.arrow").read_bytes(), "arrow") == "f: states 1 rows, of which 0 can be read"
    assert refused((GOLDEN / "interval.parquet").read_bytes(), objects=True) == "f:column interval: an interval of time"


def test_reading_ends_at_the_limits_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of memory, where a file repeats a text; and of time."""
    long = pl.Series(["x" * (1 << 20)], dtype=pl.Categorical).extend_constant(None, 1000)
    assert "reading it takes more than 2,048 MiB" in refused(parquet(pl.DataFrame({"SKU": long.forward_fill()})))
    monkeypatch.setattr(parquet_and_arrow_files, "ProcessLimits", lambda memory, _: ProcessLimits(memory, 0))
    assert "reading it takes more than 0 s" in refused(parquet(SMALL))


def test_a_file_with_fewer_rows_than_it_states_is_refused() -> None:
    """In its footer and its row group alike."""

    def one_more(footer: dict[int, Any]) -> None:
        replaced(3, to=(6, 4))(footer)
        replaced(4, 3, to=(6, 4))(footer)

    assert refused(with_footer(parquet(SMALL), one_more)).startswith("f: ")


def damaged_files(number: int, seed: int) -> None:
    """A file that was cut or changed in some bytes is refused with its name, or read as one with as many rows."""
    chance, frame = random.Random(seed), pl.DataFrame({"SKU": ["0017", "x" * 40, None] * 40, "N": range(120)})
    files = [("parquet", parquet(frame, compression=each, row_group_size=50)) for each in ("zstd", "uncompressed")]
    files += [("arrow", arrow(frame, compression=each)) for each in ("zstd", "uncompressed")]
    for _ in range(number):
        kind, whole = chance.choice(files)
        data, end = bytearray(whole), chance.choice([300, len(whole)])
        for _ in range(chance.choice([1, 1, 4])):
            data[-chance.randrange(1, end)] ^= 1 << chance.randrange(8)
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        with suppress(RefusedError):
            assert read(bytes(data), kind=kind).height == frame.height


def test_damaged_files_are_refused() -> None:
    """Whatever polars does at them; ``tests/long`` tries many more."""
    damaged_files(6, 1)
