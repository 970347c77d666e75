"""The page of a sign-off report shows what the report says, and holds the report itself."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from tests.report_page import AT, HIDDEN, HIDDEN_SHOWN, HOSTILE, Page, dead_letter, sqlite_state
from tests.unit.migration.loaded_migration import LATER, LoadedMigration, loaded_project, reconciliation

from crossdock.console import page_rendering, self_contained_sign_off_report
from crossdock.migration.sign_off_report import Document
from crossdock.state import WaveApproval
from crossdock.state.tables.inputs_of_streams import FileFacts
from crossdock.values import exact_json
from crossdock.values.run_states_and_tally import OpenCounts


@pytest.fixture
def loaded(tmp_path: Path) -> Iterator[LoadedMigration]:
    with sqlite_state(tmp_path) as state:
        made = LoadedMigration(loaded_project(tmp_path), state)
        made.fill()
        yield made


def page(report: Document) -> str:
    """The page as it is written."""
    content, _ = page_rendering.append_checksum_line(self_contained_sign_off_report.render_sign_off_report(report))
    return content.decode()


def test_a_page_shows_the_report(loaded: LoadedMigration) -> None:
    """Who and when, totals with their digits, waves with who let them go on, runs, files."""
    with loaded.state.begin() as tx:
        approval = WaveApproval("customers", LATER, "cy", OpenCounts(in_doubt=2))
        tx.migrations.approve_wave(loaded.migration_id, approval)
    shown = Page(page(loaded.report()))
    for fact in (
        "Migration acme signed off",
        "Tenant acme at http://127.0.0.1:9, crossdock ",
        "2026-03-29 01:30:00Z",
        "ann@host",
        "bob",
        "Reconciled 2026-03-29 03:30:00Z: 2 records compared",
        "customers: cy let the migration go on, 2026-03-29 03:30:00Z; open then: 2 in doubt.",
        "Frozen: unchanged since 2026-03-29 03:29:00Z",
    ):
        assert fact in shown.text
    assert shown.under("resource", "of") == [
        ["product", "records", "2", "2", "2"],
        ["product", "quantity", "21.5", "21.5", "21.5"],
        ["product", "EUR", "31.5", "31.5", "31.5"],
    ]
    assert shown.under("stream", "file") == [["wms.products", "f.csv", "90", "ab" * 32, "2026-03-29 01:30:00Z"]]
    assert [line[:3] for line in shown.under("run", "kind")] == [["1", "load", "customers"], ["2", "load", "products"]]
    assert shown.under("stream", "run")[0] == ["wms.customers", "1", "2", "2", *"000000"]


def test_the_report_is_one_line(loaded: LoadedMigration) -> None:
    """Whatever people and files are called, it reads as the same JSON, and nothing in it ends its element."""
    with loaded.state.begin() as tx:
        file = FileFacts(f"{HOSTILE}\n{{", "cd" * 32, 9, AT, "2")
        tx.intake.accept("wms.products", "v1", [file], at=LATER)
    report = loaded.report(started_by=f"{HIDDEN}\n{{</script>")
    text = page(report)
    (line,) = [each for each in text.splitlines() if each.startswith("{")]
    assert exact_json.loads(line) == exact_json.loads(exact_json.dumps(report))
    assert text.count("</script>") == 1
    assert Page(text).tags.isdisjoint({"img", "b"})


def test_hostile_texts_are_shown_as_text(loaded: LoadedMigration) -> None:
    """Names of people, reasons, and names of files."""
    differences = [{"resource": "product", "class": "missing", "records": 1}]
    with loaded.state.begin() as tx:
        tx.migrations.store_reconciliation(loaded.migration_id, reconciliation(differences=differences))
        tx.intake.accept("wms.products", "v1", [FileFacts(HOSTILE, "cd" * 32, 9, AT, "2")], at=LATER)
    shown = Page(page(loaded.report(accepted=HOSTILE, started_by=HIDDEN)))
    assert f"1 exception, accepted by bob: {HOSTILE}" in shown.text
    assert HIDDEN_SHOWN in shown.text
    assert ["wms.products", HOSTILE] in [line[:2] for line in shown.under("stream", "file")]
    assert shown.under("resource", "difference") == [["product", "missing", "1"]]


def test_totals_keep_all_digits(loaded: LoadedMigration) -> None:
    """Also of whole numbers, which a float could not hold."""
    side = {"records": 1, "quantity": 10**17 + 1, "amounts": {"EUR": Decimal("12345678901234567890.0001")}}
    totals = {"product": dict.fromkeys(("source", "state", "platform"), side)}
    with loaded.state.begin() as tx:
        tx.migrations.store_reconciliation(loaded.migration_id, reconciliation(totals=totals))
    _, quantity, amount = Page(page(loaded.report())).under("resource", "of")
    assert quantity[2:] == ["100,000,000,000,000,001"] * 3
    assert amount[2:] == ["12,345,678,901,234,567,890.0001"] * 3


def test_places_that_are_left_out_are_counted(loaded: LoadedMigration) -> None:
    """Of many records that were rejected for one reason, the first places are shown."""
    with loaded.state.begin() as tx:
        letters = [dead_letter(number, stream="wms.products") for number in range(1, 1_241)]
        tx.dead_letters.put(letters, run_id=1, at=AT)
    ((*_, places),) = Page(page(loaded.report(accepted="known"))).under("stream", "reason")
    assert places == "f.csv:1, f.csv:2, f.csv:3, f.csv:4, f.csv:5, and 1,235 more"
