"""Joined files over time: no line is lost, and no complete record is rejected, when old files leave the window."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta

import pytest
from tests.e2e.test_joined_files import HEADERS, LINES, begin, line, orders, planned, reasons
from tests.e2e.warehouse import Site

HEAD, LINE = "ORDERNO;STORE;AT\n", "ORDERNO;LINE;SKU;QTY;PRICE\n"


def later(site: Site, days: int) -> None:
    """Everything that has happened so far happened *days* earlier."""
    for path in site.out.iterdir():
        os.utime(path, (path.stat().st_mtime - days * 86_400,) * 2)
    with closing(sqlite3.connect(site.folder / "state.db")) as db, db:
        rows = db.execute("SELECT rowid, accepted_at, modified_at, stamp FROM taken_files").fetchall()
        for row, accepted, modified, stamp in rows:
            aged = [
                _earlier(accepted, days),
                _earlier(modified, days),
                _earlier(stamp, days) if "T" in stamp else stamp,
            ]
            db.execute(
                "UPDATE taken_files SET accepted_at = ?, modified_at = ?, stamp = ? WHERE rowid = ?", (*aged, row)
            )


def _earlier(instant: str, days: int) -> str:
    digits = "microseconds" if "." in instant else "seconds"
    return (datetime.fromisoformat(instant) - timedelta(days=days)).isoformat(timespec=digits)


def test_a_delivered_record_is_not_rejected_when_its_own_file_is_no_longer_kept(site: Site) -> None:
    """Only a new row can lack its record: one that was joined before does not become a dead letter."""
    begin(site)
    site.export("HEAD_1.csv", HEADERS)
    site.export("LINE_1.csv", LINES)
    assert site.sync().code == 0
    later(site, 5)
    site.export("LINE_2.csv", LINE + "1;3;P2;9;0.30\n")
    assert site.sync().code == 0
    later(site, 3)
    site.export("HEAD_3.csv", HEAD + "3;S1;2026-01-03\n")
    site.export("LINE_3.csv", LINE + "3;1;P2;9;0.30\n")
    assert planned(site) == {"create": 1}
    assert site.sync().code == 0
    assert reasons(site) == {}


@pytest.mark.nightly
def test_a_record_that_is_read_again_has_all_its_rows(site: Site) -> None:
    """Also those that arrived up to `within` before it: their files are kept longer than its own."""
    begin(site)
    site.export("HEAD_1.csv", HEADERS)
    site.export("LINE_1.csv", LINES)
    assert site.sync().code == 0
    later(site, 5)
    site.export("HEAD_2.csv", HEAD + "1;S2;2026-01-01\n")
    site.export("LINE_2.csv", LINE + "1;3;P2;9;0.30\n")
    assert site.sync().code == 0
    assert len(orders(site)["wms:1"][2]) == 3
    later(site, 3)
    site.export("HEAD_3.csv", HEAD + "3;S1;2026-01-03\n")
    site.export("LINE_3.csv", LINE + "3;1;P2;9;0.30\n")
    site.sync()
    assert len(orders(site)["wms:1"][2]) == 3
    assert reasons(site) == {}


@pytest.mark.nightly
def test_files_are_read_again_in_the_order_in_which_they_arrived(site: Site) -> None:
    """A row of an older file whose name is the last does not replace the newer row of its record."""
    begin(site)
    site.export("HEAD_9.csv", HEADERS)
    site.export("LINE_9.csv", LINES)
    assert site.sync().code == 0
    site.export("HEAD_10.csv", HEAD + "1;S2;2026-01-01\n")
    assert site.sync().code == 0
    assert orders(site)["wms:1"][0] == "wms:S2"
    site.export("LINE_10.csv", LINE + "2;3;P2;9;0.30\n")
    assert site.sync().code == 0
    assert orders(site)["wms:1"][0] == "wms:S2"


def test_rows_of_a_copied_folder_keep_their_order(site: Site) -> None:
    """Copies have new times: the row of an older file does not replace the newer one of its record."""
    begin(site)
    site.export("HEAD_1.csv", HEADERS)
    site.export("LINE_HAM_20260101.csv", LINES)
    assert site.sync().code == 0
    site.export("LINE_BRE_20260102.csv", LINE + "1;1;P1;7;1.50\n")
    assert site.sync().code == 0
    for path in sorted(site.out.iterdir()):
        site.export(path.name, path.read_bytes())
    site.export("HEAD_2.csv", HEAD + "3;S1;2026-01-03\n")
    site.export("LINE_BRE_20260103.csv", LINE + "3;1;P2;9;0.30\n")
    assert site.sync().code == 0
    assert orders(site)["wms:1"][2] == (line("P2", "1", "0.30"), line("P1", "7", "1.50"))
    assert len(orders(site)) == 3


def test_joined_rows_without_any_file_of_records_are_refused(site: Site) -> None:
    """They are not taken in silently; once the other file has arrived, everything is delivered."""
    begin(site)
    site.export("LINE_1.csv", LINES)
    refused = site.run("sync")
    assert refused.code == 4
    assert "no file matches out/HEAD_*.csv" in refused.err
    site.export("HEAD_1.csv", HEADERS)
    assert site.sync().code == 0
    assert len(orders(site)) == 2


def test_rows_that_come_too_late_are_refused(site: Site) -> None:
    """When no file of records is kept any more, a later row of a record is reported."""
    begin(site)
    site.export("HEAD_1.csv", HEADERS)
    site.export("LINE_1.csv", LINES)
    assert site.sync().code == 0
    later(site, 8)
    site.export("LINE_2.csv", LINE + "1;3;P2;9;0.30\n")
    assert planned(site) == {}
    assert site.sync().code == 4


@pytest.mark.nightly
def test_filters_do_not_leave_out_rows_without_a_record(site: Site) -> None:
    """They are dead letters, whatever the filter says about columns that they lack."""
    begin(site)
    site.edit("        join:", "        skip: {s: {not: {field: STORE, starts_with: S}}}\n        join:")
    site.export("HEAD_1.csv", HEADERS)
    site.export("LINE_1.csv", LINES + "4;1;P2;5;0.30\n")
    assert site.sync().code == 1
    assert reasons(site) == {"4": "unmatched"}


@pytest.mark.nightly
def test_rows_without_a_record_are_not_older_than_a_delivered_one(site: Site) -> None:
    """They are dead letters, and not `ignored`, although they lack the column of `order_by`."""
    begin(site)
    site.edit("        join:", "        order_by: [AT]\n        join:")
    site.export("HEAD_1.csv", HEADERS)
    site.export("LINE_1.csv", LINES)
    assert site.sync().code == 0
    later(site, 8)
    site.export("HEAD_2.csv", HEAD + "3;S1;2026-01-03\n")
    site.export("LINE_2.csv", LINE + "1;3;P2;9;0.30\n3;1;P2;9;0.30\n")
    assert site.sync().code == 1
    assert reasons(site) == {"1": "unmatched"}


def test_the_newest_parts_of_a_snapshot_are_kept_however_old_they_are(site: Site) -> None:
    """A new file of records alone is joined with them."""
    begin(site, mode="snapshot")
    site.export("HEAD_2026-01-05.csv", HEADERS)
    site.export("LINE_2026-01-05.csv", LINES)
    assert site.sync().code == 0
    later(site, 10)
    site.export("HEAD_2026-01-15.csv", HEADERS.replace("S2", "S1"))
    assert site.sync().code == 0
    assert orders(site)["wms:2"][0] == "wms:S1"


@pytest.mark.nightly
def test_a_corrected_part_replaces_the_one_with_its_name(site: Site) -> None:
    """A row that it no longer has is removed from its record."""
    begin(site, mode="snapshot")
    site.export("HEAD_2026-01-05.csv", HEADERS)
    site.export("LINE_2026-01-05_a.csv", LINES)
    assert site.sync().code == 0
    site.export("LINE_2026-01-05_a.csv", LINES.replace("1;2;P2;1;0.30\n", ""))
    assert site.sync().code == 0
    assert orders(site)["wms:1"][2] == (line("P1", "2", "1.5"),)


def test_a_changed_mapping_is_applied_to_kept_files(site: Site) -> None:
    """A record keeps its rows from files that are no longer on the server."""
    begin(site)
    site.export("HEAD_1.csv", HEADERS)
    gone = site.export("LINE_1.csv", LINES)
    assert site.sync().code == 0
    gone.unlink()
    site.export("LINE_2.csv", LINE + "1;3;P2;9;0.30\n")
    assert site.sync().code == 0
    assert len(orders(site)["wms:1"][2]) == 3
    site.edit("currency: store.CUR", "currency: {const: EUR}")
    assert site.sync().code == 0
    assert len(orders(site)["wms:1"][2]) == 3
    assert reasons(site) == {}


@pytest.mark.nightly
def test_a_changed_mapping_reads_files_in_the_order_in_which_they_arrived(site: Site) -> None:
    """With and without joins, a row of an older file whose name is the last does not replace a newer one."""
    begin(site)
    site.edit("mode: snapshot", "mode: append", within="products:")
    site.export("HEAD_9.csv", HEADERS)
    site.export("LINE_9.csv", LINES)
    site.export("PROD_9.csv", "SKU;NAME\nP1;Bolt\nP2;Screw\n")
    assert site.sync().code == 0
    site.export("HEAD_10.csv", HEAD + "1;S2;2026-01-01\n")
    site.export("PROD_10.csv", "SKU;NAME\nP2;Washer\n")
    assert site.sync().code == 0
    site.edit("currency: store.CUR", "currency: {const: EUR}")
    site.edit("name: NAME}", "name: NAME, description: NAME}", within="products:")
    assert planned(site) == {"update": 4}
    assert site.sync().code == 0
    assert orders(site)["wms:1"][0] == "wms:S2"
    described = {each["body"]["externalId"]: each["body"].get("description") for each in site.effects("product")}
    assert described == {"wms:P1": "Bolt", "wms:P2": "Washer"}
