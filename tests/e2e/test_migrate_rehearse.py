"""``crossdock migrate rehearse``: what it says is what the sync then does, and it touches nothing."""

from __future__ import annotations

import csv
import gzip
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.e2e.folder_project import FolderProject, table
from tests.e2e.project_folder import UNPACED
from tests.e2e.socket_guard_runs import contents, tree
from tests.ended_commands import Done
from tests.plan_and_sync import differences
from tests.report_page import Page

from crossdock.migration.rehearsal_file_and_load_check import Rehearsal
from crossdock.sandbox import SandboxServer, SandboxSettings

PRODUCTS = (
    "SKU;NAME;PRICE;SINCE\n"
    "P1;Lamp canary;9.50;2027-01-31\n"
    "P2; Shelf canary;1.x;0000-00-00\n"  # no number
    "P3;CafÃ© canary;1234567890123456;1875-01-01\n"  # more digits than the platform takes
    ";No canary;1;\n"  # no key
    "P4;Old canary;1;\n"
    "P4;New canary;2;\n"  # the same key again
)
LOTS = "LOT;SKU;QTY\nL1;P1;1\nL2;P2;2\nL3;P9;3\nL4;P9;4\nL5;P4;5\n"
DELIMITED = {"kind": "delimited", "delimiter": ";"}


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[SandboxServer]:
    unpaced = SandboxSettings(rate_per_min=UNPACED.per_minute, burst=UNPACED.burst)
    with SandboxServer(tmp_path / "platform", unpaced) as platform:
        yield platform


@dataclass(frozen=True)
class Move:
    """A project with a migration of two waves, and dirty exports."""

    project: FolderProject

    @property
    def folder(self) -> Path:
        return self.project.folder

    def configure(self, *waves: str) -> None:
        """Load the streams of these names, each in a wave of its own."""
        config = yaml.safe_load(self.project.config.read_text())
        config["migration"] = {"name": "acme", "waves": {name: {"streams": [f"wms.{name}"]} for name in waves}}
        self.project.config.write_text(yaml.safe_dump(config, sort_keys=False))

    def rehearse(self, *options: str, exit_code: int = 1) -> Done:
        done = self.project.run("migrate", "rehearse", *options)
        assert done.exit_code == exit_code, f"{done.stderr}{done.stdout}"
        return done

    def surroundings(self) -> dict[str, Any]:
        """What a rehearsal must leave as it is."""
        database = self.folder / "state.db"
        return {"state": contents(database), "exports": tree(self.folder / "out"), "requests": self.requests()}

    def requests(self) -> list[tuple[str, str]]:
        """Every request that the platform ever got."""
        address = f"{self.project.platform.base_url}/_sandbox/requests?limit=1000"
        listed = httpx.get(address, trust_env=False).json()["data"]
        return [(each["method"], each["path"].partition("?")[0]) for each in listed]


@pytest.fixture
def move(tmp_path: Path, platform: SandboxServer) -> Move:
    folder = tmp_path / "project"
    folder.mkdir()
    price, quantity = ({"from": column, "as": "decimal"} for column in ("PRICE", "QTY"))
    product = {"sku": "SKU", "name": "NAME", "unitPrice": price}
    lot = {"lotNumber": "LOT", "quantity": quantity, "productId": {"ref": "product", "key": "SKU"}}
    streams = {
        "products": table("out/p*.csv", ["SKU"], resource="product", map=product),
        "lots": table("out/l*.csv", ["LOT"], resource="inventory_lot", map=lot),
    }
    project = FolderProject(
        folder, platform, {"wms": {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": streams}}
    )
    project.write("p.csv", PRODUCTS)
    project.write("l.csv", LOTS)
    move = Move(project)
    move.configure("products", "lots")
    assert project.run("init").exit_code == 0
    return move


def test_a_rehearsal_says_what_the_sync_does_and_touches_nothing(move: Move) -> None:
    """Its numbers are those of the plan and of the sync; the state, the exports and the platform stay as they are."""
    before = move.surroundings()
    rehearsed = move.rehearse("--json").document
    move.rehearse("-o", str(move.folder / "r.json"), "--html", str(move.folder / "r.html"))
    planned = move.project.plan()
    assert move.surroundings() == before
    for name, stream in planned["streams"].items():
        assert {term: rehearsed["streams"][name][term] for term in stream} == stream
    assert rehearsed["requests"] == planned["forecast"]["requests"] == 4
    assert differences(rehearsed, move.project.sync(exit_code=1)) == []


def test_what_is_wrong_is_counted_with_its_places(move: Move) -> None:
    """Rejected records by reason, references that will not resolve and why, and what the columns hold."""
    document = move.rehearse("--json").document
    products, lots = document["streams"]["wms.products"], document["streams"]["wms.lots"]
    assert (products["rows"]["read"], products["rows"]["superseded"], products["wave"]) == (6, 1, "products")
    assert (products["repeated_keys"], lots["repeated_keys"]) == (1, 0)
    assert products["repeated_examples"] == [{"key": "P4", "at": ["p.csv:6", "p.csv:7"]}]
    assert "P4: p.csv:6, p.csv:7" in move.rehearse().stdout
    assert "twice  wms.products: 1 key listed several times, 1 row superseded by later ones" in move.rehearse().stdout
    reasons = products["rejected_by_reason"]
    assert {code: each["records"] for code, each in reasons.items()} == {"bad_value": 2, "key_missing": 1}
    assert [(each["key"], each["at"]) for each in reasons["bad_value"]["examples"]] == [
        ("P2", "p.csv:3"),
        ("P3", "p.csv:4"),
    ]
    (unresolved,) = lots["unresolved"]
    assert unresolved == {
        "resource": "product",
        "namespace": "wms",
        "references": 3,
        "records": 2,
        "why": {"not read": 1, "rejected": 1},
        "examples": [
            {"key": "P9", "references": 2, "why": "not read"},
            {"key": "P2", "references": 1, "why": "rejected"},
        ],
    }
    columns = {column["name"]: column for column in products["profile"]["columns"]}
    assert {name: column["filled"] for name, column in columns.items()} == {"SKU": 5, "NAME": 6, "PRICE": 6, "SINCE": 3}
    findings = {
        (name, finding): [cell["at"] for cell in each["examples"]]
        for name, column in columns.items()
        for finding, each in column["findings"].items()
    }
    assert findings == {
        ("NAME", "outer_blanks"): ["p.csv:3"],
        ("NAME", "damaged"): ["p.csv:4"],
        ("PRICE", "number_out_of_range"): ["p.csv:4"],
        ("SINCE", "date_impossible"): ["p.csv:3"],
        ("SINCE", "date_out_of_range"): ["p.csv:4"],
    }


def test_values_are_shown_only_on_request(move: Move) -> None:
    """Neither the terminal nor JSON, the page or the file holds a name without --raw; the page never does."""
    page, saved = move.folder / "r.html", move.folder / "r.json"
    files = ("-o", str(saved), "--html", str(page))
    shown = [move.rehearse(*files).stdout, move.rehearse("--json").stdout, page.read_text(), saved.read_text()]
    assert not any("canary" in text for text in shown)
    assert "p.csv:3 ' Shelf canary'" in move.rehearse("--raw", *files).stdout
    assert " Shelf canary" in move.rehearse("--raw", "--json").stdout
    assert "canary" not in page.read_text()


def test_a_rehearsal_is_saved_for_the_load(move: Move) -> None:
    """The file holds a digest of each source, which changes with a record, and the numbers of each wave."""
    path = move.folder / "r.json"
    move.rehearse("-o", str(path))
    saved = Rehearsal.load(path)
    assert (saved.base_url, saved.tenant) == (move.project.platform.base_url, move.project.platform.tenant)
    assert {name: wave.requests for name, wave in saved.waves.items()} == {"products": 2, "lots": 2}
    products = saved.waves["products"].streams["wms.products"]
    assert (products.records, products.operations) == (4, 2)
    move.project.write("l.csv", LOTS + "L6;P1;6\n")
    move.rehearse("-o", str(path))
    again = Rehearsal.load(path)
    assert again.waves["products"] == saved.waves["products"]
    assert again.waves["lots"].streams["wms.lots"].source != saved.waves["lots"].streams["wms.lots"].source


def test_waves_in_the_wrong_order_are_a_warning(move: Move) -> None:
    """Lots that are loaded before their products would wait; those whose product never comes are no part of it."""
    assert move.rehearse("--json").document["warnings"] == []
    move.configure("lots", "products")
    text = "2 records of wms.lots in wave lots would wait for the later wave products: change the order of the waves"
    assert move.rehearse("--json").document["warnings"] == [text]
    assert f"warning: {text}" in move.rehearse().stdout
    move.configure("products")
    left_out = move.rehearse("--json").document
    assert left_out["warnings"] == ["wms.lots is in no wave, and was not rehearsed"]
    assert list(left_out["streams"]) == ["wms.products"]


def test_the_platform_is_asked_only_on_request(move: Move) -> None:
    """Then its lists are read, and records that it has under our external id are counted; it is only read."""
    platform = move.project.platform
    headers = {"authorization": f"Bearer {platform.api_key}", "x-tenant-slug": platform.tenant}
    with httpx.Client(base_url=platform.base_url, headers=headers, trust_env=False) as client:
        for external_id in ("wms:P1", "wms:P9", "other:P4", "P4"):
            body = {"externalId": external_id, "sku": "S", "name": "N", "active": True}
            created = client.post("/api/v1/catalog/products", json=body)
            assert created.status_code == 201, created.text
    before = move.requests()
    silent = move.rehearse("--json").document
    assert move.requests() == before
    assert {each["already_there"] for each in silent["streams"].values()} == {None}

    asked = move.rehearse("--json", "--against-platform").document
    assert {name: each["already_there"] for name, each in asked["streams"].items()} == {
        "wms.products": 1,
        "wms.lots": 0,
    }
    assert move.requests()[len(before) :] == [("GET", "/api/v1/catalog/products"), ("GET", "/api/v1/inventory/lots")]
    conflicts = {name: each["conflicts"] for name, each in asked["streams"].items()}
    assert conflicts["wms.products"] == {"records": 1, "examples": ["P1"]}
    assert conflicts["wms.lots"] == {"records": 0, "examples": []}
    shown = move.rehearse("--against-platform").stdout
    assert "1 of 2 creates on the platform already under our external id" in shown
    (example,) = asked["streams"]["wms.products"]["already_there_examples"]
    assert f"{example['key']}: {example['id']}" in shown
    assert example["id"].startswith("prd_")
    assert "wms.products: 1 record as conflict: the platform has another under our external id: P1" in shown


def test_what_is_taken_over_is_rehearsed(move: Move) -> None:
    """The matches that a rehearsal counts are what a sync then does: one is updated, an ambiguous one rejected."""
    config = yaml.safe_load(move.project.config.read_text())
    config["connections"]["wms"]["streams"]["products"]["adopt"] = {"by": "sku"}
    move.project.config.write_text(yaml.safe_dump(config, sort_keys=False))
    rows = "".join(f"{sku};{sku} canary;1;\n" for sku in ("P1", "P2", "P3", "P4"))
    move.project.write("p.csv", f"SKU;NAME;PRICE;SINCE\n{rows}")
    move.configure("products")
    platform = move.project.platform
    headers = {"authorization": f"Bearer {platform.api_key}", "x-tenant-slug": platform.tenant}
    with httpx.Client(base_url=platform.base_url, headers=headers, trust_env=False) as client:
        for external_id, sku in (("erp:1", "P1"), ("erp:2", "P2"), ("erp:3", "P2"), ("erp:4", "P9")):
            body = {"externalId": external_id, "sku": sku, "name": "N", "active": True}
            assert client.post("/api/v1/catalog/products", json=body).status_code == 201
    rehearsed = move.rehearse("--json", "--against-platform").document["streams"]["wms.products"]
    assert rehearsed["matched"] == {"one": 1, "several": 1, "none": 2}
    ((taken,), (ambiguous,)) = rehearsed["take_over_examples"], rehearsed["ambiguous_examples"]
    assert (taken["key"], taken["id"][:4], ambiguous["key"], ambiguous["id"]) == ("P1", "prd_", "P2", None)
    assert "2 records of the target have its sku: prd_" in ambiguous["message"]
    advice = "rehearse with --against-platform to see which ones"
    before, asked = move.rehearse(exit_code=0), move.rehearse("--against-platform")
    assert advice in before.stdout
    assert "shows which ones" not in asked.stderr + asked.stdout
    assert advice not in asked.stdout
    shown = asked.stdout
    assert f"P1: {taken['id']}" in shown
    assert "of the creates, 1 would take over a record of the platform, 1 ambiguous, 2 new" in shown
    report = move.project.run("sync", "wms.products", "--json").document["streams"]["wms.products"]["records"]
    assert (report["created"], report["updated"], report["rejected"]) == (2, 1, 1)


@pytest.mark.parametrize(
    ("adopt", "sku", "conflicts"),
    [
        pytest.param({"by": "sku"}, "OTHER", ["P1"], id="another SKU"),
        pytest.param({"by": "sku"}, "P1", [], id="taken over"),
        pytest.param("external_id", "OTHER", [], id="taken over by name"),
    ],
)
def test_a_record_of_others_under_our_name_is_rehearsed(
    move: Move, adopt: object, sku: str, conflicts: list[str]
) -> None:
    """It is named as one that would be rejected, which a sync does, unless the stream takes it over."""
    config = yaml.safe_load(move.project.config.read_text())
    config["connections"]["wms"]["streams"]["products"]["adopt"] = adopt
    move.project.config.write_text(yaml.safe_dump(config, sort_keys=False))
    move.project.write("p.csv", "SKU;NAME;PRICE;SINCE\nP1;P1 canary;1;\nP2;P2 canary;1;\n")
    move.configure("products")
    platform = move.project.platform
    headers = {"authorization": f"Bearer {platform.api_key}", "x-tenant-slug": platform.tenant}
    with httpx.Client(base_url=platform.base_url, headers=headers, trust_env=False) as client:
        body = {"externalId": "wms:P1", "sku": sku, "name": "N", "active": True}
        assert client.post("/api/v1/catalog/products", json=body).status_code == 201
    done = move.rehearse("--json", "--against-platform", exit_code=bool(conflicts))
    rehearsed = done.document["streams"]["wms.products"]
    assert rehearsed["already_there"] == 1
    assert rehearsed["conflicts"] == {"records": len(conflicts), "examples": conflicts}
    report = move.project.run("sync", "wms.products", "--json").document["streams"]["wms.products"]["records"]
    assert (report["created"], report["rejected"]) == (1, len(conflicts))


def test_a_platform_that_cannot_be_read_hides_nothing_else(move: Move) -> None:
    """The profile and the plan are shown, with the error and its exit code; no file is saved."""
    config = yaml.safe_load(move.project.config.read_text())
    config["platform"]["auth"]["token"] = "env:WRONG_KEY"
    move.project.config.write_text(yaml.safe_dump(config, sort_keys=False))
    path = move.folder / "r.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WRONG_KEY", "wrong")
        done = move.rehearse("--json", "--against-platform", "-o", str(path), exit_code=3)
    assert list(done.document["errors"]) == ["platform"]
    assert done.document["streams"]["wms.products"]["profile"]["rows"] == 6
    assert "crossdock: platform: " in done.stderr
    assert not path.exists()


def test_exit_codes(move: Move) -> None:
    """0 if everything would be delivered, 2 without a migration, 3 if a source cannot be read, 4 if it is refused."""
    path = move.folder / "r.json"
    move.project.write("p.csv", "SKU;NAME;PRICE;SINCE\nP1;Lamp;1;\n")
    move.project.write("l.csv", "LOT;SKU;QTY\nL1;P1;1\n")
    assert (
        "saved; load it with: crossdock migrate load --rehearsal " in move.rehearse("-o", str(path), exit_code=0).stdout
    )
    path.unlink()
    move.project.write("p.csv", "SKU;NAME\nP1;Lamp\n")
    refused = move.rehearse("-o", str(path), exit_code=4)
    assert "missing column 'PRICE'" in refused.stderr
    assert not path.exists()
    move.project.write("p.csv", PRODUCTS)
    (move.folder / "state.db").rename(move.folder / "elsewhere.db")
    assert "state.db" in move.rehearse(exit_code=3).stderr
    config = yaml.safe_load(move.project.config.read_text())
    del config["migration"]
    move.project.config.write_text(yaml.safe_dump(config))
    assert "the config has no section 'migration'" in move.rehearse(exit_code=2).stderr


def test_the_page_has_a_table_for_each_part(move: Move) -> None:
    """Waves, tally, reasons, references and columns, with drawings beside the numbers and without a script."""
    path = move.folder / "r.html"
    move.rehearse("--html", str(path))
    page = Page(path.read_text())
    assert [line[:2] for line in page.under("wave")] == [["products", "2"], ["lots", "2"]]
    columns = [line[0] for line in page.under("column")]
    assert columns == ["SKU", "NAME", "PRICE", "SINCE", "LOT", "SKU", "QTY"]
    assert [line[:2] for line in page.under("reason")] == [["bad_value", "2"], ["key_missing", "1"]]
    assert [line[:3] for line in page.under("waits for")] == [["product wms", "3", "2"]]
    assert "svg" in page.tags
    assert "script" not in page.tags


@pytest.mark.retail
def test_real_exports_are_profiled(tmp_path: Path, platform: SandboxServer, exports: list[Path]) -> None:
    """Of the first days of a real shop, every number is that of a simple computation over their rows."""
    days, drop = exports[:3], tmp_path / "project" / "days"
    drop.mkdir(parents=True)
    for day in days:
        shutil.copy2(day, drop)
    stream = {"mode": "append", "files": "*.csv.gz", "format": {"kind": "delimited", "delimiter": ","}}
    stream |= {"key": ["StockCode"], "order_by": ["InvoiceDate"], "resource": "product"}
    stream |= {"map": {"sku": "StockCode", "name": "Country"}}
    connection = {"kind": "folder_warehouse", "path": "days", "settle_s": 0, "streams": {"sales": stream}}
    move = Move(FolderProject(drop.parent, platform, {"wms": connection}))
    move.configure("sales")
    assert move.project.run("init").exit_code == 0
    profile = move.rehearse("--json", exit_code=0).document["streams"]["wms.sales"]["profile"]
    rows = [row for day in days for row in csv.DictReader(gzip.decompress(day.read_bytes()).decode().splitlines())]
    columns = {column["name"]: column for column in profile["columns"]}
    assert profile["rows"] == len(rows)
    for name, column in columns.items():
        filled = [row[name] for row in rows if row[name].strip()]
        assert (column["filled"], column["distinct"]) == (len(filled), len(set(filled)))
        lengths = [len(cell) for cell in filled]
        assert (column["shortest"], column["longest"]) == (min(lengths), max(lengths))
        blanks = sum(cell != cell.strip() for cell in filled)
        assert column["findings"].get("outer_blanks", {"cells": 0})["cells"] == blanks
    assert columns["CustomerID"]["filled"] < len(rows)
    assert columns["Description"]["findings"]["outer_blanks"]["cells"] > 0
    assert columns["InvoiceDate"]["dates"] == len(rows)


def test_joined_files_have_profiles_of_their_own(move: Move) -> None:
    """Every cell of a line file is examined, and what is odd is shown with its file and line; no internal column."""
    config = yaml.safe_load(move.project.config.read_text())
    wms = config["connections"]["wms"]
    wms["sources"] = {
        "heads": {"files": "out/h*.csv", "format": DELIMITED},
        "lines": {"files": "out/d*.csv", "format": DELIMITED},
        "places": {"files": "out/s*.csv", "format": DELIMITED},
    }
    wms["streams"]["lots"] = {
        "source": "heads",
        "mode": "append",
        "key": ["LOT"],
        "resource": "inventory_lot",
        "join": {"lines": {"source": "lines", "on": ["LOT"]}},
        "lookup": {"place": {"source": "places", "on": ["PLACE"]}},
        "map": {"lotNumber": "LOT", "quantity": {"const": 1}, "productId": {"ref": "product", "key": "SKU"}},
    }
    move.project.config.write_text(yaml.safe_dump(config, sort_keys=False))
    move.project.write("h.csv", "LOT;SKU;PLACE\nL1;P1;A\nL2;P1;A\n")
    move.project.write("d.csv", "LOT;QTY;NOTE\nL1;1;\nL1;2; blank\nL2;3;ok\nL9;4;alone\n")
    move.project.write("s.csv", "PLACE;TOWN\nA;KÃ¶ln\nB;Ulm\n")
    page = move.folder / "r.html"
    stream = move.rehearse("--json", "--html", str(page)).document["streams"]["wms.lots"]
    assert [each["name"] for each in stream["profile"]["columns"]] == ["LOT", "SKU", "PLACE"]
    assert stream["profile"]["rows"] == 2
    lines, places = stream["joined_profiles"]["lines"], stream["joined_profiles"]["place"]
    assert (lines["rows"], places["rows"]) == (4, 2)
    columns = {each["name"]: each for each in (*lines["columns"], *places["columns"])}
    assert [columns[name]["filled"] for name in ("QTY", "NOTE", "TOWN")] == [4, 3, 2]
    assert columns["NOTE"]["findings"]["outer_blanks"]["examples"] == [{"at": "d.csv:3"}]
    assert columns["TOWN"]["findings"]["damaged"]["examples"] == [{"at": "s.csv:2"}]
    assert not any("control" in each["findings"] for each in columns.values())
    shown = move.rehearse().stdout
    assert "wms.lots lines: 4 rows" in shown
    assert "lines.content" not in shown
    assert "lines: 4 rows" in Page(page.read_text()).text
