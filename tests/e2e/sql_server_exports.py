"""Exports of an invented company in the form of the scripts of Microsoft's AdventureWorks sample databases.

They have no header, no quotes and empty cells for NULL. Products, customers, locations, bins, stock, currency rates and
accounts are exported in full each night; orders and their lines only when they are new or changed. The second night
brings the changes that `_second_night` lists. The same arguments write the same bytes.

    python -m tests.e2e.sql_server_exports FOLDER [SEED [PRODUCTS CUSTOMERS ORDERS]]

The defects, which `tests.e2e.sql_server_truth` judges without knowing this module:

- A product has no price, and gets one in the second night.
- Two customers have neither person nor store; one of them gets a person. An order of each of them waits until then.
- A bin is in a location that does not exist.
- An account has an unknown type, so its two children wait; the second night corrects it. Another one never is.
- Two orders have no lines; those of one arrive in the second night, without their order.
- Two orders have lines only; one of them arrives in the second night, without its lines.
- One order has its lines in the second file of the night, another one in both files.
- An order and a lot need a product that only the second night brings.
- The bins and the currency rates of both nights are the same bytes, but a location of the bins is renamed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from uuid import UUID

NIGHTS = ("2014-06-30", "2014-07-01")
Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of a file are written."""

    delimiter: str
    row_end: str
    encoding: str


TAB = Layout("\t", "\r\n", "cp1252")
WIDE = Layout("+|", "&|\n", "utf-16")  # cells contain line ends
PIPE = Layout("|", "\r\n", "utf-16")
_AUDIT = ("rowguid", "ModifiedDate")

TABLES: dict[str, tuple[Layout, tuple[str, ...]]] = {
    "Product": (
        TAB,
        ("ProductID", "Name", "ProductNumber", "MakeFlag", "Color", "StandardCost", "ListPrice",
         "SizeUnitMeasureCode", "SellStartDate", "SellEndDate", "DiscontinuedDate", *_AUDIT),
    ),
    "Customer": (TAB, ("CustomerID", "PersonID", "StoreID", "TerritoryID", "AccountNumber", *_AUDIT)),
    "Person": (
        WIDE,
        ("BusinessEntityID", "PersonType", "Title", "FirstName", "MiddleName", "LastName", "Demographics", *_AUDIT),
    ),
    "Store": (WIDE, ("BusinessEntityID", "Name", "SalesPersonID", "Demographics", *_AUDIT)),
    "Location": (TAB, ("LocationID", "Name", "CostRate", "ModifiedDate")),
    "Bin": (TAB, ("LocationID", "Shelf", "Bin", "Capacity", "ModifiedDate")),
    "ProductInventory": (TAB, ("ProductID", "LocationID", "Shelf", "Bin", "Quantity", *_AUDIT)),
    "CurrencyRate": (
        TAB,
        ("CurrencyRateID", "CurrencyRateDate", "FromCurrencyCode", "ToCurrencyCode", "AverageRate", "ModifiedDate"),
    ),
    "Account": (
        PIPE,
        ("AccountKey", "ParentAccountKey", "AccountCodeAlternateKey", "AccountDescription", "AccountType",
         "Operator", "ValueType"),
    ),
    "SalesOrderHeader": (
        TAB,
        ("SalesOrderID", "RevisionNumber", "OrderDate", "DueDate", "ShipDate", "Status", "OnlineOrderFlag",
         "PurchaseOrderNumber", "CustomerID", "CurrencyRateID", "SubTotal", "TaxAmt", "Freight", "TotalDue", *_AUDIT),
    ),
    "SalesOrderDetail": (
        TAB,
        ("SalesOrderID", "SalesOrderDetailID", "CarrierTrackingNumber", "OrderQty", "ProductID", "UnitPrice",
         "UnitPriceDiscount", "LineTotal", *_AUDIT),
    ),
}  # fmt: skip
"""Layout and columns of each table, in the order of the cells."""

_FIRST = ("Amélie", "Björn", "Carmen", "Dimitri", "Esra", "Farouk", "Grete", "Hana", "Ivo", "João", "Kai", "Léa")
_LAST = ("O'Neill", "Søndergaard", "Müller", "Novák", "Ødegård", "Santos-Reyes", "Tanaka", "Żuraw", "Wu", "Ng")
_GOODS = ('Rim 24"', "Saddle «Comfort»", "Chain", "Pédale", "Pump", "Bell & Bracket", "Mud flap", "Spoke 1/2")
_UNITS = ("", "CM ", "EA ", "G  ")  # nchar(3) is padded
_PLACES = ("Entrepôt Nord", "Tool Crib", "Paint Shop", "Finished Goods", "Zwischenlager Süd")
_RATES = (("1", "EUR", ".7346"), ("2", "GBP", ".5874"), ("3", "CAD", "1.0664"))
_ACCOUNTS = (  # key, parent, description, type
    ("1", "", "Balance Sheet", "Balances"),
    ("2", "1", "Assets", "Assets"),
    ("3", "2", "Current Assets", "Assets"),
    ("4", "3", "Cash", "Assets"),
    ("5", "3", "Receivables", "Assets"),
    ("6", "3", "Inventory", "Assets"),
    ("7", "2", "Property & Equipment", "Assets"),
    ("8", "7", "Machines à 100 %", "Assets"),
    ("9", "1", "Liabilities and Owners Equity", "Liabilities"),
    ("10", "9", "Current Liabilities", "Liabilities"),
    ("11", "10", "Accounts Payable", "Liabilities"),
    ("12", "", "Net Income", "Revenue"),
    ("13", "12", "Operating Profit", "Revenue"),
    ("14", "13", "Gross Sales", "Revenue"),
    ("15", "13", "Operating Expenses", "Expenditures"),
    ("16", "15", "Labor", "Expenditures"),
    ("17", "15", "Intercompany", "Flow"),  # unknown until the second night
    ("18", "17", "Intercompany Freight", "Expenditures"),
    ("19", "17", "Intercompany Services", "Expenditures"),
    ("20", "15", "Suspense", "Clearing"),  # never known
    ("21", "", "Statistical Accounts", "Statistical"),
    ("22", "21", "Headcount", "Statistical"),
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is: at least 12 of each, for the defects."""

    products: int = 40
    customers: int = 30
    orders: int = 60

    def __post_init__(self) -> None:
        if min(self.products, self.customers, self.orders) < 12:
            raise ValueError("a size has at least 12 products, customers and orders")


@dataclass
class Night:
    """The rows of one night's files, by table; lines in the second file of the night are apart."""

    date: str
    tables: dict[str, list[Row]] = field(default_factory=dict)
    second_file: list[Row] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Write a file for each table, and two of order lines, named after the table and the date."""
        folder.mkdir(parents=True, exist_ok=True)
        date = self.date.replace("-", "")
        files = {f"{table}_{date}": (table, rows) for table, rows in self.tables.items() if table != "SalesOrderDetail"}
        for number, rows in enumerate((self.tables["SalesOrderDetail"], self.second_file), 1):
            files[f"SalesOrderDetail_{date}_{number}"] = ("SalesOrderDetail", rows)
        for name, (table, rows) in files.items():
            layout, columns = TABLES[table]
            (folder / f"{name}.csv").write_bytes(encoded(rows, columns, layout))


def encoded(rows: Iterable[Row], columns: Sequence[str], layout: Layout) -> bytes:
    """The bytes of a file; UTF-16 is little-endian with a byte order mark."""
    text = "".join(layout.delimiter.join(row.get(name, "") for name in columns) + layout.row_end for row in rows)
    return f"\ufeff{text}".encode("utf-16-le") if layout.encoding == "utf-16" else text.encode(layout.encoding)


def nights(seed: int = 1, size: Size | None = None) -> tuple[Night, Night]:
    """The exports of two nights."""
    company = _Company(Random(seed), size or Size())
    return company.first_night(), company.second_night()


def money(amount: Decimal) -> str:
    """Four decimals and no zero before the point, as SQL Server's bcp writes the type money."""
    text = f"{amount:.4f}"
    return text.removeprefix("0") if text.startswith("0.") else text


class _Company:
    """The tables of one database; the second night changes what the first one made."""

    def __init__(self, rng: Random, size: Size) -> None:
        self._rng, self._size = rng, size
        self._next_line = 100_001  # the same number of digits, so that text and number sort alike
        self._today = NIGHTS[0]
        self._named_customers = [number for number in range(size.customers) if number not in {4, 7}]

    def first_night(self) -> Night:
        full = {
            "Product": [self._product(number) for number in range(self._size.products)],
            "Location": [self._location(number) for number in range(len(_PLACES))],
            "Person": [self._person(number) for number in range(self._size.customers)],
            "Customer": [self._customer(number) for number in range(self._size.customers)],
            "Store": [self._store(number) for number in range(0, self._size.customers, 3)],
            "CurrencyRate": [self._rate(*rate) for rate in _RATES],
            "Account": self._accounts(),
        }
        full["Product"][3]["ListPrice"] = ""
        for number in (4, 7):
            full["Customer"][number]["PersonID"] = ""
        full["Bin"] = self._bins()
        self._real_bins = [row for row in full["Bin"] if row["LocationID"] != "99"]
        full["ProductInventory"] = [self._lot(number) for number in range(self._size.products * 3 // 4)]
        full["ProductInventory"][5]["ProductID"] = self._product_id(self._size.products)
        self._full = full
        self._headers = [self._header(number) for number in range(self._size.orders + 2)]
        self._lines = [self._order_lines(header) for header in self._headers]
        self._lines[9][0]["ProductID"] = self._product_id(self._size.products)
        return self._first_orders(Night(NIGHTS[0], {name: [*map(dict, rows)] for name, rows in full.items()}))

    def _first_orders(self, night: Night) -> Night:
        night.tables["SalesOrderHeader"] = [dict(header) for header in self._headers[: self._size.orders]]
        first: list[Row] = []
        for number, lines in enumerate(self._lines):
            if number in (3, 4):
                continue
            in_first = 0 if number == 5 else 1 if number == 6 else len(lines)
            first += map(dict, lines[:in_first])
            night.second_file += map(dict, lines[in_first:])
        night.tables["SalesOrderDetail"] = first
        return night

    def second_night(self) -> Night:
        self._today = NIGHTS[1]
        self._change_full_tables()
        night = Night(NIGHTS[1], {name: [*map(dict, rows)] for name, rows in self._full.items()})
        headers = [self._header(self._size.orders + 2 + number) for number in range(3)]
        self._headers[7]["Status"], self._headers[7]["ShipDate"] = "5", f"{self._today} 00:00:00"
        self._lines[7][0]["OrderQty"] = "17"
        self._lines[8] += [self._line(self._headers[8])]
        changed = [(self._headers[number], self._lines[number]) for number in (7, 8)]
        changed += [(header, self._order_lines(header)) for header in headers]
        night.tables["SalesOrderHeader"] = [header for header, _ in changed] + [self._headers[self._size.orders]]
        night.tables["SalesOrderDetail"] = [line for _, lines in changed for line in lines]
        night.second_file = self._lines[3]
        return night

    def _change_full_tables(self) -> None:
        products, full = self._full["Product"], self._full
        products[0]["ListPrice"] = money(Decimal(products[0]["ListPrice"]) + Decimal("0.0100"))
        products[1]["SellEndDate"] = f"{self._today} 00:00:00"
        products[2]["Name"] = f"{products[2]['Name']} (new)"
        products[3]["ListPrice"] = "1234.5000"
        del products[self._size.products - 1]  # gone
        products.append(self._product(self._size.products))
        full["Customer"][4]["PersonID"] = full["Person"][4]["BusinessEntityID"]
        full["Person"][1]["LastName"] = "Żuraw-Smith"
        full["Store"][1]["Name"] = "Renamed & Sons"
        full["Location"][0]["Name"] = "Entrepôt Est"
        full["ProductInventory"][0]["Quantity"] = "0"
        self._account("17")["AccountType"] = "Expenditures"
        self._account("16")["AccountDescription"] = "Labor and Wages"

    def _account(self, key: str) -> Row:
        return next(row for row in self._full["Account"] if row["AccountKey"] == key)

    def _audited(self, row: Row) -> Row:
        guid = str(UUID(int=self._rng.getrandbits(128), version=4)).upper()
        return {**row, "rowguid": f"{{{guid}}}", "ModifiedDate": f"{self._today} 00:00:00"}

    def _amount(self, below: int) -> Decimal:
        return Decimal(self._rng.randrange(below * 10_000)).scaleb(-4)

    @staticmethod
    def _product_id(number: int) -> str:
        return str(700 + number)

    def _product(self, number: int) -> Row:
        price = (Decimal(0), Decimal("0.21"), Decimal("12.5"))[number] if number < 3 else self._amount(3000)
        ended = number % 6 == 5
        return self._audited(
            {
                "ProductID": self._product_id(number),
                "Name": f"{_GOODS[number % len(_GOODS)]} {number}",
                "ProductNumber": f"{self._rng.choice(('BK', 'FR', 'HL'))}-{number:04}",
                "MakeFlag": str(number % 2),
                "Color": ("", "Black", "Bleuté")[number % 3],
                "StandardCost": money(price / 2),
                "ListPrice": money(price),
                "SizeUnitMeasureCode": _UNITS[number % len(_UNITS)],
                "SellStartDate": "2011-05-31 00:00:00",
                "SellEndDate": "2013-05-29 00:00:00" if ended else "",
            }
        )

    def _person(self, number: int) -> Row:
        return self._audited(
            {
                "BusinessEntityID": str(2001 + number),
                "PersonType": "SC" if number % 3 == 0 else "IN",
                "Title": "Ms." if number % 4 == 0 else "",
                "FirstName": self._rng.choice(_FIRST),
                "MiddleName": "J." if number % 2 else "",
                "LastName": self._rng.choice(_LAST),
                "Demographics": f"<Survey>\n  <Purchases>{self._amount(900)}</Purchases>\n</Survey>",
            }
        )

    def _customer(self, number: int) -> Row:
        return self._audited(
            {
                "CustomerID": str(11_000 + number),
                "PersonID": str(2001 + number),
                "StoreID": str(501 + number) if number % 3 == 0 else "",
                "TerritoryID": str(1 + number % 10),
                "AccountNumber": f"NT{11_000 + number:08}",
            }
        )

    def _store(self, number: int) -> Row:
        return self._audited(
            {
                "BusinessEntityID": str(501 + number),
                "Name": f"{self._rng.choice(_LAST)} Cycles | No. {number}",
                "SalesPersonID": "" if number % 2 else "277",
                "Demographics": "<Store>\n  <Brands>4+</Brands>\n</Store>",
            }
        )

    def _location(self, number: int) -> Row:
        rate = money(self._amount(30)) if number else ".0000"
        row = {"LocationID": str(number + 1), "Name": _PLACES[number], "CostRate": rate}
        return {**row, "ModifiedDate": f"{self._today} 00:00:00"}

    def _bins(self) -> list[Row]:
        rows = [
            {"LocationID": str(place), "Shelf": shelf, "Bin": str(number), "Capacity": f"{place * 24}.00"}
            for place in range(1, len(_PLACES) + 1)
            for shelf in ("A", "B", "N/A")
            for number in range(1, 4)
        ]
        rows[1]["Capacity"] = ""
        rows.append({"LocationID": "99", "Shelf": "A", "Bin": "1", "Capacity": ".00"})
        return [{**row, "ModifiedDate": f"{self._today} 00:00:00"} for row in rows]

    def _lot(self, number: int) -> Row:
        bin_ = self._rng.choice(self._real_bins)
        place = {name: bin_[name] for name in ("LocationID", "Shelf", "Bin")}
        quantity = str(self._rng.randrange(1, 900))
        return self._audited({"ProductID": self._product_id(number), **place, "Quantity": quantity})

    def _rate(self, key: str, code: str, rate: str) -> Row:
        at = "2011-05-31 00:00:00"
        row = {"CurrencyRateID": key, "CurrencyRateDate": at, "FromCurrencyCode": "USD", "ToCurrencyCode": code}
        return {**row, "AverageRate": rate, "ModifiedDate": at}

    def _accounts(self) -> list[Row]:
        names = ("AccountKey", "ParentAccountKey", "AccountDescription", "AccountType")
        rows = [
            {**dict(zip(names, account, strict=True)), "AccountCodeAlternateKey": f"{int(account[0]) * 10:04}"}
            | {"Operator": "+", "ValueType": "Currency"}
            for account in _ACCOUNTS
        ]
        self._rng.shuffle(rows)  # children may come before their parents
        return rows

    def _header(self, number: int) -> Row:
        subtotal = self._amount(9000)
        customer = {1: 4, 2: 7}.get(number) or self._rng.choice(self._named_customers)
        day, status = f"2014-{1 + number % 6:02}-{1 + number % 28:02} 00:00:00", 1 if number == 7 else 1 + number % 6
        return self._audited(
            {
                "SalesOrderID": str(50_001 + number),
                "RevisionNumber": "8",
                "OrderDate": day,
                "DueDate": day,
                "ShipDate": day if status == 5 else "",
                "Status": str(status),
                "OnlineOrderFlag": str(number % 2),
                "PurchaseOrderNumber": "" if number % 2 else f"PO{number:08}",
                "CustomerID": str(11_000 + customer),
                "CurrencyRateID": ("", "", "1", "2", "3")[number % 5],
                "SubTotal": money(subtotal),
                "TaxAmt": ".0000",
                "Freight": "12.5000",
                "TotalDue": money(subtotal + Decimal("12.5")),
            }
        )

    def _order_lines(self, header: Row) -> list[Row]:
        return [self._line(header) for _ in range(self._rng.randrange(2, 6))]

    def _line(self, header: Row) -> Row:
        number, self._next_line = self._next_line, self._next_line + 1
        quantity, price = self._rng.randrange(1, 12), self._amount(2500)
        return self._audited(
            {
                "SalesOrderID": header["SalesOrderID"],
                "SalesOrderDetailID": str(number),
                "CarrierTrackingNumber": "" if number % 3 else f"4E0A-{number % 4096:04X}-AB",
                "OrderQty": str(quantity),
                "ProductID": self._product_id(self._rng.randrange(self._size.products)),
                "UnitPrice": money(price),
                "UnitPriceDiscount": ".0000",
                "LineTotal": f"{price * quantity:.6f}",
            }
        )


def main() -> None:
    """Write two nights into a folder."""
    seed, sizes = int((sys.argv[2:3] or ["1"])[0]), map(int, sys.argv[3:6])
    for night in nights(seed, Size(*sizes)):
        night.write(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
