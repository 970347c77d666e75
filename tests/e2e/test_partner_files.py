"""Orders that a partner takes in files: handed over once, acknowledged, refused, overdue, and what a person does."""

from __future__ import annotations

import gzip
import json
import shutil
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.partner_files import PartnerFiles, later
from tests.e2e.project_folder import balance
from tests.servers import served

from crossdock.reading.transport.folder_store import FolderStore


def test_an_order_is_handed_over_and_acknowledged(tmp_path: Path) -> None:
    """It counts as delivered once the partner has acknowledged it; then its change follows, and its cancellation."""
    stage = PartnerFiles(tmp_path)
    stage.export("SO-1,Ann,1", "SO-2,Bob,2", "SO-3,Cyd,3", "SO-4,Dee,4")
    report = stage.sync()
    assert stage.records(report) == {"read": 4, "handed_over": 4}
    assert report["requests"] == 2
    assert stage.files() == {
        "ord_00001.csv": ["N,SO-1,Ann,1", "N,SO-2,Bob,2", "N,SO-3,Cyd,3"],
        "ord_00002.csv": ["N,SO-4,Dee,4"],
    }
    assert {each["key"] for each in stage.listed("handed-over")} == {"SO-1", "SO-2", "SO-3", "SO-4"}
    stage.export("SO-1,Ann,7,2", "SO-2,,,2,yes")
    assert stage.records(stage.sync())["carried_on"] == 2  # they wait for the acknowledgement
    stage.acknowledge("ord_00001.csv,,,,OK,", ",2,,,OK,")
    report = stage.sync()
    assert stage.records(report) == {
        "carried_over": 4, "read": 2, "created": 4, "handed_over": 2, "delivered": 4,
    }  # fmt: skip
    assert stage.records(report, "wms.acknowledgements") == {"read": 2, "acknowledged": 2}
    assert stage.files()["ord_00003.csv"] == ["C,SO-1,Ann,7"]
    assert stage.files()["ord_00004.csv"] == ["X,SO-2,Bob,2"]
    stage.acknowledge(",3,0001,,OK,", ",4,1,SO-2,OK,")
    assert stage.records(stage.sync()) == {"carried_over": 2, "updated": 1, "deleted": 1, "delivered": 2}
    assert not json.loads(stage.run("records", "list", "--json").stdout)
    traced = stage.run("trace", "SO-1").stdout
    assert "record 1 of 3 in ord_00001.csv, file number 1" in traced
    assert "record 1 of 1 in ord_00003.csv, file number 3" in traced


def test_a_refusal_is_a_dead_letter(tmp_path: Path) -> None:
    """With the partner's reason; a replay hands it over again, in a new file."""
    stage = PartnerFiles(tmp_path)
    stage.export("SO-1,Ann,1", "SO-2,Bob,2")
    stage.sync()
    stage.acknowledge(",,,SO-1,NO,unknown customer", "ord_00001.csv,,,SO-2,OK,")
    report = stage.sync(1)
    assert stage.records(report) == {"carried_over": 2, "created": 1, "rejected": 1, "delivered": 1}
    (refused,) = stage.listed("rejected")
    assert refused["why"] == "rejected: wms refused it: unknown customer"
    assert stage.run("records", "replay", "shop.orders").exit_code == 0
    assert stage.files()["ord_00002.csv"] == ["N,SO-1,Ann,1"]
    stage.acknowledge(",,,SO-1,OK,")
    assert stage.records(stage.sync())["created"] == 1


def test_acknowledgements_that_do_not_fit(tmp_path: Path) -> None:
    """One that comes again is ignored. One of nothing that was handed over, and a late refusal, are dead letters."""
    stage = PartnerFiles(tmp_path)
    stage.export("SO-1,Ann,1")
    stage.sync()
    stage.acknowledge(",,,SO-1,OK,")
    stage.sync()
    stage.acknowledge("ord_00001.csv,,,SO-1,OK,", "ord_00001.csv,1,1,,OK,")
    report = stage.sync()
    assert stage.records(report, "wms.acknowledgements") == {"read": 2, "ignored": 2}
    stage.acknowledge(
        ",,,SO-9,OK,", "ord_00009.csv,,,SO-1,OK,", ",77,,,OK,", ",1,5,,OK,", ",,,SO-1,NO,lost", "ord_00001.csv,2,,,OK,",
        ",one,,,OK,", ",,,,OK,", f",{10**40},,,OK,", f",1,{10**40},,OK,",
    )  # fmt: skip
    stage.sync(1)
    assert [each["why"] for each in stage.listed("rejected")] == [
        "unmatched: nothing was handed over to wms as record 'SO-9'",
        "unmatched: no file ord_00009.csv was handed over to wms",
        "unmatched: no file 77 was handed over to wms",
        "unmatched: nothing was handed over to wms as set '5' in this file",
        "conflict: wms refuses what counts as accepted since an earlier acknowledgement: lost",
        "unmatched: no file ord_00001.csv and 2 was handed over to wms",
        "unmatched: the number of a file must have digits only, not 'one'",
        "invalid_draft: needs the file, its number, or the record that is acknowledged",
        "unmatched: the number of a file has at most 18 digits",
        f"unmatched: nothing was handed over to wms as set '{'1'.ljust(32, '0')}' in this file",
    ]


def test_acknowledgements_that_are_read_again_are_about_what_was_handed_over_before(tmp_path: Path) -> None:
    """As after a change of their mapping: the change of an accepted order, and a refused one sent again, still wait."""
    stage = PartnerFiles(tmp_path, records_per_file=1)
    stage.export("SO-1,Ann,1", "SO-2,Bob,1")
    stage.sync()
    stage.acknowledge(",,,SO-1,OK,", ",,,SO-2,NO,stock")
    stage.sync(1)
    stage.export("SO-1,Ann,5,2")
    stage.sync(1)
    assert stage.run("records", "replay", "shop.orders").exit_code == 0
    config = yaml.safe_load(stage.config.read_text())
    config["connections"]["wms"]["streams"]["acknowledgements"]["map"]["reason"] = {"from": "text", "default": "none"}
    stage.config.write_text(yaml.safe_dump(config, sort_keys=False))
    report = stage.sync()
    assert stage.records(report, "wms.acknowledgements") == {"read": 2, "ignored": 2}
    assert [each["why"] for each in stage.listed("handed-over")] == [
        "update was handed over in ord_00003.csv",
        "create was handed over in ord_00004.csv",
    ]
    stage.acknowledge(",,,SO-2,OK,again", ",,,SO-1,OK,again")
    assert stage.records(stage.sync())["delivered"] == 2


def test_what_is_said_of_a_record_weighs_more(tmp_path: Path) -> None:
    """A file is accepted but for one record, in either order; a refusal may be repeated, and not be taken back."""
    stage = PartnerFiles(tmp_path)
    stage.export("SO-1,Ann,1", "SO-2,Bob,2", "SO-3,Cyd,3", "SO-4,Dee,4", "SO-5,Eve,5")
    stage.sync()
    stage.acknowledge(
        "C:\\in\\ORD_00001.CSV ,,,,OK,", "ord_00001.csv,,,SO-2,NO,late", ", 2 ,0002,,NO,late", ",2,,,OK,"
    )  # fmt: skip
    assert stage.records(stage.sync(1)) == {"carried_over": 5, "created": 3, "rejected": 2, "delivered": 3}
    assert {each["key"] for each in stage.listed("rejected")} == {"SO-2", "SO-5"}
    stage.export("SO-1,Ann,7,2")
    stage.sync(1)
    for _ in range(2):
        stage.acknowledge(",,,SO-1,NO,packed")
        report = stage.sync(1)
    assert stage.records(report, "wms.acknowledgements") == {"read": 1, "ignored": 1}
    stage.acknowledge(",,,SO-2,OK,", ",1,,,OK,")
    assert stage.records(stage.sync(1), "wms.acknowledgements") == {"read": 2, "ignored": 1, "rejected": 1}
    assert stage.listed("rejected")[-1]["why"] == (
        "conflict: wms accepts what it has refused before: a replay would hand it over again"
    )


def test_an_overdue_acknowledgement_degrades_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is listed with its file, until the partner acknowledges it after all or a person has asked."""
    stage = PartnerFiles(tmp_path)
    stage.export("SO-1,Ann,1", "SO-2,Bob,2", "SO-3,Cyd,3")
    stage.sync()
    later(monkeypatch, hours=9)
    report = stage.sync(1)
    assert report["open"]["overdue"] == 3
    (warning,) = [each["message"] for each in report["messages"] if each["level"] == "warning"]
    assert warning.startswith("wms has not acknowledged ord_00001.csv by 20")
    assert "3 overdue; ask whether it has them, then run 'crossdock records resolve shop.orders' with" in warning
    page = tmp_path / "run.html"
    assert stage.run("show", str(report["run"]), "-o", str(page)).exit_code == 0
    assert "3 records, handed over in files" in page.read_text()
    overdue = stage.listed("overdue")
    assert [each["key"] for each in overdue] == ["SO-1", "SO-2", "SO-3"]
    assert overdue[0]["why"].startswith("create was handed over in ord_00001.csv, not acknowledged by 20")
    asked = stage.run("records", "resolve", "shop.orders", "SO-1")
    assert asked.exit_code == 2
    assert "the create of SO-1 was handed over in ord_00001.csv, or may have been" in asked.stderr
    assert stage.run("records", "resolve", "shop.orders", "SO-1", "--delivered").exit_code == 0
    assert stage.run("records", "resolve", "shop.orders", "SO-2", "--not-delivered").exit_code == 0
    stage.acknowledge(",,,SO-3,OK,")
    report = stage.sync()
    assert stage.records(report) == {"carried_over": 2, "handed_over": 1, "created": 1, "delivered": 1}
    assert stage.files()["ord_00002.csv"] == ["N,SO-2,Bob,2"]


def test_a_reopened_record_is_acknowledged(tmp_path: Path) -> None:
    """Its acknowledgement still decides, after a person has taken back that it was not delivered."""
    stage = PartnerFiles(tmp_path)
    stage.export("SO-1,Ann,1")
    stage.sync()
    assert stage.run("records", "resolve", "shop.orders", "SO-1", "--not-delivered").exit_code == 0
    assert stage.run("records", "reopen", "shop.orders", "SO-1").exit_code == 0
    stage.acknowledge(",,,SO-1,OK,")
    assert stage.records(stage.sync())["created"] == 1
    assert list(stage.files()) == ["ord_00001.csv"]


@pytest.mark.parametrize("status", ["OK", "NO"])
def test_an_acknowledgement_that_comes_after_a_person_has_decided(tmp_path: Path, status: str) -> None:
    """An order that counts as not delivered is not handed over again if the partner has answered meanwhile."""
    stage = PartnerFiles(tmp_path)
    stage.export("SO-1,Ann,1", "SO-2,Bob,2")
    stage.sync()
    for key in ("SO-1", "SO-2"):
        assert stage.run("records", "resolve", "shop.orders", key, "--not-delivered").exit_code == 0
    stage.acknowledge(f"ord_00001.csv,,,SO-1,{status},late")
    done = stage.run("sync", "--json")
    balance(done.document)
    term = "created" if status == "OK" else "rejected"
    assert stage.records(done.document) == {"carried_over": 2, "handed_over": 1, term: 1} | (
        {"delivered": 1} if status == "OK" else {}
    )
    assert list(stage.files().values())[1:] == [["N,SO-2,Bob,2"]]


@pytest.mark.parametrize("restored", [False, True])
def test_a_run_that_reads_acknowledgements_alone_hands_nothing_over_before_it(
    tmp_path: Path, *, restored: bool
) -> None:
    """An order that counts as not delivered waits until they are read, though its own stream is not in the run."""
    stage = PartnerFiles(tmp_path)
    stage.export("SO-1,Ann,1", "SO-2,Bob,2")
    stage.sync()
    backup = stage.save()
    if restored:
        stage.export("SO-3,Cem,3")
        stage.sync()
        stage.restore(backup)
        stage.run("state", "restored")
    for key in ("SO-1", "SO-2"):
        assert stage.run("records", "resolve", "shop.orders", key, "--not-delivered").exit_code == 0
    before = stage.files().keys()
    stage.acknowledge("ord_00001.csv,,,SO-1,OK,late")
    done = stage.run("sync", "wms.acknowledgements", "--json")
    balance(done.document)
    assert stage.records(done.document, "wms.acknowledgements")["acknowledged"] == 1
    assert [lines for name, lines in stage.files().items() if name not in before] == [["N,SO-2,Bob,2"]]


def test_an_acknowledgement_of_a_file_that_counts_as_not_delivered(tmp_path: Path) -> None:
    """The partner may have the order twice, and the dead letter says so, for a file and for a record in it."""
    stage = PartnerFiles(tmp_path)
    stage.export("SO-1,Ann,1")
    stage.sync()
    assert stage.run("records", "resolve", "shop.orders", "SO-1", "--not-delivered").exit_code == 0
    stage.sync()
    stage.acknowledge("ord_00001.csv,,,SO-1,OK,", "ord_00001.csv,,,,OK,")
    stage.sync(1)
    of_record, of_file = [each["why"] for each in stage.listed("rejected")]
    assert of_record == (
        "unmatched: record 'SO-1' counts as handed over in ord_00002.csv, and not in this file: if wms has accepted"
        " both, it has the record twice"
    )
    assert of_file.startswith("unmatched: nothing counts as handed over to wms in this file any more: if a person has")
    stage.acknowledge("ord_00002.csv,,,,OK,")
    assert stage.records(stage.sync(1))["created"] == 1


class _Acknowledgements(ThreadingHTTPServer):
    """An API with acknowledgements, which a run reads again from ten minutes before the last one."""

    def __init__(self) -> None:
        self.listed: list[dict[str, str]] = []
        super().__init__(("127.0.0.1", 0), _AcknowledgementsHandler)


class _AcknowledgementsHandler(BaseHTTPRequestHandler):
    server: _Acknowledgements

    def do_GET(self) -> None:
        body = json.dumps({"data": self.server.listed}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name in the standard library
        """Stay silent."""


def test_an_acknowledgement_that_an_api_lists_again(tmp_path: Path) -> None:
    """It says nothing of what was handed over since, be it a change of an accepted order or a refused one again."""
    stage = PartnerFiles(tmp_path)
    with served(_Acknowledgements()) as api:
        config = yaml.safe_load(stage.config.read_text())
        stream = {
            "path": "/acks",
            "records": "data",
            "mode": "incremental",
            "params": {"since": "{since}"},
            "pagination": {"kind": "single_page"},
            "cursor": {"column": "at", "as": "instant"},
            "key": ["id"],
            "to": "wms.acknowledgements",
            "map": {"record": "order", "accepted": {"from": "status", "table": {"OK": True, "NO": False}}},
        }
        address = f"http://127.0.0.1:{api.server_port}"
        config["connections"]["api"] = {"kind": "http_json", "base_url": address, "streams": {"acks": stream}}
        stage.config.write_text(yaml.safe_dump(config, sort_keys=False))
        stage.export("SO-1,Ann,1", "SO-2,Bob,2")
        stage.sync()
        api.listed += [
            {"id": "a1", "order": "SO-1", "status": "OK", "at": "2026-01-05T10:00:00Z"},
            {"id": "a2", "order": "SO-2", "status": "NO", "at": "2026-01-05T10:00:01Z"},
        ]
        stage.export("SO-1,Ann,5,2")
        stage.sync(1)
        stage.export("SO-2,Bob,9,2")
        report = stage.sync()
        assert stage.records(report, "api.acks") == {"read": 2, "ignored": 2}
        assert list(stage.files().values())[1:] == [["C,SO-1,Ann,5"], ["N,SO-2,Bob,9"]]
        assert stage.records(stage.sync(), "api.acks") == {"read": 2, "ignored": 2}
        assert {each["key"] for each in stage.listed("handed-over")} == {"SO-1", "SO-2"}
        api.listed.append({"id": "a3", "order": "SO-1", "status": "OK", "at": "2026-01-05T11:00:00Z"})
        api.listed.append({"id": "a4", "order": "SO-2", "status": "OK", "at": "2026-01-05T11:00:00Z"})
        report = stage.sync()
        assert stage.records(report)["delivered"] == 2
        assert "acknowledged by row " in stage.run("trace", "SO-1").stdout


def test_a_file_of_acknowledgements_that_grows(tmp_path: Path) -> None:
    """Its rows of before say nothing of what was handed over since they were read."""
    stage = PartnerFiles(tmp_path)
    stage.export("SO-1,Ann,1")
    stage.sync()
    row = "1,,,,SO-1,OK,"
    growing = stage.partner / "out" / "ack_today.csv"
    growing.write_text(f"id,file,number,set,order_no,status,text\n{row}\n")
    stage.export("SO-1,Ann,5,2", "SO-3,Cyd,3")
    stage.sync()
    growing.write_text(f"{growing.read_text()}2,,,,SO-3,OK,\n")
    report = stage.sync()
    assert stage.records(report, "wms.acknowledgements") == {"read": 2, "ignored": 1, "acknowledged": 1}
    assert [each["key"] for each in stage.listed("handed-over")] == ["SO-1"]
    growing.write_text(f"{growing.read_text()}3,,,,SO-1,OK,\n")
    assert stage.records(stage.sync())["updated"] == 1


def test_an_acknowledgement_of_one_of_two_records(tmp_path: Path) -> None:
    """An order and a receipt with the same number are told apart by their files; the number alone settles neither."""
    stage = PartnerFiles(tmp_path)
    config = yaml.safe_load(stage.config.read_text())
    wms, asn = config["connections"]["wms"], json.loads(json.dumps(config["connections"]["shop"]))
    asn["path"], asn["streams"]["orders"]["to"] = "asn", "wms.receipts"
    config["connections"]["asn"] = asn
    resources = wms["target"]["resources"]
    resources["receipts"] = resources["orders"] | {"file": "asn_{number:5}.csv"}
    stage.config.write_text(yaml.safe_dump(config, sort_keys=False))
    (tmp_path / "asn").mkdir()
    (tmp_path / "asn" / "orders_1.csv").write_text("number,customer,qty,version,gone\n17,Ann,9,,\n")
    stage.export("17,Bob,1")
    stage.sync()
    stage.acknowledge(",,,17,OK,")
    stage.sync(1)
    (dead,) = stage.listed("rejected")
    assert dead["why"].startswith(
        "ambiguous_match: record '17' was handed over to wms as orders and as receipts: the file"
    )
    assert len(stage.listed("handed-over")) == 2
    stage.acknowledge("ord_00001.csv,,,17,OK,")
    stage.sync(1)
    assert [each["stream"] for each in stage.listed("handed-over")] == ["asn.orders"]


def test_a_restored_backup_uses_no_number_again(tmp_path: Path) -> None:
    """Its files have other names than any since the backup, and what it has forgotten is in doubt, not sent twice."""
    stage = PartnerFiles(tmp_path, acknowledged=None)
    stage.export("SO-1,Ann,1")
    stage.sync()
    backup = stage.save()
    stage.export("SO-2,Bob,2")
    stage.sync()
    stage.restore(backup)
    refused = stage.run("sync")
    assert refused.exit_code == 4
    assert "crossdock state restored" in refused.stderr
    assert stage.run("state", "restored").exit_code == 0
    stage.export("SO-3,Cyd,3")
    stage.run("sync")
    assert {each["key"] for each in stage.listed("in-doubt")} == {"SO-2", "SO-3"}
    assert (
        stage.run(
            "records", "resolve", "shop.orders", "SO-2", "--delivered-as", "SO-2", "--no-lookup", "--yes"
        ).exit_code
        == 0
    )
    assert stage.run("records", "resolve", "shop.orders", "SO-3", "--not-delivered").exit_code == 0
    done = stage.run("sync")
    assert done.exit_code == 0, done.stderr
    assert stage.files() == {
        "ord_00001.csv": ["N,SO-1,Ann,1"],
        "ord_00002.csv": ["N,SO-2,Bob,2"],
        "ord_01002.csv": ["N,SO-3,Cyd,3"],
    }


def test_a_restored_backup_leaves_out_as_many_numbers_as_may_have_been_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partner that gets a file for each order may have got more than a thousand since the backup was made."""
    stage = PartnerFiles(tmp_path, acknowledged=None, records_per_file=1)
    stage.export(*(f"SO-{number},Ann,1" for number in range(1, 61)))
    stage.sync()
    later(monkeypatch, days=2)
    assert stage.run("state", "restored").exit_code == 0
    stage.export("SO-61,Bob,2")
    stage.sync(1)
    assert stage.run("records", "resolve", "shop.orders", "SO-61", "--not-delivered").exit_code == 0
    stage.sync()
    assert int(list(stage.files())[-1][4:9]) > 60 + 10 * 2 * 60


def test_a_new_state_with_imported_bindings_goes_on_with_the_numbers(tmp_path: Path) -> None:
    """A partner would ignore a file whose number it knows, and the order in it would be lost."""
    stage = PartnerFiles(
        tmp_path, acknowledged=None, records_per_file=1, orders={"on_gone": "nothing", "deleted": None}
    )
    stage.export("SO-1,Ann,1", "SO-2,Bob,2")
    stage.sync()
    exported = stage.run("bindings", "export").stdout
    assert exported.splitlines()[-1] == "wms,,,number of the last file,2"
    (tmp_path / "bindings.csv").write_text(exported)
    for path in tmp_path.glob("state.db*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in [*(stage.partner / "in").iterdir(), *(tmp_path / "orders").iterdir()]:
        path.unlink()
    assert stage.run("init").exit_code == 0
    assert stage.run("bindings", "import", str(tmp_path / "bindings.csv")).stdout == "imported 2 bindings\n"
    stage.export("SO-3,Cyd,3")
    stage.sync()
    assert stage.files() == {"ord_00003.csv": ["N,SO-3,Cyd,3"]}
    (tmp_path / "bindings.csv").write_text(exported.replace("file,2", "file,2nd"))
    wrong = stage.run("bindings", "import", str(tmp_path / "bindings.csv"))
    assert (wrong.exit_code, "the number of the last file must have digits only" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("acknowledged", [None, {"within": "8h"}])
def test_a_new_state_with_imported_bindings_hands_nothing_over_again(
    tmp_path: Path, acknowledged: dict[str, str] | None
) -> None:
    """An order that the partner has is unchanged; one that has changed since the export is handed over as a change."""
    stage = PartnerFiles(tmp_path, acknowledged=acknowledged)
    stage.export("SO-1,Ann,1", "SO-2,Bob,2", "SO-3,Cyd,3", "SO-4,Dan,4")
    stage.sync()
    if acknowledged:
        stage.acknowledge(",1,,,OK,", ",2,,,OK,")
        stage.sync()
    (tmp_path / "bindings.csv").write_text(stage.run("bindings", "export").stdout)
    for path in tmp_path.glob("state.db*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in (stage.partner / "out").iterdir():
        path.unlink()
    stage.export("SO-2,Bob,9,2", "SO-4,Dan,4,2,yes")
    assert stage.run("init").exit_code == 0
    assert stage.run("bindings", "import", str(tmp_path / "bindings.csv")).stdout == "imported 4 bindings\n"
    stage.sync()
    assert list(stage.files().values())[2:] == [["C,SO-2,Bob,9"], ["X,SO-4,,"]]
    stage.export("SO-3,Cyd,3,2,yes")
    stage.sync()
    assert list(stage.files().values())[4:] == [["X,SO-3,Cyd,3"]]


def test_another_file_with_the_name_is_not_overwritten(tmp_path: Path) -> None:
    """It fails the run with advice, ends no other file, and is handed over under its name once the other is away."""
    stage = PartnerFiles(tmp_path, records_per_file=1)
    theirs = stage.partner / "in" / "ord_00001.csv"
    theirs.write_text("theirs")
    stage.export("SO-1,Ann,1", "SO-2,Bob,2")
    done = stage.run("sync")
    assert done.exit_code == 4, done.stderr
    assert "another file has the name 'in/ord_00001.csv'; nothing was overwritten" in done.stderr
    stage.acknowledge(",,,SO-2,OK,")
    assert stage.run("sync").exit_code == 4
    assert not stage.listed("handed-over")
    assert theirs.read_text() == "theirs"
    assert [each["key"] for each in stage.listed("pending")] == ["SO-1"]
    dropped = stage.run("records", "drop", "shop.orders", "SO-1", "--yes")
    assert "is part of a file, which is handed over as it is" in dropped.stderr
    theirs.rename(stage.partner / "elsewhere")
    assert stage.records(stage.sync())["handed_over"] == 1
    assert stage.files() == {"ord_00001.csv": ["N,SO-1,Ann,1"], "ord_00002.csv": ["N,SO-2,Bob,2"]}


def test_a_new_state_in_place_of_a_lost_one_uses_no_number_again(tmp_path: Path) -> None:
    """The advice about a name that is taken leads to a number that the partner has not got."""
    stage = PartnerFiles(tmp_path, acknowledged=None, records_per_file=1)
    theirs = stage.partner / "in" / "ord_00001.csv"
    theirs.write_text("of the lost state")
    stage.export("SO-1,Ann,1")
    refused = stage.run("sync")
    assert refused.exit_code == 4
    assert "if it is in place of a lost one, also set first_number to one after the last file" in refused.stderr
    assert stage.run("state", "restored").exit_code == 0
    config = yaml.safe_load(stage.config.read_text())
    config["connections"]["wms"]["target"]["first_number"] = 17_001
    stage.config.write_text(yaml.safe_dump(config, sort_keys=False))
    stage.sync(1)
    assert [each["key"] for each in stage.listed("in-doubt")] == ["SO-1"]
    assert stage.run("records", "resolve", "shop.orders", "SO-1", "--not-delivered").exit_code == 0
    stage.sync()
    assert stage.files()["ord_17001.csv"] == ["N,SO-1,Ann,1"]
    assert theirs.read_text() == "of the lost state"


def test_refusals_that_are_not_shown_are_counted(tmp_path: Path) -> None:
    """Ten files are named, and how many more were left out."""
    stage = PartnerFiles(tmp_path, records_per_file=1)
    for number in range(1, 13):
        (stage.partner / "in" / f"ord_{number:05}.csv").write_text("theirs")
    stage.export(*(f"SO-{number},Ann,1" for number in range(1, 14)))
    done = stage.run("sync")
    assert done.exit_code == 4
    assert done.stderr.count("another file has the name") == 10
    assert "2 more were left out for such reasons" in done.stderr
    assert [each["key"] for each in stage.listed("handed-over")] == ["SO-13"]


@pytest.mark.parametrize("if_missing", ["in_doubt", "handed_over"])
def test_a_server_that_takes_files_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, if_missing: str) -> None:
    """The temporary file is gone once it is written: it is not written again; ``if_missing`` says what that means."""
    stage = PartnerFiles(tmp_path, acknowledged=None, if_missing=if_missing)
    write, taken = FolderStore.write, list[bytes]()

    def write_and_take(store: FolderStore, path: str, data: bytes) -> None:
        write(store, path, data)
        (stage.partner / path).unlink()
        taken.append(data)

    monkeypatch.setattr(FolderStore, "write", write_and_take)
    stage.export("SO-1,Ann,1")
    is_doubtful = if_missing == "in_doubt"
    for _ in range(2):
        assert stage.run("sync").exit_code == is_doubtful
    assert len(taken) == 1
    assert [each["key"] for each in stage.listed("in-doubt")] == ["SO-1"] * is_doubtful


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    """It keeps its files, and neither acknowledgements nor what another folder takes."""
    stage = PartnerFiles(tmp_path, records_per_file=1)
    stage.export("SO-1,Ann,1")
    stage.sync()
    (stage.partner / "in").rename(stage.partner / "moved")
    stage.export("SO-2,Bob,2", "SO-3,Cyd,3")
    stage.acknowledge(",,,SO-1,OK,")
    done = stage.run("sync")
    assert (done.exit_code, "folder 'in' does not exist" in done.stderr) == (2, True)
    assert not stage.listed("handed-over")
    stage.export("SO-4,Dee,4")
    assert stage.run("sync").exit_code == 2
    (stage.partner / "moved").rename(stage.partner / "in")
    assert stage.records(stage.sync())["handed_over"] == 3
    assert sorted(stage.files()) == [f"ord_0000{number}.csv" for number in (1, 2, 3, 4)]


def test_what_fits_no_file(tmp_path: Path) -> None:
    """Records whose total is too wide together come in smaller files. One that fits none is replayed."""
    columns = {"sum": {"at": 1, "length": 2, "sum": "qty"}, "file": {"at": 3, "length": 1, "template": "{file_number}"}}
    order = {"number": {"at": 1, "length": 5, "template": "{number}"}}
    content = {"kind": "fixed_width", "rows": [{"columns": order}], "trailer": [{"columns": columns}]}
    stage = PartnerFiles(
        tmp_path, orders={"on_gone": "nothing", "deleted": None}, acknowledged=None, content=content, records_per_file=5
    )
    stage.export(*(f"SO-{number},Ann,60" for number in range(10, 20)))
    done = stage.run("sync", "--json")
    assert stage.records(done.document) == {"read": 10, "created": 9, "rejected": 1, "delivered": 9}
    inbox = stage.partner / "in"
    found = [each.read_text().split() for each in sorted(inbox.iterdir())]
    assert found == [[f"SO-{number + 9}", f"60{number}"] for number in range(1, 10)]
    (dead,) = stage.listed("rejected")
    assert dead["why"] == "invalid_draft: ord_00010.csv: file_number: has 2 characters, and at most 1 are allowed"
    columns["file"]["length"] = 2
    stage.configure(acknowledged=None, content=content)
    assert stage.run("records", "replay", "shop.orders").exit_code == 0
    assert (inbox / "ord_00010.csv").read_text().split() == ["SO-19", "6010"]


def test_a_resource_that_the_config_has_lost(tmp_path: Path) -> None:
    """What is left of it waits with a note, and is handed over once the config has it again."""
    stage = PartnerFiles(tmp_path, acknowledged=None)
    theirs = stage.partner / "in" / "ord_00001.csv"
    theirs.write_text("theirs")
    stage.export("SO-1,Ann,1")
    assert stage.run("sync").exit_code == 4
    theirs.unlink()
    config = stage.config.read_text()
    changed = yaml.safe_load(config)
    del changed["connections"]["shop"]
    resources = changed["connections"]["wms"]["target"]["resources"]
    resources["others"] = resources.pop("orders")
    stage.config.write_text(yaml.safe_dump(changed))
    report = stage.sync()
    (note,) = [each["message"] for each in report["messages"] if each["stream"] == "wms.orders"]
    assert note == "1 unsettled operations are left: the config has no such resource"
    stage.config.write_text(config)
    assert stage.records(stage.sync())["created"] == 1


def test_names_that_cannot_be(tmp_path: Path) -> None:
    """A temporary name must not be that of the file or its marker, and a marker must not be the file."""
    stage = PartnerFiles(tmp_path)
    for names in (
        {"temporary": "{name}"}, {"temporary": "{stem}.part"}, {"marker": "{stem}.csv"},
        {"temporary": "{name}.ok", "marker": "{name}.ok"}, {"file": "o" * 150 + "{number}"},
    ):  # fmt: skip
        stage.configure(**names)
        assert f"orders.{list(names)[-1]}: " in stage.run("check").stderr


def test_a_marker_follows_the_file(tmp_path: Path) -> None:
    """It is there once the file is, and nothing is left under a temporary name."""
    stage = PartnerFiles(tmp_path, marker="{stem}.ok", temporary="{name}.tmp", acknowledged=None)
    stage.export("SO-1,Ann,1")
    assert stage.records(stage.sync())["created"] == 1
    assert {each.name for each in (stage.partner / "in").iterdir()} == {"ord_00001.csv", "ord_00001.ok"}


def test_what_a_file_cannot_express(tmp_path: Path) -> None:
    """A change is a dead letter if the file has no code for one, so is a wide value."""
    columns = {"order_no": {"from": "number", "max_length": 6}, "qty": "{qty}"}
    content = {"kind": "delimited", "rows": [{"columns": columns}]}
    stage = PartnerFiles(tmp_path, orders={"on_gone": "nothing", "deleted": None}, acknowledged=None, content=content)
    stage.export("SO-1,Ann,1", "SO-1234567,Bob,2")
    assert stage.records(stage.sync(1)) == {"read": 2, "created": 1, "rejected": 1, "delivered": 1}
    stage.export("SO-1,Ann,5,2")
    assert stage.records(stage.sync(1))["rejected"] == 1
    whys = sorted(each["why"] for each in stage.listed("rejected"))
    assert whys[1].startswith("invalid_draft: ")
    assert whys[0].startswith("changed_after_delivery: ")


def test_a_renamed_file_is_an_acknowledgement(tmp_path: Path) -> None:
    """The name tells the file, whatever its content; an ending of its own, and the text in it, refuse the file."""
    told = {"key": ["name"], "mode": "append", "to": "wms.acknowledgements", "format": {"kind": "whole_file"}}
    taken = {"files": "in/*.ack", "map": {"file": "stem", "accepted": {"const": True}}}
    wrong = {"files": "in/*.err", "map": {"file": "stem", "accepted": {"const": False}, "reason": "text"}}
    stage = PartnerFiles(tmp_path, acknowledgements={"taken": told | taken, "wrong": told | wrong})
    stage.export("SO-1,Ann,1", "SO-2,Bob,2", "SO-3,Cyd,3", "SO-4,Dee,4")
    stage.sync()
    inbox = stage.partner / "in"
    (inbox / "ord_00001.csv").rename(inbox / "ord_00001.csv.ack")
    (inbox / "ord_00002.csv.err").write_text("no such article\n")
    assert stage.records(stage.sync(1)) == {"carried_over": 4, "created": 3, "rejected": 1, "delivered": 3}
    assert [each["why"] for each in stage.listed("rejected")] == ["rejected: wms refused it: no such article"]
    (inbox / "empty.ack").touch()
    stage.sync(1)
    assert "unmatched: no file empty was handed over to wms" in [each["why"] for each in stage.listed("rejected")]


def test_empty_files_are_acknowledgements(tmp_path: Path) -> None:
    """Each by its name, although all of them have the same bytes, in one run and in later ones."""
    told = {"key": ["name"], "mode": "append", "to": "wms.acknowledgements", "format": {"kind": "whole_file"}}
    taken = {"files": "in/*.ack", "map": {"file": "stem", "accepted": {"const": True}}}
    stage = PartnerFiles(tmp_path, acknowledgements={"taken": told | taken}, records_per_file=1)
    stage.export("SO-1,Ann,1", "SO-2,Bob,2", "SO-3,Cyd,3")
    stage.sync()
    inbox = stage.partner / "in"
    for number in (1, 2):
        (inbox / f"ord_0000{number}.csv.ack").touch()
    assert stage.records(stage.sync(), "wms.taken") == {"read": 2, "acknowledged": 2}
    (inbox / "ord_00003.csv.ack").touch()
    report = stage.sync()
    assert stage.records(report, "wms.taken") == {"read": 1, "acknowledged": 1}
    assert not [each for each in report["messages"] if each["stream"] == "wms.taken"]
    assert not stage.listed("handed-over")


def test_files_of_limited_size(tmp_path: Path) -> None:
    """A file ends before the limit of bytes, as the plan says, and a record that is larger alone is refused."""
    stage = PartnerFiles(tmp_path, bytes_per_file=1_000, records_per_file=20, acknowledged=None)
    long = "x" * 300
    stage.export(
        *(f"{number},{long if number < 5 else 'short'},{number}" for number in range(1, 8)), f"8,{'y' * 2_000},1"
    )
    stage.sync(1)
    files = {path.name: path.read_text() for path in sorted((stage.partner / "in").iterdir())}
    assert [[line.split(",")[1] for line in text.splitlines()[1:]] for text in files.values()] == [
        ["1", "2"], ["3", "4", "5", "6", "7"],
    ]  # fmt: skip
    assert all(len(text) <= 1_000 for text in files.values())
    assert "takes 2,0" in stage.run("records", "list", "--state", "rejected").stdout


def test_a_record_keeps_the_name_that_the_partner_has_it_by(tmp_path: Path) -> None:
    """After another ``name_form``, changes and cancellations are about the order that was sent; new ones get it."""
    stage = PartnerFiles(tmp_path)
    stage.export("SO-1,Ann,1", "SO-2,Bob,2")
    stage.sync()
    stage.acknowledge("ord_00001.csv,,,,OK,")
    stage.configure(name_form="X-{key}")
    stage.export("SO-1,Ann,5,2", "SO-2,,,2,yes", "SO-3,Cyd,3")
    stage.sync()
    assert sorted(stage.files()["ord_00002.csv"] + stage.files()["ord_00003.csv"]) == [
        "C,SO-1,Ann,5", "N,X-SO-3,Cyd,3", "X,SO-2,Bob,2",
    ]  # fmt: skip
    stage.acknowledge(",,,SO-1,OK,", ",,,SO-2,OK,", ",,,X-SO-3,OK,")
    assert stage.records(stage.sync())["delivered"] == 3


def test_files_by_a_member(tmp_path: Path) -> None:
    """Records with another value go into another file, as a plan says before."""
    stage = PartnerFiles(tmp_path, by="customer", acknowledged=None)
    stage.export("SO-1,Ann,1", "SO-2,Bob,2", "SO-3,Ann,3", "SO-4,Ann,4", "SO-5,Ann,5")
    assert "file ord_00001.csv to wms: 3 records" in stage.run("plan").stdout
    shown = stage.run("layout", "write", "shop.orders", "--record", "SO-2", "--raw")
    assert (shown.stdout.splitlines()[1:], shown.stderr) == (["N,SO-2,Bob,2"], "ord_00001.csv, 40 bytes\n")
    assert stage.run("layout", "write", "shop.orders", "--record", "SO-2").exit_code == 2
    stage.sync()
    assert [[line.split(",")[2] for line in lines] for lines in stage.files().values()] == [
        ["Ann"] * 3,
        ["Bob"],
        ["Ann"],
    ]
    stage.export("SO-1,Ann,1,2,yes", "SO-2,Bob,2,2,yes", "SO-3,Ann,3,2,yes")
    planned = [line for line in stage.run("plan").stdout.splitlines() if line.startswith("file ")]
    assert planned == ["file ord_00004.csv to wms: 2 records", "file ord_00005.csv to wms: 1 record"]
    stage.sync()
    assert [sorted(line.split(",")[1] for line in lines) for lines in stage.files().values()][3:] == [
        ["SO-1", "SO-3"],
        ["SO-2"],
    ]


def test_files_of_two_streams(tmp_path: Path) -> None:
    """Each stream has files of its own, and a plan names them as the sync hands them over."""
    stage = PartnerFiles(tmp_path, acknowledged=None)
    config = yaml.safe_load(stage.config.read_text())
    config["connections"]["web"] = config["connections"]["shop"] | {"path": "web"}
    stage.config.write_text(yaml.safe_dump(config, sort_keys=False))
    (tmp_path / "web").mkdir()
    stage.export("SO-1,Ann,1", "SO-2,Bob,2")
    (tmp_path / "web" / "orders_1.csv").write_text("number,customer,qty,version,gone\nW-1,Zoe,9,,\n")
    planned = [line for line in stage.run("plan").stdout.splitlines() if line.startswith("file ")]
    assert planned == ["file ord_00001.csv to wms: 2 records", "file ord_00002.csv to wms: 1 record"]
    stage.sync()
    assert list(stage.files().values()) == [["N,SO-1,Ann,1", "N,SO-2,Bob,2"], ["N,W-1,Zoe,9"]]


def test_files_are_wrapped(tmp_path: Path) -> None:
    """In what is declared, with its endings; an acknowledgement has the whole name."""
    stage = PartnerFiles(tmp_path, wrapped=["gzip"])
    stage.export("SO-1,Ann,1")
    assert "file ord_00001.csv.gz to wms: 1 record" in stage.run("plan").stdout
    stage.sync()
    (path,) = (stage.partner / "in").iterdir()
    assert gzip.decompress(path.read_bytes()).decode().splitlines()[1:] == ["N,SO-1,Ann,1"]
    stage.acknowledge("ord_00001.csv.gz,,,,OK,")
    assert stage.records(stage.sync())["created"] == 1


@pytest.mark.parametrize("acknowledged", [None, {"within": "8h"}])
def test_two_shops_with_the_same_order_numbers(tmp_path: Path, acknowledged: dict[str, str] | None) -> None:
    """The partner gets one order of a number, in plan and sync; the other is a dead letter."""
    stage = PartnerFiles(tmp_path, acknowledged=acknowledged, records_per_file=1)
    config = yaml.safe_load(stage.config.read_text())
    config["connections"]["web"] = config["connections"]["shop"] | {"path": "web"}
    stage.config.write_text(yaml.safe_dump(config, sort_keys=False))
    web = tmp_path / "web"
    web.mkdir()
    stage.export("1001,Ann,1", "1002,Bob,2")
    (web / "orders_1.csv").write_text("number,customer,qty,version,gone\n1001,Zoe,9,,\n1003,Yan,3,,\n")
    stage.sync(1)
    assert list(stage.files().values()) == [["N,1001,Ann,1"], ["N,1002,Bob,2"], ["N,1003,Yan,3"]]
    (dead,) = stage.listed("rejected")
    assert (dead["stream"], dead["key"]) == ("web.orders", "1001")
    assert dead["why"].startswith("conflict: wms has a record of this name already, shop:1001: send one of the streams")
    if acknowledged:
        stage.acknowledge(",,,1001,OK,", ",,,1002,OK,", ",,,1003,OK,")
        stage.sync(1)
    (web / "orders_2.csv").write_text("number,customer,qty,version,gone\n1002,Zoe,9,,\n")
    stage.sync(1)
    assert {each["key"] for each in stage.listed("rejected")} == {"1001", "1002"}
    assert len(stage.files()) == 3
