"""Rows without a key become dead letters, up to a bound."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.delta.things import Rows, Things, batch, records, scanned

from crossdock.delta import row_preparation
from crossdock.delta.latest_records import LatestRecords
from crossdock.errors import RefusedError
from crossdock.mapping.stream_declaration import Filter
from crossdock.values.raw_rows_and_records import REFUSED
from crossdock.values.run_states_and_tally import Tally


def test_a_row_without_key_is_a_dead_letter(tmp_path: Path) -> None:
    """Every part of a key is required; the dead letter names the empty column and keeps the row."""
    rows: Rows = [{"K": "a", "L": ""}, {"K": None, "L": "x"}, {"K": "a b", "L": "x|y"}]
    scan, tally = scanned(Things(key=("K", "L")), [batch(rows)], tmp_path)
    assert [(each.code, each.pointer, each.message, each.identity.line) for each in scan.dead_letters_without_key] == [
        ("key_missing", "L", "the key is empty", 2),
        ("key_missing", "K", "the key is empty", 3),
    ]
    assert scan.dead_letters_without_key[1].raw["rows"] == [[None, "x"]]
    assert tally.rows_rejected == 2
    assert [record.key for record in records(scan)] == ["a%20b|x%7Cy"]


def test_a_key_that_is_too_long_is_a_dead_letter(tmp_path: Path) -> None:
    """A key that exceeds the limit in bytes makes the row a dead letter."""
    rows: Rows = [{"K": "a" * 1000, "L": "x"}, {"K": "ä" * 501, "L": "x"}, {"K": "a", "L": "\x01" * 1001}]
    scan, tally = scanned(Things(key=("K", "L")), [batch(rows)], tmp_path)
    assert [(dead_letter.pointer, dead_letter.identity.line) for dead_letter in scan.dead_letters_without_key] == [
        ("K", 3),
        ("L", 4),
    ]
    assert {dead_letter.message for dead_letter in scan.dead_letters_without_key} == {"the key exceeds 1,000 bytes"}
    assert [len(record.key) for record in records(scan)] == [1002]
    assert tally.rows_rejected == 2


def test_a_refused_part_is_a_dead_letter_with_its_reason(tmp_path: Path) -> None:
    """Filters and the own id of a record do not see its empty cells, so that it is rejected and never left out."""
    rows: Rows = [{"K": "", "L": "", REFUSED: "set '0002' is refused"}, {"K": "a", "L": "x", REFUSED: ""}]
    stream = Things(key=("K",), skip={"nothing": Filter(field="L", equals="")})
    scan, tally = scanned(stream, [batch(rows)], tmp_path)
    assert [(each.code, each.message, each.identity.line) for each in scan.dead_letters_without_key] == [
        ("unreadable", "set '0002' is refused", 2)
    ]
    assert (tally.rows_rejected, tally.rows_filtered) == (1, {"nothing": 0})
    (record,) = records(scan)
    assert record.row == {"K": "a", "L": "x"}


@pytest.mark.parametrize("columns", [1, 100])
def test_too_many_rows_without_key_are_refused(tmp_path: Path, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source with too many rows without a key is refused as a whole; wide rows reach the bound sooner."""
    monkeypatch.setattr(row_preparation, "MAX_HELD_BYTES", 100_000)
    rows: Rows = [dict.fromkeys(["K", *(f"C{number}" for number in range(columns))], "")] * 10
    batches = [batch(rows, first_line=line) for line in range(2, 10_000, 10)]
    scan = LatestRecords(Things(), "w.things", tmp_path)
    with pytest.raises(RefusedError, match=r"a.csv:\d+: \d+ rows have no key, too many"):
        scan.find_latest_of_each_key(batches, Tally(), lambda _rows: None)
    assert 0 < len(scan.dead_letters_without_key) * (1_000 + 64 * (columns + 2)) <= 100_000
