"""Typed access to JSON: of records, and of the elements of their lists."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, assert_type

import pytest
from hypothesis import given
from pydantic import BaseModel, Field, field_validator
from tests.unit.test_json_paths import VALUES, refusal

from crossdock.errors import RecordError
from crossdock.values.raw_rows_and_records import LINE, RawBatch, Record

ORDER = {"id": 7, "customer": {"id": "0012", "vip": False, "note": None}, "lines": [{"sku": "a", "price": "19.90"}]}


def record_of(item: Any, **options: Any) -> Record:
    """The first row of a page with *item* alone."""
    (row, *_) = RawBatch.json([item], source="page", **options).load().drop(LINE).to_dicts()
    return Record("7", (row,), "page", (1,))


def test_a_record_of_json_gives_typed_values() -> None:
    """Each as it is in the source, and the default only for what is missing or null."""
    record = record_of(ORDER)
    assert record.at("/id", int) == 7
    assert record.at("/id", Decimal) == Decimal(7)
    assert record.at("/customer/id", str) == "0012"
    assert record.at("/customer/vip", bool) is False
    assert record.at("/lines", list) == ORDER["lines"]
    assert record.at("/lines/0", dict) == {"sku": "a", "price": "19.90"}
    assert record.at("/customer/note", str, default=None) is None
    assert record.at("/customer/name/first", str, default="-") == "-"
    assert record.decimal("/lines/0/price") == Decimal("19.90")
    assert record.decimal("/lines/0/discount", default=None) is None


@pytest.mark.parametrize(("currency", "amount"), [("EUR", "19.90"), ("JPY", "1990"), ("KWD", "1.990")])
def test_minor_units_are_those_of_a_currency(currency: str, amount: str) -> None:
    """Its code stands for the digits that ISO 4217 gives it."""
    assert record_of({"amount": 1990}).decimal("/amount", minor_units=currency) == Decimal(amount)


def test_a_pointer_names_the_currency_of_minor_units() -> None:
    """Beside the amount, from where the pointers of both begin."""
    (line,) = record_of({"lines": [{"amount": 1990, "currency": "JPY"}]}).each("/lines")
    assert line.decimal("/amount", minor_units="/currency") == Decimal(1990)
    assert line.decimal("/other", minor_units="/currency", default=None) is None
    with pytest.raises(RecordError, match="is missing") as refused:
        line.decimal("/amount", minor_units="/code")
    assert refused.value.pointer == "/lines/0/code"


@pytest.mark.parametrize(
    ("total", "quantity", "price"),
    [("24.30", 2, "12.15"), ("1", 8, "0.125"), ("-5", Decimal("2.5"), "-2"), (f"{3 * 10**40}", 3, f"{10**40}")],
)
def test_a_total_is_divided_exactly(total: str, quantity: Decimal | int, price: str) -> None:
    """The price of a unit times the quantity is the total again."""
    assert str(record_of({"total": total}).decimal("/total", divided_by=quantity)) == price


@pytest.mark.parametrize(
    ("quantity", "message"), [(3, "cannot be divided into a number with 4 decimals"), (0, "cannot be divided by 0")]
)
def test_a_total_that_is_not_divisible_rejects_the_record(quantity: int, message: str) -> None:
    """A rounded price would make another total."""
    with pytest.raises(RecordError, match=message) as refused:
        record_of({"total": "10"}).decimal("/total", divided_by=quantity)
    assert refused.value.pointer == "/total"


@pytest.mark.parametrize("currency", ["XAU", "euro", ""])
def test_minor_units_of_no_such_currency_reject_the_record(currency: str) -> None:
    """A factor that is assumed would make a wrong amount."""
    with pytest.raises(RecordError, match="no minor units") as refused:
        record_of({"amount": 1990}).decimal("/amount", minor_units=currency)
    assert refused.value.pointer == "/amount"


def test_an_identifier_is_text() -> None:
    """A whole number becomes its text; nothing else is an identifier."""
    record = record_of(
        {"id": 17, "sku": "0017", "empty": "", "price": Decimal("1.5"), "on": True, "none": None, "list": []}
    )
    assert (record.identifier("/id"), record.identifier("/sku")) == ("17", "0017")
    for pointer in ("/empty", "/price", "/on", "/none", "/list", "/other"):
        with pytest.raises(RecordError) as refused:
            record.identifier(pointer)
        assert refused.value.pointer == pointer
    assert [record.identifier(each, default=None) for each in ("/id", "/empty", "/none", "/other")] == ["17"] + 3 * [
        None
    ]
    for pointer in ("/price", "/on", "/list"):
        with pytest.raises(RecordError):
            record.identifier(pointer, default=None)


def test_the_elements_of_a_list_are_read_as_records_are() -> None:
    """Their errors name the element, whatever the depth."""
    record = record_of({"id": 7, "lines": [{"taxes": [{"rate": "0.19"}, {"rate": "x"}], "sku": "a"}], "notes": None})
    (line,) = record.each("/lines")
    first, second = line.each("/taxes")
    assert (line.at("/sku", str), first.decimal("/rate"), first.value) == ("a", Decimal("0.19"), {"rate": "0.19"})
    assert record.each("/notes", default=()) == record.each("/none", default=()) == []
    for read, pointer in (
        (lambda: second.decimal("/rate"), "/lines/0/taxes/1/rate"),
        (lambda: second.parse(Line), "/lines/0/taxes/1/sku"),
        (lambda: line.each("/sku"), "/lines/0/sku"),
        (lambda: record.each("/notes"), "/notes"),
    ):
        with pytest.raises(RecordError) as refused:
            read()
        assert refused.value.pointer == pointer


def test_type_checkers_know_what_a_record_gives() -> None:
    """The type that was asked for, with that of the default."""
    record = record_of(ORDER)
    assert_type(record.at("/id", int), int)
    assert_type(record.at("/customer/vip", bool), bool)
    assert_type(record.at("/customer/note", str, default=None), str | None)
    assert_type(record.at("/lines", list), list[Any])
    assert_type(record.decimal("/id"), Decimal)
    assert_type(record.decimal("/price", default=None), Decimal | None)
    with pytest.raises(TypeError, match="instead of float"):
        record.at("/id", float)  # type: ignore[type-var]  # the type checker says so too


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda record: record.at("/customer/name", str), "/customer/name: is missing"),
        (lambda record: record.at("/customer/note", str), "/customer/note: is null"),
        (lambda record: record.at("/customer/id", int), "/customer/id: is text, and should be a whole number"),
        (lambda record: record.at("/id", bool, default=True), "/id: is a whole number, and should be true or false"),
        (lambda record: record.decimal("/customer/vip"), "/customer/vip: is true or false, and should be a number"),
        (lambda record: record.decimal("/price"), "/price: is missing"),
    ],
)
def test_a_value_of_another_form_is_the_fault_of_its_record(read: Any, message: str) -> None:
    """The error names the place and the type, and not the value."""
    with pytest.raises(RecordError) as refused:
        read(record_of(ORDER))
    assert (str(refused.value), refused.value.code) == (message, "bad_value")


def test_an_error_names_the_element_of_an_exploded_list() -> None:
    """A row of an exploded list has one element; the source has it at an index."""
    item = {"id": 7, "order": {"lines": [{"sku": 1}, {"sku": 2}], "linesCount": 2}}
    frame = RawBatch.json([item], source="page", key=["id", "order.lines.sku"], explode="order.lines").load()
    assert frame["order.lines.sku"].to_list() == ["1", "2"]
    assert frame[LINE].to_list() == [1, 2]
    _, second = (Record("7", (row,), "page", (1,)) for row in frame.drop(LINE).to_dicts())
    assert second.at("/order/lines/sku", int) == 2
    for pointer, shown in (
        ("/order/lines/sku", "/order/lines/1/sku"),
        ("/order/lines/price", "/order/lines/1/price"),
        ("/order/lines", "/order/lines/1"),
        ("/order/lines/sku/x", "/order/lines/1/sku"),
        ("/order/linesCount", "/order/linesCount"),
    ):
        with pytest.raises(RecordError) as refused:
            second.at(pointer, str)
        assert refused.value.pointer == shown


class Line(BaseModel):
    sku: str
    price: Decimal
    kind: int | str = 0


class Order(BaseModel):
    number: Annotated[int, Field(alias="id")]
    lines: list[Line]

    @field_validator("number")
    @classmethod
    def is_small(cls, value: int) -> int:
        if value > 10:
            raise ValueError(f"{value} is too large")
        return value


def test_a_record_of_json_is_read_as_a_model() -> None:
    """With exact numbers."""
    order = record_of(ORDER).parse(Order)
    assert order.lines[0].price == Decimal("19.90")


def test_what_does_not_fit_a_model_is_told_without_values() -> None:
    """The pointers are those of the source, and the text of an author's exception is hidden."""
    line = {"price": "secret", "kind": [], "a": 1}
    with pytest.raises(RecordError) as refused:
        record_of({"id": 4711, "lines": [line]}).parse(Order)
    told = str(refused.value)
    assert told == (
        "/id: is not valid (value_error); /lines/0/sku: Field required;"
        " /lines/0/price: Input should be a valid decimal; and 2 more"
    )


@given(VALUES)
def test_any_value_fits_a_model_or_is_a_bad_value(item: Any) -> None:
    """No other exception is raised."""
    error = refusal(lambda: record_of(item).parse(Order))
    assert error is None or error.code == "bad_value"


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"lines": {"nodes": [{}], "pageInfo": {"hasNextPage": True}}}, "/lines/nodes"),
        ({"lines": {"nodes": [{}], "totalCount": 2}}, "/lines/nodes"),
        ({"lines": [{}], "linesHasMore": True}, "/lines"),
        ({"lines": [{}], "lines@odata.nextLink": "/orders(1)/lines?$skip=1"}, "/lines"),
        ({"lines": [{}], "lines@odata.count": 2}, "/lines"),
        ({"lines": {"data": [{}], "links": [{"rel": "next", "href": "/orders/1/lines?page=2"}]}}, "/lines/data"),
        ({"parcels": [{"lines": {"nodes": [{}], "pageInfo": {"hasNextPage": True}}}]}, "/parcels/0/lines/nodes"),
    ],
)
def test_a_list_that_is_cut_has_no_elements(document: Any, pointer: str) -> None:
    """A record is not mapped from a part of its list."""
    with pytest.raises(RecordError, match="has more elements") as caught:
        record_of(document).each(pointer)
    assert caught.value.pointer == pointer
