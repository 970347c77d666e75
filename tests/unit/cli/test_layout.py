"""``crossdock layout show``: records with their places, faults with theirs, and a ruler without a config."""

from __future__ import annotations

import io
import json
import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from openpyxl import Workbook
from tests.unit.formats.layouts import GOOD, ORDERS, lines

from crossdock.cli.main import main


def run(*arguments: str) -> tuple[object, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code, out.getvalue(), err.getvalue()


def config(folder: Path, layout: dict[str, Any], key: str) -> str:
    stream = {"files": "*", "mode": "append", "key": [key], "resource": "product", "map": {"sku": key, "name": key}}
    connection = {"kind": "folder_warehouse", "path": ".", "streams": {"items": {**stream, "format": layout}}}
    auth = {"kind": "api_key", "token": "env:KEY"}
    platform = {"base_url": "http://127.0.0.1:9", "tenant": "acme", "auth": auth}
    path = folder / "c.yaml"
    path.write_text(yaml.safe_dump({"platform": platform, "connections": {"wms": connection}}))
    return str(path)


def test_the_first_records_are_shown_with_their_positions(tmp_path: Path) -> None:
    """Each value stands beside its column and positions; those of parents name their type."""
    file = tmp_path / "orders.txt"
    file.write_text(lines(*GOOD))
    path = config(tmp_path, ORDERS, "SKU")
    code, out, _ = run("-C", path, "layout", "show", str(file), "--stream", "wms.items", "-n", "1", "--raw")
    assert code == 0
    assert out == (
        "1  orders.txt:3\n"
        "   ORDER   order 4-9   A00001\n"
        "   SKU     line 4-9    P00001\n"
        "   QTY     line 10-13  12\n"
        "   AMOUNT  line 14-20  12.50\n"
        "   raw  LINP00001  12000125{\\n\n"
        "\n"
        "orders.txt: 3 records, as declared\n"
    )


def test_values_are_only_shown_on_request(tmp_path: Path) -> None:
    """Without --raw, letters and digits are replaced, in both forms of output."""
    file = tmp_path / "orders.txt"
    file.write_text(lines(*GOOD))
    arguments = ["-C", config(tmp_path, ORDERS, "SKU"), "layout", "show", str(file), "--stream", "wms.items"]
    _, out, _ = run(*arguments)
    assert "A99999" in out
    assert "P00001" not in out
    document = json.loads(run(*arguments, "--json")[1])
    assert document["rows"] == 3
    assert document["error"] is None
    assert document["records"][0]["cells"][3] == {"column": "AMOUNT", "place": "line 14-20", "text": "99.99"}


def test_a_fault_is_shown_after_the_records_before_it(tmp_path: Path) -> None:
    """With its line and position, and the exit code of a refused file."""
    file = tmp_path / "orders.txt"
    file.write_text(lines(*GOOD[:-1]))
    code, _, err = run("-C", config(tmp_path, ORDERS, "SKU"), "layout", "show", str(file), "--stream", "wms.items")
    assert code == 4
    assert "crossdock: orders.txt:10: the last record is not of the type trailer" in err


def test_fields_and_cells_have_places_too(tmp_path: Path) -> None:
    """Fields are counted from 0, as in the config; cells of sheets have their names."""
    file = tmp_path / "items.csv"
    file.write_text("SKU,NAME\n0017,Bolt\n")
    _, out, _ = run("-C", config(tmp_path, {}, "SKU"), "layout", "show", str(file), "--stream", "wms.items", "--raw")
    assert "   SKU   field 0  0017\n   NAME  field 1  Bolt\n   raw  0017,Bolt\\n\n" in out
    workbook = Workbook()
    for row in (["SKU", "NAME"], ["0017", "Bolt"]):
        workbook.worksheets[0].append(row)
    workbook.save(tmp_path / "items.xlsx")
    path = config(tmp_path, {"kind": "sheet"}, "SKU")
    _, out, _ = run("-C", path, "layout", "show", str(tmp_path / "items.xlsx"), "--stream", "wms", "--raw")
    assert "   SKU   A2  0017\n   NAME  B2  Bolt\n" in out
    types = {"H": {"names": ["T", "A"]}, "L": {"parent": "H", "names": ["LT", "B"]}}
    file.write_text("H,1\nL,2\n")
    path = config(tmp_path, {"record_types": types, "records": "L"}, "B")
    _, out, _ = run("-C", path, "layout", "show", str(file), "--stream", "wms", "--raw")
    assert "   A   H field 1  1\n" in out


def test_a_ruler_numbers_the_positions_of_lines(tmp_path: Path) -> None:
    """Without a config; lines that are wider than the terminal continue below another ruler."""
    file = tmp_path / "f.txt"
    file.write_bytes(b"0017Lamp  \t12\r\n0018Saw\r\n" + b"x" * 75 + b"\r\n")
    code, out, _ = run("layout", "show", str(file), "--limit", "2", "--raw")
    assert code == 0
    assert out == (
        "           10\n   1234567890123\n1  0017Lamp  ?12\n2  0018Saw\n"
        "\nthe first 2 lines; they have 7, 13 characters\n"
    )
    _, out, _ = run("layout", "show", str(file))
    assert "1  9999Aaaa  ?99" in out
    assert "3  aaaaa\n" in out
    assert max(map(len, out.splitlines())) <= 80


def test_records_without_line_ends_are_ruled_by_their_length(tmp_path: Path) -> None:
    """In any encoding."""
    file = tmp_path / "f.bin"
    file.write_bytes("0017Lamp0018Saw ".encode("cp037"))
    arguments = ["layout", "show", str(file), "--encoding", "cp037", "--length", "8", "--raw"]
    assert "1  0017Lamp\n2  0018Saw\n" in run(*arguments)[1]
    assert json.loads(run(*arguments, "--json")[1])["lengths"] == [8, 8]


def test_wrong_usage_is_told(tmp_path: Path) -> None:
    """An unknown encoding, an empty file, and a missing one."""
    file = tmp_path / "f.txt"
    file.touch()
    assert run("layout", "show", str(file), "--encoding", "utf9")[0] == 2
    assert run("layout", "show", str(tmp_path / "none"))[0] == 2
    code, _, err = run("layout", "show", str(file))
    assert code == 4
    assert "f.txt: the file is empty" in err


def test_the_first_lines_are_not_taken_for_the_whole_file(tmp_path: Path) -> None:
    """What is shown is said, and how long it is."""
    file = tmp_path / "items.txt"
    file.write_text("0017Lamp\n0018Saws\n0019Nail\n")
    assert run("layout", "show", str(file), "-n", "2")[1].endswith("\nthe first 2 lines; they have 8 characters\n")
    assert run("layout", "show", str(file), "-n", "1")[1].endswith("\nthe first line; it has 8 characters\n")


@pytest.mark.parametrize("begin", [b"PK\x03\x04\x14\x00", bytes.fromhex("d0cf11e0a1b11ae1")], ids=["xlsx", "xls"])
def test_a_sheet_has_no_lines(tmp_path: Path, begin: bytes) -> None:
    """Its bytes are not shown; instead how to look at it."""
    file = tmp_path / "t.xlsx"
    file.write_bytes(begin + b"rest")
    code, out, err = run("layout", "show", str(file))
    assert (code, out) == (2, "")
    assert "is a sheet of Excel or OpenDocument" in err
    assert "--stream CONNECTION.STREAM" in err


def test_members_of_objects_are_shown_by_their_paths(tmp_path: Path) -> None:
    """Of JSON Lines, documents and tables with objects; what is personal is masked, and names are not."""
    line = '{"id": 17, "customer": {"name": "Anna"}, "lines": [{"sku": "A-1"}, {}], "gone": null}'
    parquet = tmp_path / "a.parquet"
    pl.DataFrame({"id": [17], "customer": [{"name": "Anna"}], "gone": [None]}).write_parquet(parquet)
    (tmp_path / "a.jsonl").write_text(f"{line}\n")
    (tmp_path / "a.json").write_text(f"[{line}]")
    for name, kind, place in (
        ("a.jsonl", {"kind": "json_lines"}, "line 1"), ("a.json", {"kind": "json"}, "record 1"),
        ("a.parquet", {"kind": "parquet", "objects": True}, "row 1"),
    ):  # fmt: skip
        arguments = ["-C", config(tmp_path, kind, "id"), "layout", "show", str(tmp_path / name), "--stream", "wms"]
        _, out, _ = run(*arguments)
        assert f"   customer.name  {place}  Aaaa\n" in out
        assert "Anna" not in out
        _, out, _ = run(*arguments, "--raw")
        assert (
            f"   customer.name  {place}  Anna\n   gone           {place}  null\n   id             {place}  17\n" in out
        )
        assert ("   lines.0.sku    " in out) == (name != "a.parquet")
        assert max(map(len, out.splitlines())) <= 80


def test_the_bytes_of_a_record_stand_below_it(tmp_path: Path) -> None:
    """With escapes, over all lines and segments of it; only with --raw."""
    file = tmp_path / "t.csv"
    file.write_bytes('SKU;NAME\n0017;"Größe\nM8"\n0018;Nut\n'.encode("cp1252"))
    arguments = ["layout", "show", str(file), "--stream", "wms"]
    path = config(tmp_path, {"delimiter": ";", "encoding": "cp1252"}, "SKU")
    _, out, _ = run("-C", path, *arguments, "--raw")
    assert '   raw  0017;"Gr\\xf6\\xdfe\\nM8"\\n\n' in out
    assert "   raw  0018;Nut\\n\n" in out
    assert json.loads(run("-C", path, *arguments, "--raw", "--json")[1])["records"][1]["raw"] == "0018;Nut\\n"
    assert "raw" not in run("-C", path, *arguments)[1]
    file.write_text("UNB+UNOC:3+S+R+261101:1200+1'UNH+1+INVRPT:D:96A:UN'LIN+1++A?'1'QTY+1:2'LIN+2'UNT+5+1'UNZ+1+1'")
    layout = {
        "kind": "edifact",
        "message": "INVRPT",
        "loops": {"l": {"starts": "LIN"}},
        "rows": "l",
        "columns": {"SKU": "LIN.3"},
    }
    _, out, _ = run("-C", config(tmp_path, layout, "SKU"), *arguments, "--raw")
    assert "   raw  LIN+1++A?'1'QTY+1:2'\n" in out
    assert "   raw  LIN+2'UNT+5+1'\n" in out


def test_a_guess_is_a_config_that_reads_the_file(tmp_path: Path) -> None:
    """Below the section of the platform; the JSON has the same with what each key rests on."""
    file = tmp_path / "ITEMS_20261101.csv"
    file.write_text("SKU;PRICE\n0017;1,50\n0018;2,25\n")
    code, guessed, _ = run("layout", "guess", str(file))
    assert code == 0
    path = tmp_path / "guessed.yaml"
    path.write_text(
        f"platform: {{base_url: 'http://127.0.0.1:9', tenant: a, auth: {{kind: api_key, token: env:K}}}}\n{guessed}"
    )
    code, out, _ = run("-C", str(path), "layout", "show", str(file), "--stream", "source.records", "--raw")
    assert (code, "   PRICE  field 1  1,50\n" in out) == (0, True)
    document = json.loads(run("layout", "guess", str(file), "--json")[1])
    assert document["format"] == {"delimiter": ";", "encoding": "utf-8", "header": True}
    assert document["settings"][0] == {"key": "delimiter", "basis": "3 of 3 rows have 2 fields", "notes": []}
    assert document["columns"][1]["form"] == {"as": "decimal", "decimal_mark": ","}
    assert (document["key"], document["config"]) == ("SKU", guessed)


def test_pipes_devices_and_tables_have_no_lines(tmp_path: Path) -> None:
    """A pipe would wait for ever; a Parquet file is read by a stream."""
    os.mkfifo(tmp_path / "pipe")
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "a.parquet")
    for path, says in {
        "/dev/zero": "no",
        str(tmp_path / "pipe"): "no",
        str(tmp_path / "a.parquet"): "a Parquet",
    }.items():
        code, out, err = run("layout", "show", path)
        assert (code, out) == (2, "")
        assert f"it is {says}" in err or f"is {says}" in err
    assert run("layout", "guess", "/dev/zero")[0] == 2
