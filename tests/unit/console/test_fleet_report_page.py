"""The page about a fleet."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec import structs

from crossdock.console import run_and_fleet_report
from crossdock.state import RunRecord

AT = datetime(2026, 11, 24, 6, tzinfo=UTC)


@pytest.fixture
def run() -> RunRecord:
    return RunRecord(
        id=7, job="nightly", business_date="2026-11-24", started_at=AT, finished_at=AT, status="done", requests=8,
        throttled=0, tally=None, duration_ms=3000,
    )  # fmt: skip


def test_those_that_need_a_person_are_first(run: RunRecord) -> None:
    """Tenants that cannot be read, failed runs, open records; what is in order comes last."""
    newest = {
        "acme": run,
        "bolt": structs.replace(run, status="failed"),
        "cask": structs.replace(run, status="degraded", tally={"wms.items": {"open": {"rejected": 2}}}),
        "dune": None,
    }
    page = run_and_fleet_report.render_fleet_report_file(
        newest, {"evil": "<b>state.yaml</b>:1: is not valid\n  mend it"}, at=AT
    )
    places = [page.index(f">{name}") for name in ("evil", "bolt", "cask", "acme", "dune")]
    assert places == sorted(places)
    assert "<h1>5 tenants</h1>" in page
    assert "1 done, 1 failed, 1 degraded" in page
    assert "<b>" not in page
    assert "&lt;b&gt;state.yaml" in page


def test_an_empty_fleet_has_a_page() -> None:
    """It shows that none has run."""
    assert "as of 2026-11-24 06:00:00Z: none." in run_and_fleet_report.render_fleet_report_file({}, {}, at=AT)
