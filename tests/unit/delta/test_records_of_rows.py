"""Records that the state keeps are mapped from the same cells as records that are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.delta.things import Rows, Things, batch, scanned

from crossdock.delta.changed_record_reading import stored_records_repaired_and_filtered_again
from crossdock.mapping.stream_declaration import Repair
from crossdock.values.raw_rows_and_records import JSON, RawBatch

ROWS: Rows = [{"K": "1", "V": "10 EUR", "W": " a"}, {"K": "2", "V": "20", "W": None}, {"K": "2", "V": "30", "W": "b "}]
SWAP = Repair(table={"10 EUR": "20", "20": "30", "30": "10 EUR"})
EURO = Repair(strip_suffix=" EUR")


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("before", "now"),
    [
        pytest.param({}, {"V": EURO, "W": Repair(strip="both")}, id="repairs that are new"),
        pytest.param({"V": SWAP}, {"V": SWAP}, id="a table that would give another text if it were used twice"),
        pytest.param({"V": SWAP}, {"V": EURO}, id="another repair"),
        pytest.param({"V": EURO, "W": Repair(strip="left")}, {}, id="a repair that was removed"),
    ],
)
def test_a_kept_record_is_repaired_as_one_that_is_read(
    tmp_path: Path, before: dict[str, Repair], now: dict[str, Repair], grouped: bool
) -> None:
    """A record is repaired from the cells of its source by the repairs of now, whatever they were when it was kept."""
    group = {"group_by": ("K",), "fingerprint": "xxh3_128"} if grouped else {}
    kept = _read(Things(columns=before, **group), [batch(ROWS)], tmp_path)
    read = _read(Things(columns=now, **group), [batch(ROWS)], tmp_path)
    stored = [(each.identity, each.record.raw()) for each in kept]
    for _ in range(2):  # a record may be rejected again, and kept again
        again = list(stored_records_repaired_and_filtered_again(Things(columns=now, **group), stored))
        assert [each.record for each in again] == [each.record for each in read]
        stored = [(each.identity, each.record.raw()) for each in again]


def test_a_new_repair_of_a_path_finds_it_in_the_object(tmp_path: Path) -> None:
    """A path that the stream names since is read from the JSON of the record; the key stays what it was."""
    page = RawBatch.json([{"K": "x1", "a": {"b": "7 kg"}}], source="page", key=["K"])
    kept = _read(Things(), [page], tmp_path)
    stream = Things(columns={"a.b": Repair(strip_suffix=" kg"), "K": Repair(strip_prefix="x")})
    (again,) = stored_records_repaired_and_filtered_again(stream, [(each.identity, each.record.raw()) for each in kept])
    assert {name: text for name, text in again.record.row.items() if name != JSON} == {"K": "x1", "a.b": "7"}


def _read(stream: Things, batches: list[RawBatch], work: Path) -> list[Any]:
    scan, _ = scanned(stream, batches, work)
    return list(scan.read_chosen_records(scan.latest))
