"""The tally of a run as tables."""

from __future__ import annotations

from datetime import timedelta

from crossdock.errors import UnavailableError
from crossdock.pacing.token_bucket import Forecast
from crossdock.runs import tables_and_sentences_of_run
from crossdock.runs.plan_result import PlanResult
from crossdock.runs.run_report import Report
from crossdock.values.run_states_and_tally import OpenCounts, Tally


def test_terms_that_are_zero_are_left_out() -> None:
    """A column is shown if any stream has the term, or if it is always shown; filters have their names."""
    first = Tally(rows_read=5, rows_filtered={"test": 2}, rows_in_records=3)
    first.count("read", 3)
    first.count("created", 2)
    first.count("carried_on")
    second = Tally()
    rows, records = tables_and_sentences_of_run.tally_tables({"wms.a": first.as_json(), "wms.b": second.as_json()})
    assert rows.columns == ("stream", "read", "skip test", "in records")
    assert rows.lines == [("wms.a", 5, 2, 3), ("wms.b", 0, 0, 0)]
    assert records.columns == ("stream", "read", "unchanged", "created", "carried on")
    assert records.lines == [("wms.a", 3, 0, 2, 1), ("wms.b", 0, 0, 0, 0)]


def test_parts_have_a_table_of_their_own_if_there_are_any() -> None:
    """Only streams whose mapping left out, changed or assumed a part have a line."""
    first, second = Tally(), Tally()
    first.parts.update({"city assumed": 2, "name cut": 1})
    shown = tables_and_sentences_of_run.tally_tables({"shop.a": first.as_json(), "shop.b": second.as_json()})
    assert shown[2].columns == ("stream", "city assumed", "name cut")
    assert shown[2].lines == [("shop.a", 2, 1)]


def test_a_printed_report_has_the_tally_the_errors_and_the_end() -> None:
    """In a notebook as well, with the reason why fewer rejected records are open than the tally has."""
    report = Report(7, "2026-11-29", lasted=timedelta(seconds=2))
    tally = report.tally("wms.a")
    tally.rows_read = tally.rows_in_records = 3
    tally.count("read", 3)
    tally.count("created")
    tally.count("rejected", 2)
    report.open["wms.a"] = OpenCounts(rejected=1)
    report.messages.add_error("wms.b", UnavailableError("no answer", where="sftp.example.com"))
    assert repr(report) == str(report)
    assert str(report).splitlines() == [
        "wms.a: rows: 3 read, 3 in records; records: 3 read, 1 created, 2 rejected",
        "wms.a: open: 1 rejected; the tally has 2 rejected: it counts a record each time",
        "wms.b: sftp.example.com: no answer [unavailable]",
        "run 7: incomplete, 0 requests (0 throttled) in 2.0 s; the tally balances",
    ]


def test_a_printed_plan_has_the_tally_the_errors_and_the_requests() -> None:
    """Without zeros. A plan of which streams could not be read is not said to have nothing to do."""
    plan = PlanResult(Forecast(1, 1, None, None), {"wms.a": Tally()}, {"wms.b": UnavailableError("no answer")})
    plan.operations["create"] = 1200
    plan.unread = 1
    assert str(plan).splitlines() == [
        "wms.a: nothing was read",
        "wms.b: no answer [unavailable]",
        "plan incomplete: 1 stream could not be read; 1,200 create",
    ]
