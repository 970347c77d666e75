"""The tally of a run as tables."""

from __future__ import annotations

from crossdock.runs import run_lines
from crossdock.values.tally import Tally


def test_terms_that_are_zero_are_left_out() -> None:
    """A column is shown if any stream has the term, or if it is always shown; filters have their names."""
    first = Tally(rows_read=5, rows_filtered={"test": 2}, rows_in_records=3)
    first.count("read", 3)
    first.count("created", 2)
    first.count("carried_on")
    second = Tally()
    rows, records = run_lines.tally_tables({"wms.a": first.as_json(), "wms.b": second.as_json()})
    assert rows.columns == ("stream", "read", "skip test", "in records")
    assert rows.lines == [("wms.a", 5, 2, 3), ("wms.b", 0, 0, 0)]
    assert records.columns == ("stream", "read", "unchanged", "created", "carried on")
    assert records.lines == [("wms.a", 3, 0, 2, 1), ("wms.b", 0, 0, 0, 0)]


def test_parts_have_a_table_of_their_own_if_there_are_any() -> None:
    """Only streams whose mapping left out, changed or assumed a part have a line."""
    first, second = Tally(), Tally()
    first.parts.update({"city assumed": 2, "name cut": 1})
    shown = run_lines.tally_tables({"shop.a": first.as_json(), "shop.b": second.as_json()})
    assert shown[2].columns == ("stream", "city assumed", "name cut")
    assert shown[2].lines == [("shop.a", 2, 1)]
