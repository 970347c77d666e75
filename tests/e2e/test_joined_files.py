"""Streams over several files: header and line files, look-ups, and mapping functions in a file beside the config."""

from __future__ import annotations

import shutil
import zipfile
from collections import Counter
from decimal import Decimal

import pytest
from tests.e2e.warehouse import Site

HEADERS = "ORDERNO;STORE;AT\n1;S1;2026-01-01\n2;S2;2026-01-02\n"
LINES = "ORDERNO;LINE;SKU;QTY;PRICE\n1;1;P1;2;1.50\n1;2;P2;1;0.30\n2;1;P1;1;1.50\n"
STORES = "STOREID;NAME;CUR\nS1;North;EUR\nS2;South;USD\n"
CONFIG = """
platform:
  base_url: {base_url}
  tenant: {tenant}
  auth: {{kind: api_key, token: env:CROSSDOCK_API_KEY}}
state: sqlite:///state.db
spool: state.db.spool
connections:
  wms:
    kind: folder_warehouse
    path: served
    settle_s: 0
    sources:
      headers: {{files: "out/HEAD_*.csv", format: {{kind: delimited, delimiter: ";"}}}}
      lines:
        files: "out/LINE_*.csv"
        format: {{kind: delimited, delimiter: ";"}}
        columns: {{SKU: {{strip: both}}}}
        skip: {{notes: {{field: SKU, equals: NOTE}}}}
      stores: {{files: "out/STORE_*.csv", format: {{kind: delimited, delimiter: ";"}}}}
    streams:
      customers: {{source: stores, mode: snapshot, key: [STOREID], resource: customer, map: {{name: NAME}}}}
      products:
        files: "out/PROD_*.csv"
        format: {{kind: delimited, delimiter: ";"}}
        mode: snapshot
        key: [SKU]
        resource: product
        map: {{sku: SKU, name: NAME}}
      orders:
        source: headers
        mode: {mode}
        key: [ORDERNO]
        columns: {{ORDERNO: {{strip_prefix: "0"}}}}
        resource: order
        join: {{lines: {{source: lines, on: [ORDERNO]{key}}}}}
        lookup: {{store: {{source: stores, on: {{STORE: STOREID}}}}}}
        map:
          customerId: {{ref: customer, key: STORE}}
          currency: store.CUR
          placedAt: {{from: AT, as: instant, format: "%Y-%m-%d", timezone: UTC}}
          items:
            of: lines
            each:
              productId: {{ref: product, key: SKU}}
              quantity: {{from: QTY, as: decimal}}
              unitPrice: {{from: PRICE, as: decimal}}
"""
Order = tuple[str, str, tuple[tuple[str, Decimal, Decimal], ...]]


def orders(site: Site) -> dict[str, Order]:
    """What the platform holds, by external id: store, currency and lines."""
    known = {effect["id"]: effect["body"].get("externalId", "") for effect in site.effects()}
    held: dict[str, dict[str, object]] = {}
    for effect in site.effects("order"):
        held.setdefault(effect["id"], {}).update(effect["body"])
    return {
        str(body["externalId"]): (
            known[str(body["customerId"])],
            str(body["currency"]),
            tuple((known[i["productId"]], i["quantity"], i["unitPrice"]) for i in body["items"]),  # type: ignore[attr-defined]
        )
        for body in held.values()
    }


def begin(site: Site, *, mode: str = "append", key: str = ", key: [LINE]") -> None:
    facts = {"base_url": site.base_url, "tenant": site.tenant, "mode": mode, "key": key}
    site.config.write_text(CONFIG.format(**facts))
    site.init()
    site.export("STORE_1.csv", STORES)
    site.export("PROD_1.csv", "SKU;NAME\nP1;Bolt\nP2;Nut\n")


def reasons(site: Site) -> dict[str, str]:
    return {item["key"]: item["why"].partition(":")[0] for item in site.listed("--state", "rejected")}


def planned(site: Site) -> Counter[str]:
    document = site.run("plan", "--json").json
    return Counter({kind: number for kind, number in document["operations"].items() if number})


def line(sku: str, quantity: str, price: str) -> tuple[str, Decimal, Decimal]:
    return f"wms:{sku}", Decimal(quantity), Decimal(price)


def test_orders_are_made_of_header_and_line_files(site: Site) -> None:
    """Each order has the lines of its number and the currency of its store; rows in another order send nothing."""
    begin(site)
    site.export("HEAD_1.csv", HEADERS)
    site.export("LINE_1.csv", LINES + "1;3;NOTE;0;0\n")
    assert planned(site) == {"create": 6}
    assert site.sync().code == 0
    expected = {
        "wms:1": ("wms:S1", "EUR", (line("P1", "2", "1.5"), line("P2", "1", "0.3"))),
        "wms:2": ("wms:S2", "USD", (line("P1", "1", "1.5"),)),
    }
    assert orders(site) == expected
    before = len(site.effects())
    header, *rows = LINES.splitlines(keepends=True)
    site.export("LINE_2.csv", header + "".join(reversed(rows)))
    site.export("HEAD_2.csv", "ORDERNO;STORE;AT\n02;S2;2026-01-02\n01;S1;2026-01-01\n")
    assert planned(site) == {}
    again = site.sync()
    assert again.code == 0
    assert again.records("orders") == {"read": 2, "unchanged": 2}
    assert len(site.effects()) == before


def test_lines_in_a_later_file_complete_their_order(site: Site) -> None:
    """Nothing is dropped: what has no counterpart yet is a dead letter until it arrives, in whatever order."""
    begin(site)
    site.export("HEAD_1.csv", HEADERS + "3;S1;2026-01-03\n")
    site.export("LINE_1.csv", LINES + "4;1;P2;5;0.30\n")
    first = site.sync()
    assert first.code == 1
    assert first.records("orders") == {"read": 4, "created": 2, "rejected": 2}
    assert reasons(site) == {"3": "unmatched", "4": "unmatched"}
    site.export("LINE_2.csv", "ORDERNO;LINE;SKU;QTY;PRICE\n3;1;P1;7;1.50\n1;3;P2;9;0.30\n")
    assert planned(site) == {"create": 1, "update": 1}
    assert site.sync().code == 1
    assert orders(site)["wms:1"][2] == (line("P1", "2", "1.5"), line("P2", "1", "0.3"), line("P2", "9", "0.3"))
    assert orders(site)["wms:3"][2] == (line("P1", "7", "1.5"),)
    assert reasons(site) == {"4": "unmatched"}
    site.export("HEAD_2.csv", "ORDERNO;STORE;AT\n4;S2;2026-01-04\n")
    assert site.sync().code == 0
    assert orders(site)["wms:4"] == ("wms:S2", "USD", (line("P2", "5", "0.3"),))
    assert reasons(site) == {}
    assert not [name for name in site.spooled() if len(name) == 64], "only the copies for joins are kept"


NOT_OPEN = "{not: {field: store.CUR, one_of: [EUR, USD]}}"
REMOVED = "on_gone: delete\n        gone: {at_most_percent: 100}\n        resource: order"


@pytest.mark.parametrize(
    "rule", [f"skip: {{closed: {NOT_OPEN}}}\n        resource: order", f"deleted: {NOT_OPEN}\n        {REMOVED}"]
)
def test_a_row_that_a_look_up_lacks_is_neither_left_out_nor_deleted(site: Site, rule: str) -> None:
    """Its looked-up columns are empty, which is no value of them; the record is rejected, and not forgotten."""
    begin(site)
    site.edit("resource: order", rule)
    site.export("HEAD_1.csv", HEADERS)
    site.export("LINE_1.csv", LINES)
    assert site.sync().code == 0
    before = orders(site)
    site.export("STORE_2.csv", STORES.partition("S2")[0])
    site.export("HEAD_2.csv", "ORDERNO;STORE;AT\n2;S2;2026-01-07\n")
    again = site.sync("wms.orders")
    assert again.code == 1
    assert again.records("orders") == {"read": 2, "unchanged": 1, "rejected": 1}
    assert reasons(site) == {"2": "unmatched"}
    assert orders(site) == before


def test_lines_without_their_record_do_not_say_that_it_was_deleted(site: Site) -> None:
    """They have none of the columns that could say so."""
    begin(site)
    site.edit("resource: order", f"deleted: {{not: {{field: STORE, starts_with: S}}}}\n        {REMOVED}")
    site.export("HEAD_1.csv", HEADERS)
    site.export("LINE_1.csv", LINES + "4;1;P2;5;0.30\n")
    assert site.sync().code == 1
    assert reasons(site) == {"4": "unmatched"}


def test_lines_in_two_files_need_a_key(site: Site) -> None:
    """Without it, a repeated line and an additional one look the same: the order is a dead letter."""
    begin(site, key="")
    site.export("HEAD_1.csv", HEADERS)
    site.export("LINE_1.csv", LINES)
    assert site.sync().code == 0
    site.export("LINE_2.csv", "ORDERNO;LINE;SKU;QTY;PRICE\n1;1;P1;2;1.50\n")
    assert site.sync().code == 1
    assert reasons(site) == {"1": "rows_disagree"}
    assert len(orders(site)["wms:1"][2]) == 2


def test_a_repeated_line_counts_as_in_the_newest_file(site: Site) -> None:
    """A line with the same key replaces the earlier one; two different ones in one file are a dead letter."""
    begin(site)
    site.export("HEAD_1.csv", HEADERS)
    site.export("LINE_1.csv", LINES + "2;1;P1;8;1.50\n")
    assert site.sync().code == 1
    assert reasons(site) == {"2": "rows_disagree"}
    site.export("LINE_2.csv", "ORDERNO;LINE;SKU;QTY;PRICE\n1;2;P2;6;0.30\n")
    site.sync()
    assert orders(site)["wms:1"][2] == (line("P1", "2", "1.5"), line("P2", "6", "0.3"))


def test_lines_of_a_file_that_was_replaced_are_those_of_an_older_file(site: Site) -> None:
    """Also where both have the same name: a line that only the older one has stays, and the report counts its order."""
    begin(site)
    site.edit("LINE_*.csv", "LINE.csv")
    site.export("HEAD_1.csv", HEADERS)
    site.export("LINE.csv", LINES)
    assert site.sync().code == 0
    site.export("LINE.csv", "ORDERNO;LINE;SKU;QTY;PRICE\n1;1;P1;7;1.50\n")
    again = site.sync()
    assert again.json["streams"]["wms.orders"]["parts"] == {"record with rows of lines in several files": 1}
    assert orders(site)["wms:1"][2] == (line("P2", "1", "0.3"), line("P1", "7", "1.5"))


@pytest.mark.nightly(but=["True"])
@pytest.mark.parametrize("archived", [False, True])
def test_a_snapshot_follows_its_look_up(site: Site, *, archived: bool) -> None:
    """Without a join, too; where no copy of the last snapshot is left, the stream waits for the next one."""
    begin(site)
    sources = site.config.read_text().partition("      customers:")[0]
    site.config.write_text(
        f"{sources}      orders: {{source: headers, mode: snapshot, key: [ORDERNO], resource: customer,"
        " lookup: {store: {source: stores, on: {STORE: STOREID}}}, map: {name: store.NAME}}\n"
    )
    if archived:
        site.edit('files: "out/HEAD_*.csv"', 'files: "out/HEAD_*.csv", archive: out/done')
        (site.out / "done").mkdir()
    site.export("HEAD_1.csv", HEADERS)
    assert site.sync("wms.orders").records("orders") == {"read": 2, "created": 2}
    assert site.sync("wms.orders").records("orders") == {}
    site.export("STORE_2.csv", STORES.replace("South", "West"))
    assert planned(site)["update"] == 1
    assert site.sync("wms.orders").records("orders") == {"read": 2, "unchanged": 1, "updated": 1}
    shutil.rmtree(site.folder / "state.db.spool")
    site.export("STORE_3.csv", STORES)
    if archived:
        for _ in range(2):
            refused = site.run("sync", "wms.orders")
            assert (refused.code, "no file matches out/HEAD_*.csv" in refused.err) == (4, True)
        site.export("HEAD_2.csv", HEADERS)
    assert site.sync("wms.orders").records("orders") == {"read": 2, "unchanged": 1, "updated": 1}
    assert [effect["body"]["name"] for effect in site.effects("customer")[2:]] == ["West", "South"]


def test_a_file_of_a_look_up_proves_nothing(site: Site) -> None:
    """A short snapshot is no more complete because the files beside it are new: nothing is deleted."""
    begin(site)
    sources = site.config.read_text().partition("      customers:")[0]
    site.config.write_text(
        f"{sources}      orders: {{source: headers, mode: snapshot, key: [ORDERNO], resource: customer,"
        " on_gone: delete, gone: {at_most_percent: 100}, changes: {at_most_percent: 100},"
        " lookup: {store: {source: stores, on: {STORE: STOREID}}}, map: {name: store.NAME}}\n"
    )
    rows = [f"{number};S1;2026-01-01\n" for number in range(30)]
    for night in range(4):
        site.export(f"HEAD_{night}.csv", f"ORDERNO;STORE;AT\n{''.join(rows[: 10 if night == 3 else 30])}")
        if night < 3:
            assert site.sync("wms.orders").code == 0
        rows = rows[1:] + rows[:1]
    for night in range(5):
        site.export(f"STORE_{night + 2}.csv", STORES.replace("North", f"North {night}"))
        assert site.sync("wms.orders").code == 4
    assert not [each for each in site.effects("customer") if each["operation"] == "delete"]
    assert [each["number"] for each in site.run("approve", "--json").json] == [20]


def test_a_look_up_that_finds_nothing_at_all_is_a_warning(site: Site) -> None:
    """Lost zeros or a wrong file empty the columns in all records; a single row that is missing is no sign of it."""
    begin(site)
    sources = site.config.read_text().partition("      customers:")[0]
    site.config.write_text(
        sources + "      orders: {source: headers, mode: append, key: [ORDERNO], resource: customer,"
        " lookup: {store: {source: stores, on: {STORE: STOREID}, optional: true}},"
        " map: {name: ORDERNO, email: store.NAME}}\n"
    )
    warning = "wms.orders: look-up 'store' found no row for any of 2 keys"
    for night, (stores, warned) in enumerate(((("s1", "s2"), True), (("s1", "S2"), False), (("s1",), False))):
        rows = "".join(f"{night}{number};{store};2026-01-01\n" for number, store in enumerate(stores))
        site.export(f"HEAD_{night}.csv", f"ORDERNO;STORE;AT\n{rows}")
        done = site.run("sync", "wms.orders")
        assert (done.code, warning in done.err) == (0, warned)


@pytest.mark.parametrize("lookup", ["", " lookup: {store: {source: stores, on: {STORE: STOREID}}},"])
def test_an_xml_record_that_is_elsewhere_is_not_gone(site: Site, lookup: str) -> None:
    """A snapshot with elements like records that were not read proves no removal."""
    begin(site)
    sources = site.config.read_text().partition("      customers:")[0]
    columns = "columns: {ORDERNO: '@no', STORE: '@store'}"
    site.config.write_text(
        sources.replace(
            'headers: {files: "out/HEAD_*.csv", format: {kind: delimited, delimiter: ";"}}',
            f'headers: {{files: "out/HEAD_*.xml", format: {{kind: xml, record: /all/order, {columns}}}}}',
        )
        + "      orders: {source: headers, mode: snapshot, key: [ORDERNO], resource: customer, on_gone: delete,"
        f" gone: {{at_most_percent: 100, rows_within_percent: 100}},{lookup} map: {{name: STORE}}}}\n"
    )
    for night in range(6):
        tag = "Order" if night == 4 else "order"
        last = "" if night == 5 else f'<{tag} no="2" store="S1"/>'
        site.export(f"HEAD_{night}.xml", f'<all><!--{night}--><order no="1" store="S1"/>{last}</all>')
        done = site.run("sync", "wms.orders")
        blocked = "may have more than was read: 1 element with the name of a record not read in HEAD_4.xml" in done.err
        assert (done.code, blocked) == (4 if night == 4 else 0, night == 4)
    operations = [each["operation"] for each in site.effects("customer")]
    assert operations == ["create", "create", "delete"]


def test_a_member_that_is_passed_over_proves_no_removal(site: Site) -> None:
    """Also of a snapshot that looks up columns, whose rows are counted."""
    begin(site)
    sources = site.config.read_text().partition("      customers:")[0]
    counted = 'format: {kind: delimited, delimiter: ";"'
    site.config.write_text(
        sources.replace(
            f'headers: {{files: "out/HEAD_*.csv", {counted}}}',
            f'headers: {{files: "out/HEAD_*.zip", wrapped: [{{kind: zip, members: "*.csv"}}], {counted},'
            ' trailer: {prefix: "TRL;", count: 1}}',
        )
        + "      orders: {source: headers, mode: snapshot, key: [ORDERNO], resource: customer,"
        " on_gone: delete, gone: {at_most_percent: 100}, lookup: {store: {source: stores, on: {STORE: STOREID}}},"
        " map: {name: store.NAME}}\n"
    )
    members = [f"ORDERNO;STORE;AT\n{number};S1;2026-01-01\nTRL;1\n" for number in range(2)]
    for night, other in enumerate(("b.csv", "b.CSV")):
        file = site.out / f"HEAD_{night}.zip"
        with zipfile.ZipFile(file, "w") as archive:
            for name, text in zip(("a.csv", other), members, strict=True):
                archive.writestr(name, text)
        site.export(file.name, file.read_bytes())
        done = site.run("sync", "wms.orders")
    assert (done.code, "may have more than was read: HEAD_1.zip/b.CSV" in done.err) == (4, True)
    assert "passed over HEAD_1.zip/b.CSV" in done.err
    assert [each["operation"] for each in site.effects("customer")] == ["create", "create"]


@pytest.mark.nightly
def test_a_snapshot_follows_all_its_files(site: Site) -> None:
    """A new file of stores alone changes the orders that look it up; several line files with one date are one."""
    begin(site, mode="snapshot")
    site.export("HEAD_2026-01-05.csv", HEADERS)
    site.export("LINE_2026-01-05_a.csv", LINES)
    site.export("LINE_2026-01-05_b.csv", "ORDERNO;LINE;SKU;QTY;PRICE\n1;3;P2;4;0.30\n")
    assert site.sync().code == 0
    assert len(orders(site)["wms:1"][2]) == 3
    assert site.sync().records("orders") == {}
    site.export("STORE_2.csv", STORES.replace("USD", "GBP"))
    assert planned(site) == {"update": 1}
    assert site.sync().records("orders") == {"read": 2, "unchanged": 1, "updated": 1}
    assert orders(site)["wms:2"][1] == "GBP"


def test_a_part_of_a_snapshot_that_is_not_read_is_named(site: Site) -> None:
    """Orders without the lines of one part would be sent as if these lines had been removed."""
    begin(site, mode="snapshot")
    site.export("HEAD_2026-01-05.csv", HEADERS)
    site.export("LINE_2026-01-05_a.csv", LINES)
    more = "ORDERNO;LINE;SKU;QTY;PRICE\n1;3;P2;4;0.30\n"
    site.export("LINE_2026-01-05_A.CSV.part", "not yet")
    other = site.export("LINE_2026-01-05_b.CSV", more)
    refused = site.run("sync", "wms.orders")
    assert (refused.code, site.effects("order")) == (4, [])
    assert "LINE_2026-01-05_b.CSV: may be a part of the same snapshot as 'LINE_2026-01-05_a.csv'" in refused.err
    assert "'ignore_case: true' reads it" in refused.err
    other.rename(other.with_suffix(".csv.part"))
    site.edit('files: "out/LINE_*.csv"', 'files: "out/LINE_*"')
    assert "LINE_2026-01-05_b.csv.part: may be a part" in site.run("sync", "wms.orders").err
    other.with_suffix(".csv.part").rename(other.with_suffix(".csv"))
    assert site.sync().code == 0
    assert len(orders(site)["wms:1"][2]) == 3


@pytest.mark.nightly(but=["append"])
@pytest.mark.parametrize("mode", ["append", "snapshot"])
def test_lines_that_come_again_later_are_read(site: Site, mode: str) -> None:
    """The lines of the first day return on the third, beside headers that never changed."""
    begin(site, mode=mode)
    for day, quantity in enumerate(["2", "7", "2"], 1):
        site.export(f"HEAD_2026-01-0{day}.csv", HEADERS)
        site.export(f"LINE_2026-01-0{day}.csv", LINES.replace("P1;2;", f"P1;{quantity};"))
        assert site.sync().code == 0
        assert orders(site)["wms:1"][2][0] == line("P1", quantity, "1.5")


def test_a_snapshot_with_fewer_parts_than_the_one_before_is_noticed(site: Site) -> None:
    """A run between two uploads takes the lines of the missing part away: it warns, and the part brings them back."""
    begin(site, mode="snapshot")
    more = "ORDERNO;LINE;SKU;QTY;PRICE\n1;3;P2;4;0.30\n"
    for day in (5, 6):
        site.export(f"HEAD_2026-01-0{day}.csv", HEADERS)
        site.export(f"LINE_2026-01-0{day}_a.csv", LINES)
        if day == 5:
            site.export("LINE_2026-01-05_b.csv", more)
            assert "has 1 file" not in site.sync().err
    told = "the snapshot of LINE_2026-01-06_a.csv has 1 file, and the one before had 2"
    assert told in site.sync().err
    assert len(orders(site)["wms:1"][2]) == 2
    assert told not in site.sync().err, "no file is new"
    site.export("LINE_2026-01-06_b.csv", more)
    assert "has 1 file" not in site.sync().err
    assert len(orders(site)["wms:1"][2]) == 3


def test_files_that_cannot_belong_together_are_refused(site: Site) -> None:
    """Undated parts of a snapshot, a key that no row has, and a missing line file; nothing is imported."""
    begin(site, mode="snapshot")
    site.export("HEAD_1.csv", HEADERS)
    refused = site.run("sync", "wms.orders")
    assert refused.code == 4
    assert "no file matches out/LINE_*.csv" in refused.err
    site.export("LINE_1.csv", LINES.replace("\n1;", "\n8;").replace("\n2;", "\n9;"))
    assert "all 3 rows of join 'lines' have no row" in site.run("sync", "wms.orders").err
    site.export("LINE_2.csv", LINES)
    assert "has no date in its name" in site.run("sync", "wms.orders").err
    assert site.effects("order") == []


def test_a_lookup_finds_one_row(site: Site) -> None:
    """A record that names a missing row is a dead letter; a file that lists a key twice is refused."""
    begin(site)
    site.export("HEAD_1.csv", HEADERS.replace("S2", "S9"))
    site.export("LINE_1.csv", LINES)
    assert site.sync("wms.products", "wms.orders").code == 1
    assert reasons(site) == {"2": "unmatched"}
    site.export("STORE_2.csv", STORES + "S1;North;USD\n")
    site.export("HEAD_2.csv", "ORDERNO;STORE;AT\n3;S1;2026-01-03\n")
    refused = site.run("sync", "wms.orders")
    assert refused.code == 4
    assert "STORE_2.csv:4: look-up 'store' finds the key of STORE_2.csv:2 again" in refused.err


FUNCTION = """
from crossdock import Record, Reference, convert


def order(record: Record) -> dict[str, object]:
    row = record.row
    items = [
        {
            "productId": Reference("product", line["SKU"]),
            "quantity": convert.decimal(line, "QTY"),
            "unitPrice": convert.decimal(line, "PRICE"),
        }
        for line in record.joined("lines")
    ]
    placed = convert.instant(row, "AT", layout="%Y-%m-%d", timezone="UTC")
    return {"customerId": Reference("customer", row["STORE"]), "currency": row["store.CUR"], "placedAt": placed,
            "items": items}
"""


def test_a_function_beside_the_config_maps_records(site: Site) -> None:
    """Its place is named when it fails, and a change of the file maps all records again."""
    begin(site)
    text = site.config.read_text()
    start = text.index("        map:\n          customerId")
    site.config.write_text(text[:start] + "        map: mapping.py:order\n")
    site.export("HEAD_1.csv", HEADERS)
    site.export("LINE_1.csv", LINES)
    (site.folder / "mapping.py").write_text(FUNCTION)
    assert site.sync().code == 0
    assert orders(site)["wms:1"] == ("wms:S1", "EUR", (line("P1", "2", "1.5"), line("P2", "1", "0.3")))
    (site.folder / "mapping.py").write_text(FUNCTION.replace('line["SKU"]', 'line["SKUX"]'))
    assert site.sync("wms.orders").code == 1
    listed = site.listed("--state", "rejected")
    assert {item["key"] for item in listed} == {"1", "2"}
    assert "KeyError in line 9 of" in listed[0]["why"]
    assert "mapping.py" in listed[0]["why"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("map: mapping.py:order", "map: mapping.py:other", "has no function 'other'"),
        ("map: mapping.py:order", "map: missing.py:order", "cannot be read: No such file"),
        ("map: mapping.py:order", "map: order", "must be a section of members, or FILE.py:FUNCTION"),
        ("on: [ORDERNO], key", "on: [STORE], key", "name the columns of key, ORDERNO, in this order"),
        ("source: lines,", "source: line,", "join.lines.source: there is no source 'line'"),
        ("stores: {files", "stores: {archive: out/done, files", "reads the same source, and may read the files after"),
    ],
)
def test_mistakes_are_found_when_the_config_is_loaded(site: Site, old: str, new: str, message: str) -> None:
    """With file, line and column; exit 2."""
    begin(site)
    text = site.config.read_text()
    start = text.index("        map:\n          customerId")
    site.config.write_text(text[:start] + "        map: mapping.py:order\n")
    (site.folder / "mapping.py").write_text(FUNCTION)
    site.edit(old, new)
    refused = site.run("plan")
    assert refused.code == 2
    assert message in refused.err
    assert f"{site.config}:" in refused.err
