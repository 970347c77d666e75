"""The sign-off report: who, when, what, totals, exceptions and hashes; no record's data or key."""

from __future__ import annotations

from tests.report_page import AT, dead_letter, waiting
from tests.unit.migration.loaded_migration import LATER, SOURCES, LoadedMigration, reconciliation
from tests.unit.state.samples import intent

from crossdock.migration.sign_off_report import PLACES
from crossdock.state import WaveApproval
from crossdock.values import exact_json
from crossdock.values.run_states_and_tally import OpenCounts


def test_a_report_tells_what_was_moved(ready: LoadedMigration) -> None:
    """People, waves with gates, runs with tallies, totals, hashes of sources and files."""
    with ready.state.begin() as tx:
        approval = WaveApproval("customers", LATER, "cy", OpenCounts(rejected=1))
        tx.migrations.approve_wave(ready.migration_id, approval)
    report = ready.report()
    facts = report["migration"]
    assert (facts["name"], facts["tenant"], facts["started_by"], facts["signed_off_by"]) == (
        "acme",
        "acme",
        "ann@host",
        "bob",
    )
    assert (facts["started_at"], facts["signed_off_at"]) == (AT, LATER)
    customers, products = report["waves"]
    assert customers["approval"] == {"at": LATER, "by": "cy", "open": OpenCounts(rejected=1).as_json()}
    assert (products["records"], products["delivered"], products["gate"]["state"]) == (2, 2, "open")
    assert str(products["gate"]["rejected_at_most_percent"]) == "0.5"
    assert [(run["run"], run["kind"], run["wave"], run["requests"]) for run in report["runs"]] == [
        (1, "load", "customers", 2),
        (2, "load", "products", 2),
    ]
    assert report["runs"][1]["streams"]["wms.products"]["records"]["created"] == 2
    assert str(report["reconciliation"]["totals"]["product"]["platform"]["amounts"]["EUR"]) == "31.5"
    assert report["sources"] == report["freeze"]["sources"] == SOURCES
    (file,) = report["files"]  # imported under two versions of the mapping
    assert (file["name"], file["sha256"], file["size"], file["imported_at"]) == ("f.csv", "ab" * 32, 90, AT)


def test_a_report_lists_exceptions_without_keys(ready: LoadedMigration) -> None:
    """By reason with files and lines; what waits by what it waits for; no key, no data, no id of a customer."""
    kept = reconciliation(kept={"wms.products": 4})
    with ready.state.begin() as tx:
        tx.migrations.store_reconciliation(ready.migration_id, kept)
        letters = [dead_letter(n, stream="wms.products", key=f"key-canary-{n}") for n in range(1, PLACES + 3)]
        tx.dead_letters.put(letters, run_id=1, at=AT)
        tx.dead_letters.mark_dropped("wms.products", [2])
        tx.waiting_records.put(
            [waiting(n, stream="wms.products", key=f"key-canary-{n}") for n in (7, 8)], run_id=1, at=AT
        )
        there = intent(9, key="key-canary-9", status="delivered", untouched=True)
        tx.intents.add([there], run_id=1, fence=1, at=AT)
    report = ready.report(accepted="known")
    (rejected,), (dropped,) = report["exceptions"]["rejected"], report["exceptions"]["dropped"]
    assert (rejected["code"], rejected["records"], rejected["places"][:2]) == ("bad_value", 101, ["f.csv:1", "f.csv:3"])
    assert len(rejected["places"]) == PLACES
    assert (dropped["records"], dropped["places"]) == (1, ["f.csv:2"])
    assert report["exceptions"]["waiting"] == [{"stream": "wms.products", "for": "customer", "records": 2}]
    assert report["exceptions"]["kept"] == {"wms.products": 4}
    assert report["already_there"] == {"wms.products": 1}
    assert report["migration"]["accepted_exceptions"] == "known"
    text = exact_json.dumps(report).decode()
    assert "canary" not in text
    assert "cus_of_somebody" not in text


def test_a_reason_without_exceptions_is_not_kept(ready: LoadedMigration) -> None:
    """There was nothing to accept."""
    assert ready.report(accepted="just in case")["migration"]["accepted_exceptions"] is None


def test_a_record_of_a_file_that_is_not_known_any_more_has_its_place(ready: LoadedMigration) -> None:
    """An undo lets files be read again, and forgets them; the dead letters of others stay."""
    with ready.state.begin() as tx:
        letters = [dead_letter(n, stream="wms.products", source="old.csv") for n in (1, 2)]
        tx.dead_letters.put(letters, run_id=1, at=AT)
        tx.intake.forget_files_of_stream("wms.products")
    (rejected,) = ready.report(accepted="known")["exceptions"]["rejected"]
    assert (rejected["records"], rejected["places"]) == (2, ["old.csv:1", "old.csv:2"])
