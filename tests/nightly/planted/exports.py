"""Exports of orders in a folder, one row for each line, and their bugs."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any, Literal

from tests.nightly.planted.bugs import Bug

from crossdock import (
    Connector,
    Context,
    LineDraft,
    OrderDraft,
    RawBatch,
    Record,
    RecordError,
    Reference,
    Settings,
    Stream,
    convert,
)
from crossdock.resources import ShippingAddress
from crossdock.sources import ConfigPath, DelimitedFormat, FileSource, FolderStore, StreamId
from crossdock.testing.contract import StreamContract

EXPORT = """NO|CUSTOMER|PLACED|NAME|STREET|CITY|REGION|SKU|QUANTITY|PRICE
1001|71|01.11.2026 00:30|Ada|Gasse 1|Bern|BE|0017|2|24,95
1001|71|01.11.2026 00:30|Ada|Gasse 1|Bern|BE|0018|1|0,25
1002|72|02.11.2026 10:00|Bo|Gasse 2|Basel||0018|1|9,05
1003|73|02.11.2026 11:00|Cy|Gasse 3|Vevey|VD|0019|3|1,75
1003|73|02.11.2026 11:00|Cy|Gasse 3|Vevey|VD|0017|5|24,95
"""
EXPECTED = {
    "1001": {
        "customerId": Reference("customer", "71"),
        "currency": "CHF",
        "placedAt": "2026-10-31T23:30:00Z",
        "items": [
            {"productId": Reference("product", "0017"), "quantity": 2, "unitPrice": Decimal("24.95")},
            {"productId": Reference("product", "0018"), "quantity": 1, "unitPrice": Decimal("0.25")},
        ],
        "shippingAddress": {"name": "Ada", "line1": "Gasse 1", "city": "Bern", "region": "BE"},
    },
    "1002": {"shippingAddress": {"region": None}, "items": [{}]},
    "1003": {"items": [{}, {}]},
}


class ExportSettings(Settings):
    """One folder."""

    kind: Literal["exports"]
    path: ConfigPath


class Orders(Stream[ExportSettings]):
    """The newest file lists all orders. `rows` and the parts of the mapping are methods, for the bugs."""

    name, resource, key, mode = "orders", "order", ("NO",), "snapshot"
    group_by = ("NO",)

    def rows(self, frame: Any) -> Any:
        return frame

    def pull(self, ctx: Context[ExportSettings], since: str | None) -> Iterator[RawBatch]:
        for batch in self._source(ctx).read(self._id(ctx)):
            yield RawBatch(batch.source, self.rows(batch.load()))

    def finished(self, ctx: Context[ExportSettings]) -> None:
        self._source(ctx).finished(self._id(ctx))

    def _id(self, ctx: Context[ExportSettings]) -> StreamId:
        return StreamId(f"{ctx.connection}.{self.name}", self.version)

    def _source(self, ctx: Context[ExportSettings]) -> FileSource:
        def make() -> FileSource:
            store, ids = FolderStore(ctx.settings.path), [self._id(ctx)]
            form = DelimitedFormat(delimiter="|")
            return FileSource("ORDERS_*.txt", form, lambda: store, ctx.run, settle_s=0, snapshot=True, stream_ids=ids)

        return ctx.shared(self.name, make)

    def to_resource(self, record: Record) -> OrderDraft:
        row = record.row
        return OrderDraft(
            customer_id=Reference("customer", row["CUSTOMER"] or ""),
            currency="CHF",
            placed_at=self.placed_at(row),
            items=tuple(self.line(each) for each in self.lines(record)),
            shipping_address=self.address(row),
        )

    def lines(self, record: Record) -> Sequence[Mapping[str, str | None]]:
        return record.rows

    def line(self, row: Any) -> LineDraft:
        product = Reference("product", row["SKU"] or "")
        return LineDraft(product_id=product, quantity=self.quantity(row), unit_price=self.price(row))

    def quantity(self, row: Any) -> Decimal:
        return convert.decimal(row, "QUANTITY", decimal_mark=",")

    def price(self, row: Any) -> Decimal:
        return convert.decimal(row, "PRICE", decimal_mark=",")

    def placed_at(self, row: Any) -> datetime:
        return convert.instant(row, "PLACED", layout="%d.%m.%Y %H:%M", timezone="Europe/Zurich")

    def address(self, row: Any) -> ShippingAddress:
        city, street = row["CITY"] or "", row["STREET"] or ""
        return ShippingAddress(name=row["NAME"], line1=street, city=city, region=row["REGION"] or None, country="CH")


def exports(stream: type[Orders]) -> Connector[ExportSettings]:
    return Connector(name="exports", title="Exports", settings=ExportSettings, streams=lambda _: (stream(),))


class ExportsCase(StreamContract):
    """Orders in a file."""

    connector = exports(Orders)
    settings = {"path": "."}
    stream = "orders"
    expects = EXPECTED

    def prepare(self, folder: Path) -> None:
        (folder / "ORDERS_20261103.txt").write_text(EXPORT, encoding="utf-8")


def case(**methods: Any) -> type[ExportsCase]:
    return type("Case", (ExportsCase,), {"connector": exports(type("Bug", (Orders,), methods))})


def _float(self: Any, row: Any) -> Decimal:
    return Decimal(str(round(float(Orders.price(self, row)), 4)))


def _swallowed(self: Any, row: Any) -> Decimal:
    try:
        return convert.decimal(row, "QUANTITY", decimal_mark=",")
    except RecordError:
        return Decimal(0)


def _zone(self: Any, row: Any) -> datetime:
    return convert.instant(row, "PLACED", layout="%d.%m.%Y %H:%M", timezone="UTC")


def _local(self: Any, row: Any) -> datetime:
    return datetime.strptime(row["PLACED"], "%d.%m.%Y %H:%M").astimezone()


def _without_region(self: Any, row: Any) -> ShippingAddress:
    return Orders.address(self, row).model_copy(update={"region": None})


def _renamed(keys: Any) -> Any:
    import polars as pl

    return lambda self, frame: frame.with_columns(NO=pl.Series([str(next(keys)) for _ in range(frame.height)]))


def _unguarded(self: Any, row: Any) -> Decimal:
    return Decimal(row["PRICE"].replace(",", "."))


STATED = "drafts_are_as_expected"
FILES: Sequence[tuple[str, type[ExportsCase], str, str, bool]] = [
    ("a price divided by 100", case(price=lambda self, row: Orders.price(self, row) / 100), STATED, "unitPrice", True),
    ("decimals lost in a float", case(price=_float), "numbers_are_exact", "Bug.to_resource", False),
    ("an amount rounded", case(price=lambda self, row: round(Orders.price(self, row), 1)), "numbers_are_exact",
     "Bug.to_resource", False),
    ("a bad number that becomes 0", case(quantity=_swallowed), "a_bad_number_is_never_another_number",
     "Bug.to_resource", False),
    ("a time in another zone", case(placed_at=_zone), STATED, "placedAt", True),
    ("a time in the zone of the machine", case(placed_at=_local), "the_mapping_is_pure", "Bug.to_resource", False),
    ("part of an address left out", case(address=_without_region), STATED, "region", True),
    ("a list that is cut", case(lines=lambda self, record: record.rows[:2]), "no_element_of_a_long_list_is_left_out",
     "Bug.to_resource", False),
    ("a record left out", case(rows=lambda self, frame: frame.head(3)), STATED, "Bug.pull does not read", True),
    ("a KeyError of the mapping", case(price=_unguarded), "drift_of_a_record_never_breaks_the_mapping",
     "Bug.to_resource", False),
    ("random keys", case(rows=_renamed(iter(lambda: uuid.uuid4().hex, ""))), "a_second_run_reads_the_same", "random",
     False),
    ("keys that differ from run to run", case(rows=_renamed(count(1))), "a_second_run_reads_the_same", "position",
     False),
]  # fmt: skip
BUGS = [Bug(what, "files", made, test, says, stated) for what, made, test, says, stated in FILES]
CORRECT = (ExportsCase,)
