"""The corpus of nasty files, at every chunk size, with and without the columnar path."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.unit.formats.corpus import CORPUS, Nasty

from crossdock.errors import RefusedError
from crossdock.reading.formats.delimited_files import read_delimited_rows
from crossdock.reading.formats.delimited_layout import DelimitedFormat
from crossdock.reading.formats.polars_delimited_parser import PolarsDelimitedParser

WHOLE = 1 << 20


def outcome(path: Path, nasty: Nasty, chunk: int) -> list[tuple[object, ...]] | tuple[str | None, str]:
    """Rows, or the place and the message of the refusal."""
    rows = read_delimited_rows(path, DelimitedFormat(**nasty.layout), name="out/LOT.txt", _chunk=chunk)
    if isinstance(nasty.expected, list):
        return pl.concat(rows).rows()
    with pytest.raises(RefusedError) as refusal:
        list(rows)
    assert refusal.value.hint, "a refusal says what to do"
    return refusal.value.where, refusal.value.message


def check(nasty: Nasty, found: object) -> None:
    if isinstance(nasty.expected, list):
        assert found == nasty.expected
    else:
        place, part = nasty.expected
        assert isinstance(found, tuple)
        assert found[0] == f"out/LOT.txt{place}"
        assert part in found[1]


@pytest.fixture(params=CORPUS, ids=lambda nasty: nasty.id)
def nasty(request: pytest.FixtureRequest) -> Nasty:
    assert isinstance(request.param, Nasty)
    return request.param


@pytest.fixture
def path(nasty: Nasty, tmp_path: Path) -> Path:
    path = tmp_path / "spooled"
    path.write_bytes(nasty.data)
    return path


def test_a_file_gives_the_expected_result(nasty: Nasty, path: Path) -> None:
    """Each file gives exactly its rows, or is refused at its place."""
    check(nasty, outcome(path, nasty, WHOLE))


def test_the_result_does_not_depend_on_chunks(nasty: Nasty, path: Path) -> None:
    """Wherever the file is cut while it is read, rows, places and messages are the same."""
    whole = outcome(path, nasty, WHOLE)
    sizes = range(1, min(41, len(nasty.data))) if len(nasty.data) < 1000 else (37, 1000)
    assert {size: outcome(path, nasty, size) for size in sizes} == dict.fromkeys(sizes, whole)


def test_the_strict_parser_alone_gives_the_same(nasty: Nasty, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The columnar path changes speed, and nothing else."""
    whole = outcome(path, nasty, WHOLE)
    monkeypatch.setattr(PolarsDelimitedParser, "parse", lambda *_: None)
    assert outcome(path, nasty, WHOLE) == whole


def test_good_files_do_not_need_the_strict_parser(nasty: Nasty, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file that is in order is read by columns, quotes and all."""
    if isinstance(nasty.expected, tuple):
        return

    def never(*_: object) -> None:
        pytest.fail("the strict parser was used")

    monkeypatch.setattr(
        "crossdock.reading.formats.delimited_files.SingleTypeDelimitedParser._parse_rows_strictly", never
    )
    check(nasty, outcome(path, nasty, WHOLE))
