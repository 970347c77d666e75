"""A stream may limit the cells that look damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.delta.things import Things, batch, scanned

from crossdock.errors import RefusedError
from crossdock.mapping.stream_declaration import SuspiciousLimit

ROWS = [{"K": "1", "V": "Bolt"}, {"K": "2", "V": "Stra\u00c3\u0178e"}, {"K": "4.00638E+12", "V": "x"}]


def test_nothing_is_imported_beyond_the_limit(tmp_path: Path) -> None:
    """The refusal names file, line, column and kind, and never the cell."""
    with pytest.raises(RefusedError, match="2 suspicious cells, and at most 1 are accepted; column 'V'") as refused:
        scanned(Things(suspicious=SuspiciousLimit(at_most=1)), [batch(ROWS)], tmp_path)
    assert refused.value.where == "a.csv:3"
    assert "Stra" not in str(refused.value)


def test_up_to_the_limit_they_are_listed(tmp_path: Path) -> None:
    """By column and kind; without a limit nothing is looked at, and columns that are not used never are."""
    scan, _ = scanned(Things(suspicious=SuspiciousLimit(at_most=2)), [batch(ROWS)], tmp_path)
    assert [(each.column, each.damage) for each in scan.suspicious.found] == [("K", "spreadsheet"), ("V", "encoding")]
    scan, _ = scanned(Things(), [batch(ROWS)], tmp_path)
    assert scan.suspicious.found == []
    scan, _ = scanned(Things(suspicious=SuspiciousLimit(at_most=1), uses=("K",)), [batch(ROWS)], tmp_path)
    assert [each.column for each in scan.suspicious.found] == ["K"]
