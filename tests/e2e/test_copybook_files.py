"""A mainframe's file from end to end: EBCDIC records with descriptor words, by a copybook beside the config."""

from __future__ import annotations

import re
from pathlib import Path

from tests.e2e.test_legacy_files import project

from crossdock.sandbox import SandboxServer

COPYBOOK = """\
      * ITEMS OF A WAREHOUSE, WITH THEIR TYPE IN THE FIRST BYTE.
       01  ITEM-RECORD.
           05  KIND           PIC X.
           05  BODY           PIC X(20).
           05  ITEM           REDEFINES BODY.
               10  SKU        PIC X(6).
               10  DESCR      PIC X(9).
               10  PRICE      PIC S9(7)V99  COMP-3.
           05  TRAILER        REDEFINES BODY.
               10  ITEMS      PIC 9(6)      COMP.
               10  TOTAL      PIC S9(9)V99  COMP-3.
"""
FORMAT = {
    "kind": "fixed_width",
    "encoding": "cp037",
    "line_end": "rdw",
    "copybook": {"file": "ITEM.cpy"},
    "record_type": {"column": "KIND"},
    "record_types": {
        "item": {"code": "I", "items": ["ITEM"]},
        "end": {
            "code": "T", "items": ["TRAILER"], "once": "last", "counts": {"ITEMS": ["item"]},
            "sums": {"TOTAL": "item.PRICE"},
        },
    },
    "records": "item",
}  # fmt: skip
STREAM = {
    "mode": "append",
    "files": "out/ITEM_*.dat",
    "format": FORMAT,
    "key": ["SKU"],
    "resource": "product",
    "namespace": "items",
    "map": {
        "sku": "SKU",
        "name": "DESCR",
        "unitPrice": {"from": "PRICE", "as": "decimal"},
        "currency": {"const": "EUR"},
    },
}
ITEMS = bytes.fromhex("0019 0000 C9 F0F0F1F740F1 C29693A340C1F1F240 000012345C")
MORE = bytes.fromhex("0019 0000 C9 F0F0F1F840F1 D5A4A34040404040 40 000000250F")
END = bytes.fromhex("000F 0000 E3 00000002 00000012595C")
"""Two items, ``0017 1`` at 123.45 and ``0018 1`` at 2.50, and the end that states 2 items and 125.95."""


def test_a_mainframe_file_arrives_whole_or_not_at_all(tmp_path: Path, platform: SandboxServer) -> None:
    """The platform has exact prices; of files that were cut or damaged, it has nothing."""
    (tmp_path / "ITEM.cpy").write_text(COPYBOOK)
    site = project(tmp_path, platform, {"items": STREAM})
    file = tmp_path / "out" / "ITEM_1.dat"
    wrong = ITEMS.replace(b"\x12\x34\x5c", b"\x12\x34\x5d")
    for data, says in (
        (ITEMS + MORE + END[:-1], "beyond the end of the file: 10 follow"),
        (ITEMS + MORE, "the last record is not of the type end"),
        (ITEMS + END, "states the (number of records 2, the file has 1|sum 125.95, the file has 123.45)"),
        (wrong + MORE + END, "states the sum 125.95, the file has -120.95"),
        (ITEMS + MORE.replace(b"\x25\x0f", b"\x2b\x0f") + END, "ITEM_1.dat:2:17: column 'PRICE'"),
    ):
        file.write_bytes(data)
        done = site.run("sync", "--json")
        assert done.exit_code == 4, done.stdout
        assert re.search(says, done.document["errors"]["wms.items"])
    assert site.effects() == []
    file.write_bytes(ITEMS + MORE + END)
    report = site.sync()
    assert report["streams"]["wms.items"]["records"]["delivered"] == 2
    shown = site.run("layout", "show", str(file), "--stream", "wms.items", "--raw", "-n", "1")
    assert re.search("PRICE +item 17-21  X'000012345C' +123.45\n", shown.stdout)
    masked = site.run("layout", "show", str(file), "--stream", "wms.items", "-n", "1").stdout
    assert "X'" not in masked
    assert "123.45" not in masked


def test_a_wrong_copybook_is_named_with_its_line(tmp_path: Path, platform: SandboxServer) -> None:
    """The config's error has the line of the copybook, and no traceback."""
    (tmp_path / "ITEM.cpy").write_text(COPYBOOK)
    site = project(tmp_path, platform, {"items": STREAM})
    (tmp_path / "ITEM.cpy").write_text(COPYBOOK.replace("COMP.", "COMP-1."))
    done = site.run("check")
    assert done.exit_code == 2, done.stdout
    assert "ITEM.cpy:10: a float has no picture" in done.stderr + done.stdout
