"""The exports in SQL Server's form: what they look like, and that every defect is in them."""

from __future__ import annotations

from decimal import Decimal
from fnmatch import fnmatch
from pathlib import Path

import pytest
from tests.e2e.sql_server_exports import TABLES, Night, Row, Size, money, nights

from crossdock.values import config_file

pytestmark = pytest.mark.nightly

SMALL = Size(12, 12, 12)
CONFIG = config_file.read_config_with_overrides(Path(__file__).with_name("sql_server.yaml")).data


@pytest.fixture(scope="module")
def pair() -> tuple[Night, Night]:
    return nights(1, SMALL)


def test_the_same_arguments_write_the_same_bytes(tmp_path: Path) -> None:
    """Two runs of one seed and size agree in every byte; another seed does not."""
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        for night in nights(seed, SMALL):
            night.write(tmp_path / name)
    written = [{file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in "abc"]
    assert written[0] == written[1] != written[2]


def test_the_size_decides_how_much_there_is() -> None:
    """Sizes are numbers of records, and too few for the defects are refused."""
    first, second = nights(1, Size(50, 40, 300))
    tables = first.tables
    assert [len(tables[name]) for name in ("Product", "Customer", "SalesOrderHeader")] == [50, 40, 300]
    assert len(second.tables["SalesOrderHeader"]) == 6
    with pytest.raises(ValueError, match="at least 12"):
        Size(11, 12, 12)


@pytest.mark.parametrize(
    ("amount", "text"),
    [("0", ".0000"), ("0.21", ".2100"), ("12.5", "12.5000"), ("1234.5", "1234.5000"), ("10", "10.0000")],
)
def test_money_is_written_as_the_type_money(amount: str, text: str) -> None:
    """Four decimals and no zero before the point."""
    assert money(Decimal(amount)) == text


def test_the_files_are_in_the_form_of_the_scripts(pair: tuple[Night, Night], tmp_path: Path) -> None:
    """No header, no quotes: tabs in cp1252, bars in UTF-16, and ``+|`` with line ends in the cells."""
    pair[0].write(tmp_path)
    product = (tmp_path / "Product_20140630.csv").read_bytes()
    account = (tmp_path / "Account_20140630.csv").read_bytes()
    store = (tmp_path / "Store_20140630.csv").read_bytes()
    first = product.decode("cp1252").splitlines()[0].split("\t")
    assert first[:2] == ["700", 'Rim 24" 0']
    assert first[6:10] == [".0000", "", "2011-05-31 00:00:00", ""]
    assert "Pédale".encode("cp1252") in product
    assert product.endswith(b"\r\n")
    assert account.startswith(b"\xff\xfe")
    assert account.decode("utf-16").count("|") == 6 * 22
    assert store.startswith(b"\xff\xfe")
    text = store.decode("utf-16")
    assert text.endswith("&|\n")
    assert text.count("&|\n") == 4
    assert text.count("\n") == 4 + 2 * 4


def keys(rows: list[Row], column: str) -> set[str]:
    return {row[column] for row in rows}


def test_each_defect_is_in_the_first_night(pair: tuple[Night, Night]) -> None:
    """Cells and rows that are missing, unknown or in another file."""
    tables, second_file = pair[0].tables, pair[0].second_file
    assert [row["ProductID"] for row in tables["Product"] if not row["ListPrice"]] == ["703"]
    nobody = [row["CustomerID"] for row in tables["Customer"] if not row["PersonID"] and not row["StoreID"]]
    assert nobody == ["11004", "11007"]
    unknown = {row["AccountKey"] for row in tables["Account"] if row["AccountType"] in {"Flow", "Clearing"}}
    assert unknown == {"17", "20"}
    assert keys(tables["Bin"], "LocationID") - keys(tables["Location"], "LocationID") == {"99"}
    assert keys(tables["ProductInventory"], "ProductID") - keys(tables["Product"], "ProductID") == {"712"}
    headers, in_first = (
        keys(tables["SalesOrderHeader"], "SalesOrderID"),
        keys(tables["SalesOrderDetail"], "SalesOrderID"),
    )
    in_second = keys(second_file, "SalesOrderID")
    assert headers - in_first - in_second == {"50004", "50005"}
    assert (in_first | in_second) - headers == {"50013", "50014"}
    assert in_second - in_first == {"50006"}
    assert in_second & in_first == {"50007"}
    assert keys(tables["SalesOrderDetail"], "ProductID") - keys(tables["Product"], "ProductID") == {"712"}


def test_the_second_night_has_changes(pair: tuple[Night, Night]) -> None:
    """Rows are changed, added and gone; what was missing arrives, partly without the rest of its record."""
    before, after = pair[0].tables, pair[1].tables
    changed = {name: differences(before[name], after[name]) for name in before if not name.startswith("SalesOrder")}
    assert {name: len(rows) for name, rows in changed.items() if rows} == {
        "Product": 6,  # a price, an end, a name, a first price, one gone, one new
        "Person": 1,
        "Customer": 1,
        "Store": 1,
        "Location": 1,
        "ProductInventory": 1,
        "Account": 2,
    }
    assert keys(after["SalesOrderHeader"], "SalesOrderID") == {"50008", "50009", "50013", "50015", "50016", "50017"}
    with_lines = {"50008", "50009", "50015", "50016", "50017"}
    assert keys(after["SalesOrderDetail"], "SalesOrderID") == with_lines
    assert keys(pair[1].second_file, "SalesOrderID") == {"50004"}


def differences(before: list[Row], after: list[Row]) -> set[str]:
    """The first cells of rows that only one night has."""
    rows = [{tuple(row.values()) for row in night} for night in (before, after)]
    return {row[0] for row in rows[0] ^ rows[1]}


def test_the_config_reads_every_file_with_its_columns(pair: tuple[Night, Night], tmp_path: Path) -> None:
    """Each file matches the pattern of one source, which declares the columns and the layout of its table."""
    for night in pair:
        night.write(tmp_path)
    sources = CONFIG["connections"]["erp"]["sources"]
    for file in tmp_path.iterdir():
        (source,) = (source for source in sources.values() if fnmatch(file.name, source["files"]))
        layout, columns = TABLES[file.name.partition("_")[0]]
        declared = source["format"]
        assert tuple(declared["names"]) == columns
        assert (declared["delimiter"], declared["encoding"]) == (layout.delimiter, layout.encoding)
        assert declared.get("row_end", "\r\n") == layout.row_end
        assert (declared["header"], declared["quote"]) == (False, None)
